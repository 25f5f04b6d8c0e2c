"""Settings, merged from flags, environment, ``bythebook.toml`` and presets.

Precedence, highest first: flag, environment, ``bythebook.toml`` in the working directory, the
chosen preset (``presets/*.toml``: one for each contract), default.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from bythebook import validation
from bythebook.errors import ConfigurationError, InvalidInput

_log = logging.getLogger(__name__)

AUTO = "auto"  # the embedder that the book was ingested with, else by its language

PRESETS = {
    "book": "the contract query: POST /query",
    "agent": "the contract ask: POST /ask, POST /search",
    "envelope": "the contract envelope: POST /api/query, POST /api/v2/query",
    "plain": "the contract plain: POST /api/query, POST /api/v1/query",
    "chat": "the contract chat: POST /chat/run, POST /chat/stream",
}

ENVIRONMENT: Mapping[str, tuple[str, ...]] = {
    "BYTHEBOOK_HOME": ("home",),
    "BYTHEBOOK_PRESET": ("preset",),
    "BYTHEBOOK_EMBEDDER": ("embedder",),
    "BYTHEBOOK_STORE": ("store",),
    "BYTHEBOOK_WRITER": ("writer",),
    "DATABASE_URL": ("database_url",),
    "QDRANT_URL": ("qdrant", "url"),
    "QDRANT_API_KEY": ("qdrant", "api_key"),
    "BYTHEBOOK_TOP_K": ("limits", "top_k"),
    "BYTHEBOOK_FLOOR": ("limits", "floor"),
    "BYTHEBOOK_SITE_URL": ("site", "url"),
    "BYTHEBOOK_BASE_URL": ("site", "base_url"),
    "BYTHEBOOK_HOST": ("server", "host"),
    "BYTHEBOOK_PORT": ("server", "port"),
    "BYTHEBOOK_WORKERS": ("server", "workers"),
    "BYTHEBOOK_PAGE_KEY": ("server", "page_key"),
    "BYTHEBOOK_API_QUERY": ("server", "api_query"),
    "BYTHEBOOK_LOG_QUESTIONS": ("log", "questions"),
    "BYTHEBOOK_KEYS": ("door", "keys"),
    "BYTHEBOOK_PEPPER": ("door", "pepper"),
    "BYTHEBOOK_ORIGINS": ("door", "origins"),
    "BYTHEBOOK_TRUSTED_PROXIES": ("door", "trusted_proxies"),
    "BYTHEBOOK_COUNTS": ("door", "counts"),
    "BYTHEBOOK_MODEL_URL": ("model", "base_url"),
    "BYTHEBOOK_MODEL_KEY": ("model", "api_key"),
    "BYTHEBOOK_DAILY_TOKENS": ("model", "daily_tokens"),
    "BYTHEBOOK_EMBEDDING_URL": ("embedding", "base_url"),
    "BYTHEBOOK_EMBEDDING_KEY": ("embedding", "api_key"),
    "OPENAI_API_KEY": ("accounts", "openai_key"),
    "OPENAI_BASE_URL": ("accounts", "openai_url"),
    "OPENROUTER_API_KEY": ("accounts", "openrouter_key"),
    "GOOGLE_API_KEY": ("accounts", "gemini_key"),
    "GEMINI_API_KEY": ("accounts", "gemini_key"),
    "CO_API_KEY": ("accounts", "cohere_key"),
    "COHERE_API_KEY": ("accounts", "cohere_key"),
    "OLLAMA_HOST": ("accounts", "ollama_host"),
}


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Limits(_Section):
    """Limits on requests, and the thresholds for answering."""

    top_k: int = Field(5, ge=1, description="Passages to retrieve for a question.")
    max_top_k: int = Field(20, ge=1, description="The most passages a question may ask for.")
    floor: float = Field(0.5, ge=0, le=1, description="Least calibrated score of a passage used.")
    question_chars: int | None = Field(None, ge=1, description="Longest question, in characters.")
    question_words: int | None = Field(None, ge=1, description="Longest question, in words.")
    selection_min_chars: int = Field(10, ge=1, description="Shortest selection, in characters.")
    selection_chars: int = Field(5000, ge=1, description="Longest selection, in characters.")
    selection_words: int | None = Field(None, ge=1, description="Longest selection, in words.")
    context_tokens: int = Field(4000, ge=1, description="Evidence a writer gets, in tokens.")

    def check_question(self, text: str) -> str:
        """Return the stripped question; raise InvalidInput if it is empty or too long."""
        question = _usable(text, "question").strip()
        if not question:
            raise InvalidInput("The question is empty.", hint="Ask something about the book.")
        if self.question_chars is not None and len(question) > self.question_chars:
            raise InvalidInput(
                f"The question has {len(question)} characters; {self.question_chars} are allowed.",
                hint="Ask a shorter question.",
            )
        words = len(question.split())
        if self.question_words is not None and words > self.question_words:
            raise InvalidInput(
                f"The question has {words} words; {self.question_words} are allowed.",
                hint="Ask a shorter question.",
            )
        return question

    def check_selection(self, text: str) -> str:
        selection = _usable(text, "selected text").strip()
        words = len(selection.split())
        if not self.selection_min_chars <= len(selection) <= self.selection_chars:
            raise InvalidInput(
                f"The selected text has {len(selection)} characters.",
                hint=f"Select {self.selection_min_chars} to {self.selection_chars} characters.",
            )
        if self.selection_words is not None and words > self.selection_words:
            raise InvalidInput(
                f"The selected text has {words} words.",
                hint=f"Select at most {self.selection_words} words.",
            )
        return selection

    def check_top_k(self, top_k: int | None) -> int:
        if top_k is None:
            return min(self.top_k, self.max_top_k)
        if not 1 <= top_k <= self.max_top_k:
            raise InvalidInput(
                f"top_k is {top_k}.", hint=f"Use a number from 1 to {self.max_top_k}."
            )
        return top_k

    def check_threshold(self, threshold: float | None) -> float:
        """Return the minimum score of a passage: the requested one, or the preset's."""
        if threshold is None:
            return self.floor
        number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
        if not number or not 0 <= threshold <= 1:
            raise InvalidInput(
                f"relevance_threshold is {validation.shown(threshold)}.",
                hint="Use a number from 0 to 1.",
            )
        return float(threshold)


