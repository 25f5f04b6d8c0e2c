"""``bythebook threads`` on a home with stored conversations."""

import asyncio
import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bythebook.cli.main import app
from bythebook.errors import NotFound
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.threads import SqlThreads
from bythebook.types import Message, Role

_OLD, _NEW = str(uuid.uuid4()), str(uuid.uuid4())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    async def talk() -> None:
        threads = SqlThreads(open_database(None, tmp_path), deadline_s=60)
        now = datetime.now(UTC)
        for number in range(30):
            await threads.append(_OLD, _exchange(number, now - timedelta(days=40)), owner="key")
        await threads.append(_NEW, _exchange(0, now), owner=None)
        await threads.close()

    asyncio.run(talk())
    return tmp_path


def _exchange(number: int, when: datetime) -> list[Message]:
    question = Message(Role.USER, f"What is kite {number}?", when)
    return [question, Message(Role.ASSISTANT, f"[b]{number}[/b]", when, 0.5)]


def _run(*arguments: str, home: Path) -> str:
    result = CliRunner().invoke(app, ["threads", *arguments, "--home", str(home)])
    if result.exception is not None:
        raise result.exception
    return result.output


def test_list_shows_all_threads_newest_first(home: Path) -> None:
    listed = json.loads(_run("list", "--json", home=home))
    assert [(one["id"], one["messages"], one["owner"]) for one in listed] == [
        (_NEW, 2, None),
        (_OLD, 60, "key"),
    ]
    lines = _run("list", "--limit", "1", "--offset", "1", home=home).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(_OLD)


def test_show_prints_the_last_fifty_messages_or_all(home: Path) -> None:
    text = _run("show", _OLD, home=home)
    assert "10 earlier messages" in text
    assert "What is kite 29?" in text
    assert "[b]29[/b]" in text
    assert "What is kite 4?" not in text
    assert "What is kite 4?" in _run("show", _OLD, "--all", home=home)
    assert len(json.loads(_run("show", _OLD, "--json", home=home))["messages"]) == 50


def test_archive_archives_only_idle_threads(home: Path) -> None:
    assert _run("archive", home=home) == "1 thread archived\n"
    assert json.loads(_run("archive", "--json", home=home)) == {"threads_archived": 0}
    states = {
        one["id"]: one["archived_at"] for one in json.loads(_run("list", "--json", home=home))
    }
    assert states[_OLD] is not None
    assert states[_NEW] is None


def test_archive_with_an_id_archives_an_active_thread(home: Path) -> None:
    assert _run("archive", _NEW, home=home) == "1 thread archived\n"


def test_purge_deletes_by_age(home: Path) -> None:
    assert json.loads(_run("purge", "--json", home=home))["threads_purged"] == 0
    assert json.loads(_run("purge", "--days", "30", "--json", home=home))["threads_purged"] == 1
    assert [one["id"] for one in json.loads(_run("list", "--json", home=home))] == [_NEW]


def test_export_contains_every_message(home: Path) -> None:
    rows = [json.loads(line) for line in _run("export", home=home).splitlines()]
    assert [len(row["messages"]) for row in rows] == [2, 60]
    assert json.loads(_run("export", "--json", home=home)) == rows
    assert json.loads(_run("export", _OLD, home=home)) == rows[1]


def test_delete_is_permanent(home: Path) -> None:
    assert _run("delete", _OLD, home=home) == "1 thread deleted\n"
    for command in ("delete", "show", "export", "archive"):
        with pytest.raises(NotFound) as told:
            _run(command, _OLD, home=home)
        assert told.value.exit_code == 2
