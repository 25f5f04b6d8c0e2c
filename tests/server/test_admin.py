"""The author's report over HTTP: what it says, what it keeps to itself, and who may see it."""

import asyncio
import csv
import io
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bythebook.book import Book
from bythebook.config.settings import AccessSettings, ServerSettings, Settings
from bythebook.conversations.query_log import LogQueue
from bythebook.interfaces.conversations import Feedback, LoggedQuery
from bythebook.providers.testing import MemoryFeedback, MemoryQueryLog
from bythebook.server.access import make_key
from bythebook.server.admin import harmless
from bythebook.server.app import create_app
from bythebook.server.report import Reporter, percentiles
from tests.server.access_fixtures import PEPPER, access_of
from tests.server.conftest import FragileEmbedder, small_library

_AT_HOME = ("127.0.0.1", 50000)


def _asked(text: str, status: str, score: float, ms: int = 20) -> LoggedQuery:
    return LoggedQuery(
        id=str(uuid.uuid4()),
        session=None,
        text=text,
        selection_length=None,
        mode="standard_rag",
        status=status,
        refusal="low_relevance" if status == "refused" else None,
        passages=5,
        best_score=score,
        total_ms=ms,
        asked_at=datetime.now(UTC) - timedelta(days=1),
    )


_LOGGED = [
    _asked("How heavy is a kite?", "success", 0.9),
    _asked("Who invented the harmonica?", "refused", 0.1, 8),
    _asked("=HYPERLINK(1) harmonica invented", "refused", 0.1, 8),
    _asked("Is paper heavy?", "success", 0.45, 90),
    _asked("<script>alert(1)</script>", "refused", 0.0),
]


async def _library(folder: Path, *, with_text: bool = True, **parts: object) -> Book:
    log, feedback = MemoryQueryLog(), MemoryFeedback()
    await log.record([row if with_text else replace(row, text="") for row in _LOGGED])
    told = Feedback(str(uuid.uuid4()), None, "down", "wrong", "<b>Bold</b>", datetime.now(UTC))
    await feedback.add(told)
    queue = LogQueue(log, with_text=with_text)
    return await small_library(folder, **({"log": queue, "feedback": feedback} | parts))


@pytest.fixture
async def library(book_folder: Path) -> Book:
    return await _library(book_folder)


@pytest.fixture
def author(library: Book) -> Iterator[TestClient]:
    with TestClient(create_app(library), "http://127.0.0.1", client=_AT_HOME) as client:
        yield client


def test_the_report_counts_what_was_asked(author: TestClient) -> None:
    told = author.get("/admin/report.json").json()
    assert told["questions"] == {"asked": 5, "answered": 2, "refused": 3, "failed": 0}
    assert len(told["days"]) == 30
    assert told["days"][-2]["refused"] == 3
    assert told["latency_ms"] == {"p50": 20, "p90": 90, "p95": 90, "p99": 90}
    assert told["refusals"] == {"low_relevance": 3}
    assert told["feedback"] == {"up": 0, "down": 1, "reasons": {"wrong": 1}}
    assert told["book"]["pages"] == 2
    assert told["book"]["passages"] == 6
    assert author.get("/admin/report.json?days=1").json()["questions"]["asked"] == 0


def test_gaps_have_topics_counts_examples_and_nearest_pages(author: TestClient) -> None:
    gaps = author.get("/admin/report.json").json()["gaps"]
    texts = {question["text"] for gap in gaps for question in gap["questions"]}
    assert texts == {row.text for row in _LOGGED[1:]}
    [unsure] = [gap for gap in gaps if gap["topic"] == "Is paper heavy?"]
    assert (unsure["count"], unsure["refused"]) == (1, 0)
    assert unsure["nearest"][0] == {"title": "Building a kite", "url": "/docs/workshop/building"}


def test_text_of_readers_is_escaped(author: TestClient) -> None:
    html = author.get("/admin/report.html").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<script" not in html
    assert "<b>" not in html
    assert "<svg" in html
    assert 'href="read/docs/workshop/building"' in html


def test_no_cell_of_the_csv_is_a_formula(author: TestClient) -> None:
    answer = author.get("/admin/gaps.csv")
    assert answer.headers["content-disposition"].startswith('attachment; filename="gaps-')
    header, *rows = csv.reader(io.StringIO(answer.text.removeprefix("\ufeff")))
    assert header[:2] == ["topic", "question"]
    assert "'=HYPERLINK(1) harmonica invented" in [row[1] for row in rows]
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))]