def _usable(text: str, what: str) -> str:
    """Return the text; reject unpaired surrogates (bytes that were not UTF-8) and NULs."""
    if any("\ud800" <= char <= "\udfff" or char == "\0" for char in text):
        raise InvalidInput(f"The {what} holds characters that are no text.", hint="Send UTF-8.")
    return text


class Collection(_Section):
    """Qdrant collection, as in a contract's original system; the embedded store has none."""

    name: str = Field(
        "bythebook", min_length=1, description="Name of the collection on a Qdrant server."
    )
    existing: bool = Field(
        False, description="Read the collection as another system filled it; ingest nothing."
    )
    vector: str | None = Field(
        None, description="Of an existing collection with several vectors, the one to search."
    )
    fields: Mapping[str, str] = Field(
        {},
        description="Of an existing collection, our name of a field (text, title, section, url, "
        "file, position …) and its own.",
    )

    @model_validator(mode="before")
    @classmethod
    def _has_no_dimension(cls, given: Any) -> Any:
        """Accept and drop the setting of earlier versions, which never had an effect."""
        if not isinstance(given, Mapping) or "dimension" not in given:
            return given
        _log.warning("The setting collection.dimension has no effect; remove it.")
        return {name: value for name, value in given.items() if name != "dimension"}


class Qdrant(_Section):
    """Qdrant server or cluster. If ``url`` is set, the index is stored there."""

    url: str | None = Field(
        None, description="Address of the server; of a cluster, its nodes' with commas between."
    )
    api_key: SecretStr | None = Field(
        None, exclude=True, repr=False, description="Key of the server; never shown."
    )
    replication: int = Field(1, ge=1, description="Nodes that hold a copy of each shard.")
    shards: int = Field(
        1, ge=1, description="Parts of a collection; each weighs rare words by itself."
    )
    timeout_s: float = Field(1.0, gt=0, description="Longest wait for a search, in seconds.")

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(url.strip() for url in (self.url or "").split(",") if url.strip())

    @field_validator("url")
    @classmethod
    def _are_web_addresses(cls, value: str | None) -> str | None:
        if value is not None and not all(map(_is_bare_address, value.split(","))):
            raise ValueError("it should look like http://127.0.0.1:6333, without a key in it")
        return value


def _is_bare_address(url: str) -> bool:
    try:
        parts = urlsplit(url.strip())
        usable = parts.port is None or parts.port > 0
    except ValueError:  # invalid port, or a missing bracket
        return False
    bare = not (parts.username or parts.password or parts.query or parts.fragment)
    return usable and bare and parts.scheme in ("http", "https") and bool(parts.hostname)


