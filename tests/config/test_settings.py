"""Settings: precedence, presets, limits, secrets and error messages."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from bythebook.config.settings import (
    ENVIRONMENT,
    PRESETS,
    SENT_TO,
    Settings,
    limits_of,
    load_settings,
)
from bythebook.errors import ConfigurationError, InvalidInput


def _load(
    tmp_path: Path, toml: str = "", flags: dict[str, object] | None = None, **env: str
) -> Settings:
    if toml:
        (tmp_path / "bythebook.toml").write_text(toml)
    return load_settings(flags, environ=env, directory=tmp_path)


def test_flag_over_environment_over_file_over_default(tmp_path: Path) -> None:
    toml = 'home = "from-file"\n[limits]\ntop_k = 7\n'
    assert _load(tmp_path).limits.top_k == 5
    assert _load(tmp_path, toml).limits.top_k == 7
    assert _load(tmp_path, toml, BYTHEBOOK_TOP_K="8").limits.top_k == 8
    flags = {"limits": {"top_k": 9}, "home": None}
    settings = _load(tmp_path, toml, flags, BYTHEBOOK_TOP_K="8")
    assert settings.limits.top_k == 9
    assert settings.home == Path("from-file")


def test_the_file_overrides_the_preset(tmp_path: Path) -> None:
    settings = _load(tmp_path, 'preset = "chat"\n[limits]\nmin_score = 0.6\n')
    assert (settings.limits.min_score, settings.limits.max_top_k) == (0.6, 10)


@pytest.mark.parametrize(
    ("name", "top_k", "most", "min_score", "collection"),
    [
        ("query", 5, 5, 0.75, "physical_ai_textbook"),
        ("ask", 5, 20, 0.5, "physical-ai-textbook"),
        ("envelope", 5, 20, 0.4, "physical-ai-textbook"),
        ("plain", 5, 5, 0.5, "physical-ai-textbook-v1"),
        ("chat", 5, 10, 0.7, "textbook_chunks"),
    ],
)
def test_presets_hold_the_constants_of_their_contract(
    name: str, top_k: int, most: int, min_score: float, collection: str
) -> None:
    settings = load_settings({"preset": name}, environ={}, directory=Path("/nonexistent"))
    limits = settings.limits
    assert (limits.top_k, limits.max_top_k, limits.min_score) == (top_k, most, min_score)
    assert settings.collection.name == collection
    assert limits_of(name) == limits


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "bythebook"),
        ('preset = "ask"', "physical-ai-textbook"),
        ('[collection]\nname = "mine"', "mine"),
        ("[collection]\nexisting = true", "physical-ai-textbook"),
    ],
)
def test_only_a_chosen_preset_names_the_collection(tmp_path: Path, text: str, name: str) -> None:
    assert _load(tmp_path, text).collection.name == name


def test_errors_name_the_exceeded_limit() -> None:
    with pytest.raises(InvalidInput, match="500 are allowed"):
        limits_of("envelope").check_question("x" * 501)
    with pytest.raises(InvalidInput, match="501 words"):
        limits_of("plain").check_question("word " * 501)
    with pytest.raises(InvalidInput, match="at most 200 words"):
        limits_of("plain").check_selection("word " * 201)
    assert limits_of("plain").check_question("word " * 500)


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("nonsense = 1", "nonsense"),
        ("[limits]\ntop_k = 0", "limits.top_k"),
        ("not toml", "bythebook.toml"),
        ('preset = "s9"', "s9"),
    ],
)
def test_an_invalid_setting_is_named(tmp_path: Path, toml: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        _load(tmp_path, toml)


def test_a_qdrant_url_selects_the_qdrant_store(tmp_path: Path) -> None:
    assert _load(tmp_path).store == "files"
    assert _load(tmp_path, QDRANT_URL="http://127.0.0.1:6333").store == "qdrant"
    assert _load(tmp_path, QDRANT_URL="http://q:6333", BYTHEBOOK_STORE="files").store == "files"
    settings = _load(tmp_path, '[qdrant]\nurl = "https://a.example:6333, http://b.example"\n')
    assert settings.store == "qdrant"
    assert settings.qdrant.urls == ("https://a.example:6333", "http://b.example")


@pytest.mark.parametrize(
    "url", ["q:6333", "ftp://q", "http:///q", "http://q:99999", "http://[::1", "http://me:key@q"]
)
def test_an_invalid_url_is_refused_without_being_shown(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"qdrant\.url") as failure:
        _load(tmp_path, QDRANT_URL=url)
    assert url not in str(failure.value)


def test_the_qdrant_key_is_never_shown(tmp_path: Path) -> None:
    settings = _load(tmp_path, QDRANT_URL="http://q:6333", QDRANT_API_KEY="open-sesame")
    assert settings.qdrant.api_key is not None
    assert settings.qdrant.api_key.get_secret_value() == "open-sesame"
    shown = [repr(settings), str(settings), str(settings.model_dump()), settings.model_dump_json()]
    assert not any("open-sesame" in text for text in shown)


def test_every_variable_names_a_setting() -> None:
    for setting in ENVIRONMENT.values():
        model: Any = Settings
        for name in setting.split("."):
            assert name in model.model_fields
            model = model.model_fields[name].annotation


def test_every_preset_documents_its_constants() -> None:
    from bythebook.config import settings

    folder = Path(settings.__file__).parent / "presets"
    assert sorted(path.stem for path in folder.glob("*.toml")) == sorted(PRESETS)
    for path in folder.glob("*.toml"):
        for line in path.read_text().splitlines():
            if " = " in line and not line.startswith("selection_chars"):
                assert "#" in line, f"{path.name}: {line}"


_EVIL = "https://evil.example/v1"


@pytest.mark.parametrize("secret", sorted(SENT_TO))
def test_a_secret_of_the_environment_is_not_for_an_address_of_the_file(
    tmp_path: Path, secret: str
) -> None:
    variables = {name: variable for variable, name in ENVIRONMENT.items()}
    key, (section, name) = variables[secret], SENT_TO[secret].split(".")
    toml = f'[{section}]\n{name} = "{_EVIL}"\n'
    with pytest.raises(ConfigurationError, match=f"{key} is not sent") as failure:
        _load(tmp_path, toml, **{key: "sk-secret"})
    assert variables[SENT_TO[secret]] in failure.value.hint
    with pytest.raises(ConfigurationError, match="is not sent"):
        _load(tmp_path, toml, {section: {"api_key": "sk-secret"}})
    # An address of the environment or a flag gets the secret, and one of the file its own.
    _load(tmp_path, toml, **{key: "sk-secret", variables[SENT_TO[secret]]: "https://mine.example"})
    _load(tmp_path, toml, {section: {name: "https://mine.example"}}, **{key: "sk-secret"})
    _load(tmp_path, f'{toml}api_key = "of the file"\n')
    _load(tmp_path, toml, OPENAI_API_KEY="sk-secret")  # not sent to an address of the settings


def test_every_secret_has_a_rule() -> None:
    secrets = {
        f"{section}.{name}"
        for section, model in Settings.model_fields.items()
        for name, field in getattr(model.annotation, "model_fields", {}).items()
        if "SecretStr" in str(field.annotation)
    }
    accounts = {name for name in secrets if name.startswith("accounts.")}
    assert secrets - accounts - set(SENT_TO) == {"access.pepper"}  # never sent
    assert accounts


@pytest.mark.parametrize(
    ("toml", "variable"),
    [
        (f'[accounts]\nopenai_url = "{_EVIL}"', "OPENAI_BASE_URL"),
        ('[accounts]\nollama_host = "evil.example"', "OLLAMA_HOST"),
        ('[accounts]\nopenai_key = "sk-file"', "OPENAI_API_KEY"),
        ('database_url = "postgresql://me@evil.example/book"', "DATABASE_URL"),
        ('database_url = "postgresql+psycopg:///book?host=evil.example"', "DATABASE_URL"),
    ],
)
def test_the_file_cannot_set_what_belongs_to_the_environment(
    tmp_path: Path, toml: str, variable: str
) -> None:
    with pytest.raises(ConfigurationError, match="cannot set") as failure:
        _load(tmp_path, toml)
    assert variable in failure.value.hint
    with pytest.raises(ConfigurationError):
        _load(tmp_path, 'accounts = "https://evil.example"')
    assert _load(tmp_path, 'database_url = "sqlite:///book.db"').database_url


def test_settings_know_what_is_from_the_file(tmp_path: Path) -> None:
    toml = (
        'writer = "extractive"\nindex_fallback = "none"\n[qdrant]\nurl = "http://q:6333"\n'
        "[limits]\nmin_score = 0.5\n[collection.fields]\ntext = 'body'\n"
    )
    settings = _load(tmp_path, toml, BYTHEBOOK_WRITER="extractive")
    assert settings.from_file == (
        *("index_fallback", "qdrant.url", "limits.min_score", "collection.fields"),
    )
    assert pickle.loads(pickle.dumps(settings)).from_file == settings.from_file
    assert _load(tmp_path / "elsewhere").from_file == ()
