"""Settings: precedence, presets, limits, secrets and error messages."""

from pathlib import Path
from typing import Any

import pytest

from bythebook.config.settings import ENVIRONMENT, PRESETS, Settings, limits_of, load_settings
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
    assert _load(tmp_path).store == "edge"
    assert _load(tmp_path, QDRANT_URL="http://127.0.0.1:6333").store == "qdrant"
    assert _load(tmp_path, QDRANT_URL="http://q:6333", BYTHEBOOK_STORE="edge").store == "edge"
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
    for path in ENVIRONMENT.values():
        model: Any = Settings
        for name in path:
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