def _bare(url: str | None) -> str | None:
    if url is not None and not _is_bare_address(url):
        raise ValueError("it should look like http://127.0.0.1:8080/v1, without a key in it")
    return url


class Model(_Section):
    """Language model that writes answers, if `writer` names one."""

    base_url: str | None = Field(
        None,
        description="Address of an OpenAI-compatible endpoint (vLLM, llama.cpp, a gateway) "
        "instead of the provider's own; with it goes `model.api_key` and no other key.",
    )
    api_key: SecretStr | None = Field(
        None,
        exclude=True,
        repr=False,
        description="Key of the model's endpoint, instead of the provider's own; never shown.",
    )
    timeout_s: float = Field(30, gt=0, description="Longest that a draft may take, in seconds.")
    first_token_s: float = Field(
        8, gt=0, description="Longest wait for its first token, retries included, in seconds."
    )
    gap_s: float = Field(
        10, gt=0, description="Longest silence between two of its tokens, in seconds."
    )
    max_output_tokens: int = Field(700, ge=1, description="Longest draft, in tokens.")
    temperature: float = Field(
        0, ge=0, le=2, description="How freely the model chooses its words; 0: least."
    )
    daily_tokens: int | None = Field(
        None,
        ge=1,
        description="Tokens, read and written, that a day (UTC) may cost; by default any.",
    )
    price_in: float | None = Field(
        None, ge=0, description="Price of a million tokens read, in dollars."
    )
    price_out: float | None = Field(
        None, ge=0, description="Price of a million tokens written, in dollars."
    )
    fallback: Literal["extractive", "none"] = Field(
        "extractive",
        description="Who answers when the model does not: extractive (offline), or none: an error.",
    )
    agentic: bool = Field(
        False, description="Let the model search the book again, at most three times."
    )
    cache: bool = Field(False, description="Give the same answer to the same question again.")

    _bare_address = field_validator("base_url")(_bare)


class Embedding(_Section):
    """Remote embedder, if `embedder` names one."""

    base_url: str | None = Field(
        None,
        description="Address of the embedder's endpoint instead of the provider's own; with it "
        "goes `embedding.api_key` and no other key.",
    )
    api_key: SecretStr | None = Field(
        None,
        exclude=True,
        repr=False,
        description="Key of the embedder's endpoint, instead of the provider's own; never shown.",
    )
    question_s: float = Field(
        6, gt=0, description="Longest wait for a question's vector, retries included, in seconds."
    )
    timeout_s: float = Field(
        120, gt=0, description="Longest wait for a batch of passages, retries included, in seconds."
    )
    at_once: int = Field(4, ge=1, le=64, description="Batches that are under way at once.")
    price_in: float | None = Field(
        None, ge=0, description="Price of a million tokens embedded, in dollars."
    )

    _bare_address = field_validator("base_url")(_bare)


class Accounts(_Section):
    """Provider keys and addresses from the providers' usual environment variables."""

    openai_key: SecretStr | None = Field(
        None, exclude=True, repr=False, description="Key for openai:…; never shown."
    )
    openai_url: str | None = Field(None, description="Another address for openai:….")
    openrouter_key: SecretStr | None = Field(
        None, exclude=True, repr=False, description="Key for openrouter:…; never shown."
    )
    gemini_key: SecretStr | None = Field(
        None, exclude=True, repr=False, description="Key for gemini:…; never shown."
    )
    cohere_key: SecretStr | None = Field(
        None, exclude=True, repr=False, description="Key for cohere:…; never shown."
    )
    ollama_host: str | None = Field(
        None, description="Where Ollama listens; port 11434 of this machine by default."
    )


class Site(_Section):
    """Where the book is published. Unset values are read from docusaurus.config.*."""

    url: str | None = Field(None, description="Address of the site, without a path.")
    base_url: str | None = Field(None, description="Path of the site on its host.")
    route_base_path: str | None = Field(None, description="Path of the docs below the base URL.")
    trailing_slash: bool | None = Field(None, description="Docusaurus' trailingSlash.")
    locale: str | None = Field(None, description="Language of the docs folder.")
    exclude: tuple[str, ...] = Field((), description="Globs of files that are not the book.")
    markdown_format: Literal["mdx", "md", "detect"] | None = Field(
        None, description="Docusaurus' markdown.format: mdx, md or detect."
    )

    @field_validator("url")
    @classmethod
    def _is_web_address(cls, url: str | None) -> str | None:
        if url is not None and not re.fullmatch(r"https?://[^\s/?#]+/?", url):
            raise ValueError("it should look like https://example.org")
        return url


