"""``bythebook keys``: a key is shown once, listed without its secret, and revoked."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bythebook.access_stores import open_keys
from bythebook.cli.main import app
from bythebook.config.settings import load_settings
from bythebook.errors import InvalidInput, NotFound
from bythebook.interfaces.access import ApiKey


def run(home: Path, *arguments: str) -> str:
    result = CliRunner().invoke(
        app, ["keys", *arguments, "--home", str(home)], standalone_mode=False
    )
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_a_key_is_created_listed_and_revoked(tmp_path: Path) -> None:
    made = json.loads(run(tmp_path, "create", "--label", "the reading room", "--json"))
    assert made["key"].startswith(f"btk_{made['id']}_")
    listed = run(tmp_path, "list")
    assert made["id"] in listed and "the reading room" in listed and "active" in listed
    assert made["key"] not in listed + run(tmp_path, "list", "--json")
    assert json.loads(run(tmp_path, "revoke", made["id"], "--json")) == {"revoked": made["id"]}
    (key,) = json.loads(run(tmp_path, "list", "--json"))
    assert key["revoked_at"] and not key["publishable"]
    assert "revoked" in run(tmp_path, "list")


def test_only_the_key_is_printed_to_stdout(tmp_path: Path) -> None:
    made = run(tmp_path, "create").strip()
    assert made.startswith("btk_") and "\n" not in made


def test_a_publishable_key_needs_origins(tmp_path: Path) -> None:
    pages = ["https://book.example", "http://localhost:3000"]
    options = [part for page in pages for part in ("--origin", page)]
    made = json.loads(run(tmp_path, "create", "--publishable", *options, "--json"))
    assert made["key"].startswith("btp_") and made["origins"] == pages
    for wrong in (["--publishable"], ["--origin", pages[0]], ["--publishable", "--origin", "*"]):
        with pytest.raises(InvalidInput):
            run(tmp_path, "create", *wrong)


def test_an_unknown_key_cannot_be_revoked(tmp_path: Path) -> None:
    assert "no keys" in run(tmp_path, "list")
    with pytest.raises(NotFound):
        run(tmp_path, "revoke", "0" * 16)


def test_an_authors_key_is_listed_as_one(tmp_path: Path) -> None:
    made = [json.loads(run(tmp_path, "create", *role, "--json")) for role in ([], ["--author"])]
    assert [key["author"] for key in made] == [False, True]
    assert [key["author"] for key in json.loads(run(tmp_path, "list", "--json"))] == [False, True]
    roles = {line.split()[0]: line.split()[3] for line in run(tmp_path, "list").splitlines()}
    assert roles == {made[0]["id"]: "secret", made[1]["id"]: "author"}
    with pytest.raises(InvalidInput):
        run(tmp_path, "create", "--author", "--publishable", "--origin", "https://book.example")


@pytest.mark.parametrize("label", ["a\nb", "a\rb", "a\x1b]0;b\x07", "a\u2028b", "a\x85b", "a\0b"])
def test_a_label_cannot_forge_a_row(tmp_path: Path, label: str) -> None:
    with pytest.raises(InvalidInput):
        run(tmp_path, "create", "--label", label)
    store = open_keys(load_settings({"home": tmp_path}))
    key = ApiKey("0" * 16, "0" * 64, label, datetime.now(UTC))  # of an older version
    asyncio.run(store.add(key))
    (row,) = run(tmp_path, "list").splitlines()
    assert not re.search("[\0-\x1f\x7f-\x9f\u2028\u2029]", row)
