"""With --json, every error is JSON on stdout, a sentence on stderr, and the same exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bythebook.cli import ask as ask_command
from bythebook.contracts.ask import AgentError
from bythebook.errors import BookError, StoreFailed, WriterFailed
from tests.support.command import run

_NOWHERE = ("--home", "nowhere")
_HOME = ("--home", "small")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("ask", "", *_HOME), "The question is empty."),
        (("ask", " \t ", *_HOME), "The question is empty."),
        (("ask", "x" * 2001, *_HOME), "2000 are allowed"),
        (("ask", *_HOME), "There is no question."),
        (("ask", "kite", *_NOWHERE), "bythebook ingest"),
        (("ask", "kite", "--top-k", "21", *_HOME), "from 1 to 20"),
        (("ask", "kite", "--relevance-threshold", "1.5", *_NOWHERE), "from 0 to 1"),
        (("ask", "kite", "--selected-text", "short", *_HOME), "Select 10"),
        (("ask", "kite", "--embedder", "acme:big", *_HOME), "provider:model"),
        (("ask", "kite", "--embedder", "local:x", *_HOME), "minilm"),
        (("ask", "kite", "--preset", "x", *_HOME), "envelope"),
        (("ask", "--batch", "nowhere.jsonl", *_HOME), "cannot be read"),
        (("ask", "kite", "--batch", "nowhere.jsonl", *_NOWHERE), "no other text"),
        (("ask", "kite", "--unknown"), "--unknown"),
        (("search", "kite", *_NOWHERE), "bythebook ingest"),
        (("search", "kite", "--top-k", "five", *_NOWHERE), "five"),
        (("search", "kite", "--relevance-threshold", "-1", *_NOWHERE), "from 0 to 1"),
        (("chat", *_NOWHERE), "bythebook ingest"),
        (("serve", *_NOWHERE), "bythebook ingest"),
        (("eval", "nowhere.jsonl", *_NOWHERE), "cannot be read"),
        (("check", "index", *_NOWHERE), "bythebook ingest"),
        (("check", "links", *_NOWHERE), "bythebook ingest"),
        (("threads", "list", *_NOWHERE), "bythebook ingest"),
        (("threads", "show", "nope", *_NOWHERE), "bythebook ingest"),
        (("threads", "delete", "nope", *_NOWHERE), "bythebook ingest"),
        (("keys", "revoke", "nope", *_NOWHERE), "keys list"),
        (("keys", "unknown"), "unknown"),
        (("fly",), "fly"),
    ],
)
def test_bad_input_is_one_message_with_a_hint_and_an_agent_error(
    arguments: tuple[str, ...],
    expected: str,
    small_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small").symlink_to(small_home)
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr
    if arguments[0] == "serve":  # it has no --json
        return
    done = run(*arguments, "--json")
    told = json.loads(done.stdout)
    assert AgentError.model_validate(told).model_dump(mode="json") == told
    assert set(told) == {"error_type", "message", "details"}
    assert told["error_type"] == "validation"
    assert " ".join(told["message"].split()) in " ".join(done.stderr.split())
    assert "Input should" not in done.stderr + done.stdout


@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_an_ingest_that_cannot_start_prints_an_ingest_result(
    empty: bool, more: tuple[str, ...], tmp_path: Path
) -> None:
    if empty:
        (tmp_path / "docs").mkdir()
    home = ("--home", str(tmp_path / "nowhere"))
    done = run("ingest", str(tmp_path / "docs"), *home, *more, "--json")
    told = json.loads(done.stdout)
    assert (told["files_processed"], told["chunks_created"]) == (0, 0)
    assert told["exit_code"] == done.returncode == 2
    [sentence] = told["errors"]
    assert sentence in done.stderr


def test_wrong_options_of_ingest_print_an_ingest_result() -> None:
    done = run("ingest", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["errors"] == ["Missing argument 'DOCS'."]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StoreFailed("The store is away."), "retrieval"),
        (WriterFailed("The model is away."), "generation"),
        (OSError(28, "No space left on device"), "retrieval"),
        (RuntimeError("a secret"), "retrieval"),
    ],
)
def test_a_failure_while_running_has_the_matching_error_type(
    error: Exception, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(ask_command.options, "load", fail)
    done = run("ask", "kite", "--json")
    assert done.returncode == 3
    told = json.loads(done.stdout)
    assert told["error_type"] == kind
    assert "secret" not in told["message"]
    if isinstance(error, BookError):
        assert told["message"] == str(error)


def test_json_after_the_end_of_the_options_is_a_question(tmp_path: Path) -> None:
    done = run("ask", "--home", str(tmp_path / "nowhere"), "--", "--json")
    assert (done.returncode, done.stdout) == (2, "")