class Database(_Section):
    """Database of the catalog, the threads and the query log."""

    timeout_s: float = Field(
        1.0, gt=0, description="Longest that a question waits for the database, in seconds."
    )


class Retention(_Section):
    """Retention times of threads and the query log."""

    idle_minutes: float = Field(
        60, gt=0, description="A thread without a message for so long is archived."
    )
    thread_days: float | None = Field(
        None,
        gt=0,
        description="A thread without a message for so long is deleted; by default none.",
    )
    query_days: float = Field(90, gt=0, description="Days that the query log is kept.")


class Log(_Section):
    """Logging of questions over HTTP and their outcomes, never of answers.

    The query log is stored in the database; the server also writes a JSON line per question.
    """

    queries: bool = Field(True, description="Keep the query log.")
    text: bool = Field(True, description="Keep the questions' words in it.")
    questions: bool = Field(False, description="Write the questions' words into the lines.")


class Server(_Section):
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=1, le=65535, description="Port to listen on.")
    api_query: Literal["envelope", "plain"] = Field(
        "envelope",
        description="Contract of `POST /api/query`, which two contracts claim: envelope or plain. "
        "The preset plain sets plain.",
    )
    workers: int = Field(
        1, ge=1, le=256, description="Processes that answer; each opens the book by itself."
    )
    heartbeat_s: float = Field(
        15, gt=0, description="Longest silence of a stream of events, in seconds."
    )
    page_key: str | None = Field(
        None,
        pattern=r"^btp_\w",
        description="Publishable key with which everyone who opens the page at / may ask and read, "
        "where keys are needed.",
    )


class AccessSettings(_Section):
    """Access over HTTP: API keys, origins, rate limits and size limits."""

    keys: Literal["auto", "required", "open"] = Field(
        "auto",
        description="Whether asking needs an API key; auto: unless the server listens on loopback "
        "with no proxy in front of it.",
    )
    pepper: SecretStr | None = Field(
        None,
        exclude=True,
        repr=False,
        min_length=16,
        description="Secret under which keys are stored; one is made in the home by default. "
        "Servers that share a database need the same; never shown.",
    )
    origins: tuple[str, ...] = Field(
        (),
        description="Pages whose scripts may ask, such as https://book.example; those of "
        "publishable keys may as well. In the environment, with commas between.",
    )
    trusted_proxies: tuple[str, ...] = Field(
        (),
        description="Networks of the proxies in front of the server, such as 10.0.0.0/8: only "
        "their X-Forwarded-For is believed. In the environment, with commas between.",
    )
    body_bytes: int = Field(
        128 * 1024,
        ge=1024,
        description="Largest body of a request, in bytes. The default holds every request that is "
        "within its contract's limits on characters, in any script and however JSON escapes it.",
    )
    per_key: int = Field(
        100, ge=1, description="Requests a minute for each key, in every contract but envelope."
    )
    per_session: int = Field(
        10, ge=1, description="Questions a minute for each session, in the contract envelope."
    )
    per_address: int = Field(
        20, ge=1, description="Questions a minute for each address, in the contract envelope."
    )
    per_reader: int = Field(
        600, ge=1, description="Pages and searches a minute for each key or address, on the page."
    )
    limit_loopback: bool = Field(
        False, description="Count what comes from this machine without a key, too."
    )
    streams_per_key: int = Field(
        5,
        ge=1,
        description="Questions of a key that are answered at once, in each worker; a stream more "
        "is refused, anything else waits.",
    )
    counts: str = Field(
        "database",
        exclude=True,
        repr=False,
        description="Where questions are counted: database (the configured one, or a file in the "
        "home), memory (one worker alone) or the address of a Redis, redis://host:6379/0.",
    )

    @field_validator("origins", "trusted_proxies", mode="before")
    @classmethod
    def _between_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("origins")
    @classmethod
    def _are_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(is_origin, value)):
            raise ValueError("each should look like https://book.example, as a browser writes it")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            ip_network(network)
        return value

    @field_validator("counts")
    @classmethod
    def _is_a_place(cls, value: str) -> str:
        if value not in ("database", "memory") and not value.startswith(("redis://", "rediss://")):
            raise ValueError("it should be database, memory or redis://host:port/number")
        return value


def is_origin(text: str) -> bool:
    """Return whether a browser would send this ``Origin``: lower case, no path or default port."""
    found = re.fullmatch(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::([1-9][0-9]{0,4}))?", text)
    return found is not None and (found[1], found[3]) not in (("http", "80"), ("https", "443"))