@pytest.mark.parametrize("cell", ["=1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "\n=1"])
def test_formulas_in_cells_are_escaped(cell: str) -> None:
    assert harmless(cell) == f"'{cell}"
    assert harmless(f"a{cell}") == f"a{cell}"


def test_percentiles_are_measured_times() -> None:
    assert percentiles({}) == {}
    assert percentiles({7: 1}) == {50: 7, 90: 7, 95: 7, 99: 7}
    assert percentiles(dict.fromkeys(range(1, 101), 1)) == {50: 50, 90: 90, 95: 95, 99: 99}


async def test_report_has_only_counts_if_texts_are_not_stored(book_folder: Path) -> None:
    library = await _library(book_folder, with_text=False)
    with TestClient(create_app(library), "http://127.0.0.1", client=_AT_HOME) as author:
        told = author.get("/admin/report.json").json()
        assert told["questions"]["asked"] == 5
        assert told["gaps"] == []
        assert "text of questions is not stored" in author.get("/admin/report.html").text


async def test_report_explains_a_disabled_query_log(book_folder: Path) -> None:
    library = await _library(book_folder, log=None)
    with TestClient(create_app(library), "http://127.0.0.1", client=_AT_HOME) as author:
        assert "query log is switched off" in author.get("/admin/report.html").text


async def test_figures_are_shown_while_the_embedder_is_down(book_folder: Path) -> None:
    embedder = FragileEmbedder()
    library = await _library(book_folder, embedder=embedder)
    embedder.broken = True
    with TestClient(create_app(library), "http://127.0.0.1", client=_AT_HOME) as author:
        assert "cannot be computed now" in author.get("/admin/report.html").text


@pytest.mark.parametrize("path", ["/admin/report.json", "/admin/report.html", "/admin/gaps.csv"])
@pytest.mark.parametrize(
    ("keys", "client", "host", "listens"),
    [
        ("required", _AT_HOME, "127.0.0.1", "127.0.0.1"),
        ("open", ("203.0.113.7", 50000), "127.0.0.1", "127.0.0.1"),  # open for questions alone
        ("open", _AT_HOME, "evil.example", "127.0.0.1"),  # a name that was bent to this machine
        ("open", _AT_HOME, "127.0.0.1", "0.0.0.0"),  # others reach it, perhaps by a proxy here
    ],
)
def test_report_is_hidden_from_others(
    library: Book, path: str, keys: str, client: tuple[str, int], host: str, listens: str
) -> None:
    rules = AccessSettings(keys=keys)  # type: ignore[arg-type]
    settings = Settings(access=rules, server=ServerSettings(host=listens))
    with TestClient(create_app(library, settings), f"http://{host}", client=client) as other:
        answer = other.get(path)
    assert answer.status_code == (421 if host == "evil.example" else 401)
    assert "harmonica" not in answer.text
    needed = "This server answers only to localhost" if host == "evil.example" else "This report"
    assert answer.json()["message"].startswith(needed)


async def test_only_an_authors_key_opens_the_report(library: Book) -> None:
    access = access_of(needs_keys=True)
    settings = Settings(access=AccessSettings(keys="required"))
    keys = {}
    for role in (False, True):
        keys[role], record = make_key(PEPPER, is_author=role)
        await access.stores.keys.add(record)
    with TestClient(create_app(library, settings, access)) as client:
        for path in ("/admin/report.json", "/admin/report.html", "/admin/gaps.csv"):
            answers = {
                role: client.get(path, headers={"X-API-Key": key}) for role, key in keys.items()
            }
            assert (answers[False].status_code, answers[True].status_code) == (403, 200)
            assert "harmonica" not in answers[False].text
            assert "--author" in answers[False].json()["message"]
            assert client.get(path, headers={"X-API-Key": "btk_0"}).status_code == 401
        asked = client.post("/query", json={"text": "x"}, headers={"X-API-Key": keys[False]})
        assert asked.status_code == 200


def test_the_report_can_neither_be_framed_nor_run_anything(author: TestClient) -> None:
    policy = author.get("/admin/report.html").headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy


async def test_a_report_is_kept_for_a_minute(library: Book) -> None:
    now = [0.0]
    reporter = Reporter(library, clock=lambda: now[0])
    first, again = await asyncio.gather(reporter.report(days=7), reporter.report(days=7))
    assert first is again
    assert await reporter.report(days=8) is not first
    now[0] = 59
    assert await reporter.report(days=7) is first
    now[0] = 61
    assert await reporter.report(days=7) is not first
