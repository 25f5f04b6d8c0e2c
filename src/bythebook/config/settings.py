"""Settings, merged from flags, environment, ``bythebook.toml`` and presets.

Precedence, highest first: flag, environment, ``bythebook.toml`` in the working directory, the
chosen preset (``presets/*.toml``: one for each contract), default.

The file may come with a book that somebody else wrote. It cannot set ``[accounts]`` or name a
database server, and no secret from the environment or a flag is sent to an address that it sets.
Every command prints the names of the settings from the file to stderr.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PrivateAttr, ValidationError

from bythebook import validation
from bythebook.config.sections import (
    AccessSettings,
    Accounts,
    Collection,
    Database,
    Embedding,
    Limits,
    Log,
    Model,
    Qdrant,
    RetentionSettings,
    ServerSettings,
    SettingsSection,
    Site,
)
from bythebook.errors import ConfigurationError

_DEFAULT_PRESET = "ask"
AUTO = "auto"  # the embedder that the book was ingested with, else by its language

PRESETS = {
    "query": "the contract query: POST /query",
    "ask": "the contract ask: POST /ask, POST /search",
    "envelope": "the contract envelope: POST /api/query, POST /api/v2/query",
    "plain": "the contract plain: POST /api/query, POST /api/v1/query",
    "chat": "the contract chat: POST /chat/run, POST /chat/stream",
}

_FILES = resources.files("bythebook.config")
# Variables and the settings that they set; of two for one setting, the last one wins.
ENVIRONMENT: Mapping[str, str] = tomllib.loads((_FILES / "environment.toml").read_text("utf-8"))
FILE = "bythebook.toml"
# Each secret outside [accounts] that is sent, and the setting of the address that it is sent to.
SENT_TO = {
    "model.api_key": "model.base_url",
    "embedding.api_key": "embedding.base_url",
    "qdrant.api_key": "qdrant.url",
}


class Settings(SettingsSection):
    """All settings with their defaults."""

    _from_file: tuple[str, ...] = PrivateAttr(())

    home: Path = Field(Path(".bythebook"), description="Folder of the ingested book.")
    preset: str = Field(
        _DEFAULT_PRESET,
        description=f"Contract whose constants are the defaults: {', '.join(PRESETS)}.",
    )
    embedder: str = Field(
        AUTO,
        description=f'Embedding model, as "provider:model", or {AUTO}: the model that the book was '
        "ingested with; for a new book, the one for its language.",
    )
    store: str = Field(
        "files",
        description="Vector store: files (in the home folder) or qdrant (a server; implied by "
        "`qdrant.url`).",
    )
    index_fallback: Literal["keyword", "none"] = Field(
        "keyword",
        description="What to do while the index or the embedder is unavailable: keyword (search "
        "the catalog) or none (an error).",
    )
    writer: str = Field(
        "extractive",
        description='Writer of answers: extractive (offline), or a model as "provider:model" with '
        "openai, openrouter, gemini or ollama; agents:model uses the OpenAI Agents SDK, with "
        "OpenAI or with `model.base_url`.",
    )
    reader: str = Field(
        "local:reader-v2",
        description="Reading model that decides refusals and verifies sentences, as "
        '"provider:model", or none.',
    )
    verifier: Literal["reader", "model", "both"] = Field(
        "reader",
        description="What verifies a language model's sentences: reader (the local reading "
        "model), model (the configured language model), or both (a sentence must pass both).",
    )
    database_url: str | None = Field(
        None,
        description="SQLite or PostgreSQL database of the catalog and the threads; SQLite in the "
        "home by default.",
    )
    database: Database = Database()
    retention: RetentionSettings = RetentionSettings()
    log: Log = Log()
    model: Model = Model()
    embedding: Embedding = Embedding()
    accounts: Accounts = Accounts()
    limits: Limits = Limits()
    collection: Collection = Collection()
    qdrant: Qdrant = Qdrant()
    site: Site = Site()
    server: ServerSettings = ServerSettings()
    access: AccessSettings = AccessSettings()

    @property
    def from_file(self) -> tuple[str, ...]:
        """Return the names of the settings whose values are those of ``bythebook.toml``."""
        return self._from_file


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Settings:
    """Merge all sources of settings, the one with the highest precedence last."""
    environ = os.environ if environ is None else environ
    file = _from_file((directory or Path.cwd()) / FILE)
    given = {name: environ[key] for key, name in ENVIRONMENT.items() if environ.get(key)}
    given |= _flat(flags or {})
    elsewhere = {_setting(name) for name in given}
    from_file = tuple(dict.fromkeys(map(_setting, file)))
    from_file = tuple(name for name in from_file if name not in elsewhere)
    _check_file(from_file, file, elsewhere)
    merged = file | given
    constants = _flat(read_preset(str(merged.get("preset", _DEFAULT_PRESET))))
    if "preset" not in merged and not merged.get("collection.existing"):
        del constants["collection.name"]  # only a chosen preset sets the contract's name
    if merged.get("qdrant.url"):
        constants["store"] = "qdrant"
    nested = _nested(constants | merged)
    try:
        settings = Settings.model_validate(nested)
    except ValidationError as error:
        message, name = validation.message_of(error.errors(), nested)
        raise ConfigurationError(
            f"The setting {name} cannot be used: {message.removeprefix(f'{name}: ')}",
            hint="docs/reference/settings.md lists every setting.",
        ) from None
    settings._from_file = from_file
    return settings


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the settings by their names, such as ``qdrant.url``; None is not set."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        elif value is not None:
            flat[f"{prefix}{name}"] = value
    return flat


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        *sections, last = name.split(".")
        target = nested
        for section in sections:
            if not isinstance(target.get(section), dict):
                target[section] = {}
            target = target[section]
        target[last] = value
    return nested


def _setting(name: str) -> str:
    """Return the name without the keys of a setting that is a table itself."""
    return ".".join(name.split(".")[:2])


def _check_file(from_file: Iterable[str], file: Mapping[str, Any], elsewhere: set[str]) -> None:
    """Raise if the file sets an address that would get a secret which is not from the file.

    The keys of ``[accounts]`` belong to the environment, and so do their addresses. A PostgreSQL
    client takes passwords from many places (PGPASSWORD, ~/.pgpass, Kerberos), so the address of a
    database server is none of the file's either.
    """
    variables = {name: variable for variable, name in ENVIRONMENT.items()}
    secrets = {address: secret for secret, address in SENT_TO.items() if secret in elsewhere}
    for name in from_file:
        server = name == "database_url" and not str(file[name]).startswith("sqlite")
        if server or (name.startswith("accounts.") and name in variables):
            raise ConfigurationError(
                f"{FILE} cannot set {name}: it is read from the environment only.",
                hint=f"Set {variables[name]}.",
            )
        if secret := secrets.get(name):
            key = variables[secret]
            raise ConfigurationError(
                f"{name} is from {FILE}, so {key} is not sent to it.",
                hint=f"If you trust that address, set {variables[name]}; if not, unset {key}.",
            )


def read_preset(name: str) -> dict[str, Any]:
    if name not in PRESETS:
        raise ConfigurationError(
            f"There is no preset {name!r}.", hint=f"Use one of {', '.join(PRESETS)}."
        )
    return tomllib.loads(_FILES.joinpath("presets", f"{name}.toml").read_text("utf-8"))


def limits_of(contract: str) -> Limits:
    """Return the limits of one contract, independent of the preset in use."""
    return Limits.model_validate(read_preset(contract)["limits"])


def _from_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return _flat(tomllib.loads(path.read_text("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{FILE} cannot be read: {error}.", hint="Correct it or move it away."
        ) from None