class Settings(_Section):
    """All settings with their defaults."""

    home: Path = Field(Path(".bythebook"), description="Folder that holds the ingested book.")
    preset: str = Field("agent", description=f"Contract to start from: {', '.join(PRESETS)}.")
    embedder: str = Field(
        AUTO,
        description='Embedding model, as "provider:model"; '
        f"{AUTO}: the one the book was ingested with, and for a new book what its language needs.",
    )
    store: str = Field(
        "edge",
        description="Where the index lives: edge (embedded Qdrant) or qdrant (a server, which "
        "`qdrant.url` implies).",
    )
    spare: Literal["words", "none"] = Field(
        "words",
        description="What answers while the index or the embedder does not: words (of the catalog) "
        "or none (an error).",
    )
    writer: str = Field(
        "extractive",
        description='Who writes answers: extractive (offline), or a model as "provider:model" with '
        "openai, openrouter, gemini or ollama; agents:model asks OpenAI's, or the one at "
        "`model.base_url`, by the OpenAI Agents SDK.",
    )
    database_url: str | None = Field(
        None,
        description="Database of the catalog and threads, SQLite or PostgreSQL; "
        "SQLite in the home by default.",
    )
    database: Database = Database()
    retention: Retention = Retention()
    log: Log = Log()
    model: Model = Model()
    embedding: Embedding = Embedding()
    accounts: Accounts = Accounts()
    limits: Limits = Limits()
    collection: Collection = Collection()
    qdrant: Qdrant = Qdrant()
    site: Site = Site()
    server: Server = Server()
    door: AccessSettings = AccessSettings()


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Settings:
    """Merge all sources of settings, the one with the highest precedence last."""
    environment = _from_environment(os.environ if environ is None else environ)
    file = _from_file((directory or Path.cwd()) / "bythebook.toml")
    merged: dict[str, Any] = {}
    for source in (file, environment, _without_nones(flags or {})):
        merged = _merge(merged, source)
    preset = str(merged.get("preset", Settings.model_fields["preset"].default))
    constants = read_preset(preset)
    if "preset" not in merged and not _reads_existing(merged):
        del constants["collection"]["name"]  # only a chosen preset sets the contract's name
    merged = _with_implied_store(_merge(constants, merged))
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        said, name = validation.message_of(error.errors(), merged)
        raise ConfigurationError(
            f"The setting {name} cannot be used: {said.removeprefix(f'{name}: ')}",
            hint="docs/reference/settings.md lists every setting.",
        ) from None


def _reads_existing(merged: Mapping[str, Any]) -> bool:
    """Return whether a collection filled by another system is read, which sets its name."""
    collection = merged.get("collection")
    return isinstance(collection, Mapping) and bool(collection.get("existing"))


def _with_implied_store(merged: dict[str, Any]) -> dict[str, Any]:
    qdrant = merged.get("qdrant")
    named = isinstance(qdrant, Mapping) and qdrant.get("url")
    return {"store": "qdrant", **merged} if named else merged


def read_preset(name: str) -> dict[str, Any]:
    if name not in PRESETS:
        raise ConfigurationError(
            f"There is no preset {name!r}.", hint=f"Use one of {', '.join(PRESETS)}."
        )
    text = (
        resources.files("bythebook.config").joinpath("presets", f"{name}.toml").read_text("utf-8")
    )
    return tomllib.loads(text)


def limits_of(contract: str) -> Limits:
    """Return the limits of one contract, independent of the preset in use."""
    return Limits.model_validate(read_preset(contract)["limits"])


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, path in ENVIRONMENT.items():
        if environ.get(name):
            settings = _merge(settings, _nested(path, environ[name]))
    return settings


def _from_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"bythebook.toml cannot be read: {error}.", hint="Correct it or move it away."
        ) from None


def _nested(path: tuple[str, ...], value: object) -> dict[str, Any]:
    for name in reversed(path):
        value = {name: value}
    assert isinstance(value, dict)
    return value


def _merge(weak: Mapping[str, Any], strong: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(weak)
    for name, value in strong.items():
        if isinstance(value, Mapping) and isinstance(merged.get(name), Mapping):
            merged[name] = _merge(merged[name], value)
        else:
            merged[name] = value
    return merged


def _without_nones(flags: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in flags.items():
        if isinstance(value, Mapping):
            kept[name] = _without_nones(value)
        elif value is not None:
            kept[name] = value
    return kept
