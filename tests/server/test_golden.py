"""Responses of each contract to each outcome, byte for byte: ``golden/<contract>/<case>.json``.

``BYTHEBOOK_REWRITE_GOLDEN=1 pytest tests/server/test_golden.py`` rewrites the files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from bythebook import errors
from bythebook.contracts import ask as ask_contract
from bythebook.contracts import ask as reply_documents
from bythebook.contracts import chat, envelope, plain
from bythebook.contracts import query as query_contract
from bythebook.contracts import query as query_documents
from bythebook.contracts.errors import Call, Fail
from bythebook.refusals import DISCLAIMER, Refusal, RefusalType
from bythebook.server import examples
from bythebook.server.contracts.chat import threads
from bythebook.server.contracts.openai import completions as openai
from bythebook.server.requests import failure
from bythebook.types import Answer, Confidence, Level, Question, Reply

_GOLDEN = Path(__file__).with_name("golden")
_CALL = replace(examples.CALL, elapsed_ms=12.3)
Case = Callable[[], dict[str, Any]]
_SECRET = "/home/author/.bythebook"


def _answers() -> dict[str, Reply]:
    """Answers: plain, with two quotes of one section, with low confidence, from a selection."""
    answer, evidence = examples.ANSWERED.outcome, examples.EVIDENCE
    assert isinstance(answer, Answer)
    [sentence], [citation] = answer.sentences, answer.citations
    quote = "A topic is a named channel with one type of message."
    second = replace(citation, number=2, quote=quote, score=0.91)
    two = replace(
        answer,
        sentences=(sentence, replace(sentence, text=quote, citations=(2,))),
        citations=(citation, second),
    )
    low = replace(
        evidence,
        confidence=Confidence(0.66, 0.6, 0.7, 2, 0.2, Level.LOW),
        answerability=0.66,
    )
    marked = Question("What are topics?", selection=quote, thread=examples.SESSION)
    here = replace(
        citation.place, file="", title="Selected text", url="", module="", chapter="",
        section=("Selected text",),
    )  # fmt: skip
    chosen = replace(second, number=1, place=here, url="", link="")
    return {
        "answer": examples.ANSWERED,
        "answer-two-quotes": replace(examples.ANSWERED, outcome=two),
        "answer-low": replace(
            examples.ANSWERED, outcome=replace(answer, disclaimer=DISCLAIMER), evidence=low
        ),
        "answer-selection": replace(
            examples.ANSWERED,
            question=marked,
            outcome=replace(
                answer, sentences=(replace(sentence, text=quote),), citations=(chosen,)
            ),
        ),
    }


def _refusals() -> dict[str, Reply]:
    known = examples.REFUSED.outcome
    assert isinstance(known, Refusal)
    return {
        f"refusal-{kind}": replace(examples.REFUSED, outcome=replace(known, type=kind))
        for kind in RefusalType
    }


_FAILED: dict[str, errors.BookError] = {
    "validation": examples.ERRORS[400],
    "not-allowed": examples.ERRORS[401],
    "not-found": examples.ERRORS[404],
    "too-large": examples.ERRORS[413],
    "rate-limit": errors.RateLimited("Too many questions.", retry_after=11.2, hint="Wait a bit."),
    "store-down": errors.StoreFailed("http://10.0.0.1:6333 cannot be reached.", hint="Start it."),
    "store-slow": errors.StoreFailed("10.0.0.1 took 1000 ms.", timed_out=True),
    "embedder-down": errors.EmbedderFailed("https://api.example/v1 said 500."),
    "writer-down": errors.WriterFailed("The model broke off with key sk-123."),
    "writer-slow": errors.WriterFailed("The model took 30 s.", timed_out=True),
    "database-down": errors.DatabaseFailed("postgresql://user:pw@db/book did not answer."),
    "not-ingested": errors.NotIngested(f"{_SECRET} holds no book.", hint=f"Look into {_SECRET}."),
    "settings-wrong": errors.ConfigurationError(f"The home {_SECRET} is not a folder."),
    "index-damaged": errors.IndexDamaged(f"{_SECRET}/generations is damaged."),
}


def _ok(body: BaseModel) -> dict[str, Any]:
    return {"status": 200, "body": body.model_dump(mode="json")}


def _cases_of(
    show: Callable[[Reply], BaseModel], fail: Fail
) -> dict[str, Callable[[], dict[str, Any]]]:
    """Every case of a contract, by name."""

    def failed(error: errors.BookError) -> dict[str, Any]:
        response = failure(error, _CALL, fail)
        document = {"status": response.status_code, "body": json.loads(bytes(response.body))}
        wait = response.headers.get("retry-after")
        return document if wait is None else document | {"Retry-After": wait}

    replies = {
        name: lambda reply=reply: _ok(show(reply))
        for name, reply in (_answers() | _refusals()).items()
    }
    return replies | {name: lambda error=error: failed(error) for name, error in _FAILED.items()}


_CONTRACTS: dict[str, dict[str, Case]] = {
    "query": _cases_of(query_documents.show, query_contract.fail),
    "ask": _cases_of(reply_documents.show, ask_contract.fail),
    "envelope": _cases_of(lambda reply: envelope.show(reply, _CALL), envelope.fail),
    "plain": _cases_of(plain.show, plain.fail),
    "chat": _cases_of(lambda reply: chat.show(reply, _CALL), chat.fail),
    "openai": _cases_of(lambda reply: openai.show(reply, _CALL), openai.fail),
}
_CONTRACTS["chat"] |= {
    "thread": lambda: _ok(chat.show_thread(examples.THREAD)),
    "threads": lambda: _ok(threads.show_threads(examples.THREADS * 2, limit=1, offset=4)),
    "answer-not-kept": lambda: _ok(
        chat.show(replace(examples.ANSWERED, persisted=False), examples.CALL)
    ),
}
_CASES = [(contract, case) for contract, cases in _CONTRACTS.items() for case in cases]


@pytest.mark.parametrize(("contract", "case"), _CASES)
def test_response_equals_the_golden_file(contract: str, case: str) -> None:
    document = json.dumps(_CONTRACTS[contract][case](), indent=2, ensure_ascii=False) + "\n"
    path = _GOLDEN / contract / f"{case}.json"
    if os.environ.get("BYTHEBOOK_REWRITE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document, "utf-8")
    assert path.read_text("utf-8") == document


def test_every_golden_file_belongs_to_a_case() -> None:
    files = {(path.parent.name, path.stem) for path in _GOLDEN.rglob("*.json")}
    assert files == set(_CASES)


def test_errors_contain_no_path_address_or_key() -> None:
    for contract, case in _CASES:
        if case in _FAILED:
            document = json.dumps(_CONTRACTS[contract][case]())
            for secret in (_SECRET, "10.0.0.1", "api.example", "sk-123", "postgresql", "pw@"):
                assert secret not in document, (contract, case)


def test_every_call_gets_its_own_request_id() -> None:
    one, other = Call(), Call()
    assert one.request_id != other.request_id
