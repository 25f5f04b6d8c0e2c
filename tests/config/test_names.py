"""Settings under their former names: equal to the new ones, with one warning each."""

from pathlib import Path
from typing import Any

import pytest

from bythebook.config.names import read_table
from bythebook.config.settings import ENVIRONMENT, PRESETS, Settings, load_settings

_TABLES = read_table("renamed")
_RENAMED = [
    ({"door": {"keys": "open"}}, {"access": {"keys": "open"}}),
    ({"spare": "none"}, {"index_fallback": "none"}),
    ({"spare": "words"}, {"index_fallback": "keyword"}),
    ({"door": {"counts": "memory"}}, {"access": {"rate_limit_store": "memory"}}),
    ({"limits": {"floor": 0.25}}, {"limits": {"min_score": 0.25}}),
    ({"model": {"first_token_s": 3}}, {"model": {"first_token_timeout_s": 3}}),
    ({"model": {"gap_s": 3}}, {"model": {"idle_timeout_s": 3}}),
    ({"embedding": {"question_s": 3}}, {"embedding": {"query_timeout_s": 3}}),
    ({"embedding": {"at_once": 3}}, {"embedding": {"concurrency": 3}}),
    ({"preset": "book"}, {"preset": "query"}),
    ({"preset": "agent"}, {"preset": "ask"}),
]


def _load(
    flags: dict[str, Any] | None = None, directory: Path | None = None, **environ: str
) -> Any:
    return load_settings(flags, environ=environ, directory=directory or Path("/nonexistent"))


@pytest.mark.parametrize(("old", "new"), _RENAMED)
def test_old_and_new_names_are_equal(
    old: dict[str, Any], new: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    expected = _load(new)
    assert not caplog.messages
    assert expected != _load() or new in ({"index_fallback": "keyword"}, {"preset": "ask"})
    assert _load(old) == expected
    warnings = caplog.messages
    assert len(warnings) == len(set(warnings)) > 0
    assert all(" is now called " in warning for warning in warnings)


def test_every_rename_of_the_tables_is_tried() -> None:
    tried = str([old for old, _ in _RENAMED])
    names = {old.rpartition(".")[2] for old, new in _TABLES["settings"].items() if new}
    values = {old for values in _TABLES["values"].values() for old in values}
    assert all(repr(name) in tried for name in names | values)


def test_an_old_name_in_the_file_is_equal_and_warned_about_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "bythebook.toml").write_text('[door]\norigins = ["https://book.example"]\n')
    assert _load(directory=tmp_path).access.origins == ("https://book.example",)
    assert len(caplog.messages) == 1
    assert "The setting door is now called access" in caplog.text


@pytest.mark.parametrize(
    ("variable", "value", "section", "name"),
    [
        ("BYTHEBOOK_FLOOR", "0.25", "limits", "min_score"),
        ("BYTHEBOOK_COUNTS", "memory", "access", "rate_limit_store"),
    ],
)
def test_an_old_variable_is_equal_and_warned_about_once(
    variable: str, value: str, section: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    new_variable = _TABLES["variables"][variable]
    old, new = _load(**{variable: value}), _load(**{new_variable: value})
    assert old == new
    assert str(getattr(getattr(old, section), name)) == value
    assert caplog.messages == [
        f"The environment variable {variable} is now called {new_variable}; the old one still "
        "works."
    ]


def test_if_both_names_are_given_the_new_one_wins(caplog: pytest.LogCaptureFixture) -> None:
    settings = _load(
        {
            "limits": {"floor": 0.1, "min_score": 0.2},
            "door": {"keys": "open", "per_key": 7},
            "access": {"keys": "required"},
        },
        BYTHEBOOK_COUNTS="memory",
        BYTHEBOOK_RATE_LIMIT_STORE="redis://h:1/0",
    )
    assert settings.limits.min_score == 0.2
    assert (settings.access.keys, settings.access.per_key) == ("required", 7)
    assert settings.access.rate_limit_store == "redis://h:1/0"
    assert len(caplog.messages) == 3
    assert all("both are given, and the new one is used" in line for line in caplog.messages)


def test_an_old_name_keeps_the_precedence_of_its_source(tmp_path: Path) -> None:
    (tmp_path / "bythebook.toml").write_text("[limits]\nmin_score = 0.1\n")
    assert _load(directory=tmp_path, BYTHEBOOK_FLOOR="0.2").limits.min_score == 0.2


def test_settings_made_in_python_accept_old_names(caplog: pytest.LogCaptureFixture) -> None:
    assert Settings.model_validate({"door": {"keys": "open"}}).access.keys == "open"
    assert "door is now called access" in caplog.text


def test_a_removed_setting_is_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert _load({"collection": {"name": "mine", "dimension": 1024}}).collection.name == "mine"
    assert caplog.messages == ["The setting collection.dimension has no effect; remove it."]


def test_the_tables_lead_to_current_names() -> None:
    for old, new in _TABLES["settings"].items():
        section, _, name = old.rpartition(".")
        model: Any = Settings.model_fields[section].annotation if section else Settings
        assert name not in model.model_fields
        assert not new or new.rpartition(".")[2] in model.model_fields
    assert set(_TABLES["values"]["preset"].values()) <= set(PRESETS)
    assert set(_TABLES["variables"].values()) <= set(ENVIRONMENT)
    assert set(_TABLES["variables"]).isdisjoint(ENVIRONMENT)
