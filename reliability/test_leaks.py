"""Nothing is called, kept or logged that was not meant to be."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import logging.config
import os
import re
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from agents.tracing import get_trace_provider
from tests.providers.loopback import Loopback, Request, Step, chat, embeddings, refuse
from tests.server.running_server import PROGRAM, free_port
from tests.support.command import Done, run
from tests.support.samples import ROOT, read, small_book
from typer.testing import CliRunner

from bythebook.access_stores import open_keys
from bythebook.book import Book
from bythebook.cli.main import app
from bythebook.config.settings import Settings, load_settings
from bythebook.errors import BookError
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.server.access import AccessControl, make_key, open_access, pepper_of
from bythebook.server.app import create_app
from bythebook.server.observability import configuration
from reliability.network import watched
from reliability.rows import Row

_HOSTS = (
    *("127.0.0.1", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0.0.0.0", "0"),
    *("[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::]", "[fe80::1]", "[fd00::1]"),
    *("169.254.169.254", "[fd00:ec2::254]", "metadata.google.internal", "100.64.0.1"),
    *("10.0.0.1", "172.16.0.1", "192.168.0.1", "198.18.0.1", "192.0.2.1", "224.0.0.1"),
    *("127.0.0.1.nip.io", "rebind.example", "user:pw@127.0.0.1", "evil.example#@book.example"),
    *("book.example@169.254.169.254", "①②⑦.⓪.⓪.①", "127。0。0。1"),
)
ADDRESSES = (
    *(f"http://{host}/latest/meta-data/" for host in _HOSTS),
    *("https://evil.example/book.zip", "//evil.example/x", "ftp://evil.example/x"),
    *("file:///etc/passwd", "gopher://127.0.0.1:6379/_INFO", "dict://127.0.0.1:11211/stat"),
    *("jar:http://evil.example/x!/", "data:text/markdown,x", "http://evil.example:22/"),
)


def _page(address: str, number: int) -> str:
    """Return a page with the address in every place where a site builder would fetch it."""
    return (
        f"---\ntitle: Page {number}\nimage: {address!r}\nslug: /p{number}\n---\n\n"
        f"import A from '{address}';\nimport b from '!!raw-loader!{address}';\n\n# Page\n\n"
        f"<A/> {{b}} [link]({address}) ![image]({address}) <img src='{address}'/> "
        f"<iframe src='{address}'/>\n\n```js reference\n{address}\n```\n\n[ref]: {address}\n"
    )


async def _asked_with(client: httpx.AsyncClient, address: str) -> int:
    selection = "A kettle boils water at 100 degrees."
    selected = {"selected_text": selection, "page_url": address}
    image = {"type": "image_url", "image_url": {"url": address}}
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("/query", {"text": f"What is at {address}?"}),
        ("/ask", {"text": "What boils?", **selected}),
        ("/search", {"text": address}),
        ("/api/v1/query", {"query": f"Fetch {address}", "selected_text": address}),
        ("/api/v2/query", {"query": "What boils?", **selected}),
        ("/chat/run", {"message": f"Open {address}", **selected}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": address}]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [image]}]}),
    ]
    for path, body in bodies:
        told = await client.post(path, json=body, headers={"Referer": "http://book.example/"})
        assert told.status_code < 500, (path, body, told.text)
    return len(bodies)


def _given_as_docs(home: Path) -> list[str]:
    """Return the addresses that ``ingest`` accepts as a book."""
    taken = []
    for address in ADDRESSES:
        command = ["ingest", address, "--home", str(home)]
        told = CliRunner().invoke(app, command, standalone_mode=False)
        if not isinstance(told.exception, BookError):
            taken.append(f"{address}: {told.exception!r} {told.stdout[:80]}")
    return taken


@pytest.mark.row(
    "S11",
    "Server-side request forgery (SSRF)",
    "0 name look-ups, 0 calls",
)
async def test_no_address_is_fetched(row: Row, tmp_path: Path) -> None:
    """The product never fetches an address that it is given.

    A book is read from a folder. Addresses in pages, questions and selections are plain text.
    """
    book = small_book(tmp_path / "docs")
    for number, address in enumerate(ADDRESSES):
        (book / f"page{number}.mdx").write_text(_page(address, number), "utf-8")
    library = Book(
        embedder=FakeEmbedder(),
        store=MemoryGenerationStore(),
        catalog=MemoryCatalog(),
        threads=MemoryThreads(),
    )
    asks = 0
    with watched() as seen, contextlib.chdir(tmp_path):
        taken = await asyncio.to_thread(_given_as_docs, tmp_path / "home")
        read_in = await library.ingest(read(book))
        transport = httpx.ASGITransport(create_app(library))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for address in ADDRESSES:
                asks += await _asked_with(client, address)
    assert read_in.files_processed > len(ADDRESSES)
    row.record(
        f"{len(ADDRESSES)} addresses (private, link-local, mapped, octal, other schemes) given to "
        f"`ingest`, planted in {len(ADDRESSES)} pages in eight ways each, and in {asks} requests "
        "as question, selection, page and image",
        f"{len(taken)} taken for a book, {len(seen)} names looked up or calls made",
        passed=not taken and not seen,
    )


_ADDRESS = "203.0.113.77"
_AGENT = "agent-canary"
_PEPPER = "pepper-canary-of-more-than-sixteen"
# Where a reader's own words may stand, beside the log of questions if that keeps their text.
_CONVERSATIONS = {"thread_messages.content", "threads.topic_summary"}
_ANSWERS = {"thread_messages.content", "thread_messages.citations", "kept_replies.body"}


@dataclass
class Told:
    """Everything that remains of a run."""

    columns: dict[str, str] = field(default_factory=dict)
    files: bytes = b""
    log: str = ""
    metrics: str = ""
    key: str = ""
    errors: list[str] = field(default_factory=list)

    def places_of(self, canary: str) -> set[str]:
        places = {name for name, text in self.columns.items() if canary in text}
        elsewhere = {"log": self.log, "metrics": self.metrics, "errors": "\n".join(self.errors)}
        places |= {name for name, text in elsewhere.items() if canary in text}
        if canary.encode() in self.files and not any("." in name for name in places):
            places.add("the bytes of a file")
        return places


@contextmanager
def _logged() -> Iterator[io.StringIO]:
    """Capture every line of every logger from the lowest level, as the server writes it."""
    stream, root = io.StringIO(), logging.getLogger()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(configuration()["formatters"]["json"]["()"]())
    handler.addFilter(lambda record: "http://server" not in record.getMessage())  # our own client
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield stream
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def _bodies(question: str, selection: str) -> list[tuple[str, dict[str, Any]]]:
    """Return one question and one selection as bodies of every contract."""
    session = str(uuid.uuid4())
    words = f"{question} At how many degrees does a kettle boil water?"
    chosen = f"{selection} A kettle boils water at 100 degrees."
    turns = [{"role": "user", "content": words}]
    return [
        ("/query", {"text": words}),
        ("/ask", {"text": words}),
        ("/ask", {"text": words, "selected_text": chosen}),
        ("/search", {"text": words}),
        ("/api/v1/query", {"query": words, "selected_text": chosen}),
        ("/api/v2/query", {"query": words, "session_id": session}),
        ("/api/v2/query", {"query": words, "selected_text": chosen, "session_id": session}),
        ("/chat/run", {"message": words, "session_id": session}),
        ("/chat/stream", {"message": words, "session_id": session}),
        ("/v1/chat/completions", {"messages": turns}),
        ("/v1/chat/completions", {"messages": turns, "stream": True}),
    ]


def _broken(canary: str) -> list[tuple[str, Any]]:
    """Yield invalid requests; their content must not appear in the log."""
    return [
        ("/query", {"text": canary * 1000}),
        ("/ask", {"text": 7, canary: canary}),
        ("/api/v2/query", {"query": "x", "top_k": canary}),
        ("/api/v2/query", {"query": "x", "session_id": canary}),
        ("/chat/run", {"message": "x", "session_id": canary}),
        ("/chat/run", [canary]),
        (f"/{canary}", {}),
    ]


async def _run_with(settings: Settings, book: Path) -> Told:
    told = Told()
    with _logged() as lines:
        library = Book(settings, new=True)
        await library.ingest(read(book))
        door = open_access(settings)
        keys = open_keys(settings)
        told.key, kept = make_key(pepper_of(settings))
        await keys.add(kept)
        await keys.close()
        await _ask_everything(library, door, settings, told)
    told.log = lines.getvalue()
    for file in settings.home.rglob("*"):
        if file.is_file():
            told.files += file.read_bytes()
    for database in settings.home.glob("*.db"):
        told.columns |= _columns(database)
    return told


async def _ask_everything(
    library: Book, door: AccessControl, settings: Settings, told: Told
) -> None:
    app = create_app(library, settings, door)
    transport = httpx.ASGITransport(app, client=(_ADDRESS, 50_000), raise_app_exceptions=False)
    headers = {
        "Authorization": f"Bearer {told.key}",
        "User-Agent": _AGENT,
        "Cookie": "session=cookie-canary",
        "Referer": "https://book.example/?q=referer-canary",
    }
    async with httpx.AsyncClient(
        transport=transport, base_url="http://server", headers=headers
    ) as client:
        for path, body in _bodies("question-canary", "selection-canary"):
            once = {"Idempotency-Key": f"once-canary-{uuid.uuid4()}"}
            response = await client.post(path, json=body, headers=once)
            assert response.status_code == 200, (path, response.text)
        for path, body in _broken("broken-canary"):
            response = await client.post(path, json=body)
            assert 400 <= response.status_code < 500, (path, response.status_code)
        for wrong in (f"{told.key}x", "btk_wrong-canary"):
            headers = {"Authorization": f"Bearer {wrong}"}
            refused = await client.post("/query", json={}, headers=headers)
            assert refused.status_code == 401
            told.errors.append(refused.text)
        told.metrics = (await client.get("/metrics")).text
    if library.log is not None:
        await library.log.flush()
    await library.close()
    await door.close()


def _columns(database: Path) -> dict[str, str]:
    """Return all text of each column of each table."""
    with sqlite3.connect(database) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        found = {}
        for (table,) in tables.fetchall():
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                for name, value in zip(names, row, strict=True):
                    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
                    found[f"{table}.{name}"] = f"{found.get(f'{table}.{name}', '')}\n{text}"
    connection.close()
    return found


def _allowed(with_text: bool) -> dict[str, set[str]]:
    """Return each canary with the columns that may contain it."""
    asked = _CONVERSATIONS | ({"queries.query_text"} if with_text else set()) | _ANSWERS
    nowhere = (
        *("wrong-canary", "cookie-canary", "referer-canary", "once-canary", "broken-canary"),
        *(_AGENT, _ADDRESS, _PEPPER),
    )
    return {"question-canary": asked, "selection-canary": _ANSWERS} | {
        canary: set() for canary in nowhere
    }


@pytest.mark.row(
    "S15",
    "Questions, addresses or secrets left behind",
    "0 outside the columns meant for them; secrets nowhere",
)
async def test_nothing_is_kept_where_it_should_not_be(row: Row, tmp_path: Path) -> None:
    """Questions and identities are stored only where intended, and secrets nowhere.

    Canaries go into every field of every contract, into headers and configuration; then all files,
    tables, log lines, metrics and errors are searched for them.
    """
    book = small_book(tmp_path / "docs")
    faults, searched = [], 0
    for with_text in (True, False):
        settings = load_settings(
            {
                "home": tmp_path / f"home-{with_text}",
                "log": {"text": with_text},
                "access": {"keys": "required", "pepper": _PEPPER},
            },
            environ={},
        )
        told = await _run_with(settings, book)
        secret = told.key.split("_", 2)[2]
        for canary, allowed in {**_allowed(with_text), secret: set()}.items():
            found = told.places_of(canary) - allowed
            faults += [f"{canary} in {place}" for place in sorted(found)]
        searched += len(told.files) + len(told.log) + len(told.metrics)
        assert "question" in told.log, "the log was looked at"
        assert told.columns["queries.selected_text_length"].strip()
    row.record(
        f"{len(_allowed(True)) + 1} canaries (question, selection, key, cookie, address, agent, "
        "pepper …) through every contract, well and badly formed, with and without the log of "
        f"questions; {searched // 1024:,} KiB of files, tables, log lines at DEBUG, metrics and "
        "errors searched",
        "; ".join(faults) or "0 found where they should not be",
        passed=not faults,
    )


_WRITERS = ("openai:test-model", "agents:test-model")
_KEY = "sk-canary-of-the-model"
_SAID = "A kettle boils water at 100 degrees Celsius. [1]"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_REDIRECT = b"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.2:9/\r\nConnection: close\r\n\r\n"


class Provider:
    """Provider that embeds, and in turn redirects, fails, echoes the request and answers."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: Request) -> Iterator[Step]:
        if not request.path.endswith("/chat/completions"):
            return embeddings(request)
        self.asked += 1
        ways = ([_REDIRECT], refuse(400, f"{request.headers} {request.body}"), chat(_SAID))
        return iter(ways[self.asked % len(ways)])


@contextmanager
def _logged_debug() -> Iterator[io.StringIO]:
    stream, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(stream), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield stream
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


async def _ask(writer: str, url: str, folder: Path, questions: int) -> int:
    """Ask this many questions; return how many were answered."""
    settings = load_settings(
        {
            "home": folder / "home",
            "writer": writer,
            "embedder": "openai:text-embedding-3-small",
            "model": {
                "base_url": url,
                "api_key": _KEY,
                "timeout_s": 20,
                "first_token_timeout_s": 20,
            },
            "embedding": {"base_url": url, "api_key": _KEY},
        },
        environ={"OPENAI_API_KEY": "sk-canary-of-the-account"},
    )
    library = Book(settings, new=True)
    await library.ingest(read(small_book(folder / "docs")))
    transport = httpx.ASGITransport(create_app(library, settings))
    answered = 0
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for number in range(questions):
            asked = f"At how many degrees does kettle number {number} boil water?"
            told = await client.post("/ask", json={"text": asked, "relevance_threshold": 0.0})
            assert told.status_code == 200, told.text
            answered += told.json()["has_relevant_context"]
    await library.close()
    return answered


@pytest.mark.real
@pytest.mark.row(
    "S16",
    "Outgoing connections of libraries",
    "0 calls to others; keys in no log and in no request but the one to the provider",
)
async def test_nobody_but_the_configured_host_is_called(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only configured hosts are called: no telemetry, no price list, no redirect, no proxy.

    Both language model writers run through the whole product.
    """
    for name in _PROXIES:
        monkeypatch.setenv(name, "http://127.0.0.2:9")
    questions, answered, provider = row.count(6, 60), 0, Provider()
    with Loopback(provider) as upstream, watched() as seen, _logged_debug() as lines:
        for writer in _WRITERS:
            folder = tmp_path / writer.partition(":")[0]
            folder.mkdir()
            answered += await _ask(writer, upstream.url, folder, questions)
        await asyncio.to_thread(get_trace_provider().shutdown)  # what it kept, it would send now
        ours = (f"socket.connect (('127.0.0.1', {upstream.port}),)", "socket.getaddrinfo 127.0.0.1")
        others = [call for call in seen if call not in ours]
        keys = {request.headers.get("authorization") for request in upstream.requests}
    leaked = lines.getvalue().count("canary")
    row.record(
        f"{questions} questions each through {' and '.join(_WRITERS)} and a hosted embedder: "
        f"{len(seen)} connections, with proxies in the environment, redirects, errors that repeat "
        "the request, and the traces of the SDK flushed",
        f"{len(others)} calls to others; {leaked} keys in log lines at DEBUG; {answered} of "
        f"{questions * len(_WRITERS)} answered all the same",
        passed=not others
        and not leaked
        and keys == {f"Bearer {_KEY}"}
        and answered == questions * len(_WRITERS)
        and provider.asked >= questions,
    )


# Inside a network of its own that has nothing but loopback: a name server is out of reach, too.
_CUT = r"""
ip link set lo up
set -eu
"$1" ingest "$2" --home "$3" --json >"$3/ingested"
"$1" serve --home "$3" --port "$4" 2>"$3/log" &
server=$!
trap 'kill $server' EXIT
"$5" - "$4" <<'END'
import json, sys, time, urllib.request
url = f"http://127.0.0.1:{sys.argv[1]}"
def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=20).read()
for _ in range(600):
    try:
        ask("/ready")
        break
    except OSError:
        time.sleep(0.1)
print(ask("/query", {"text": "At how many degrees does a kettle boil water?"}).decode())
def unroutable():  # packets and connections that were wanted and had nowhere to go
    names, numbers = (line.split() for line in open("/proc/net/snmp") if line.startswith("Ip:"))
    return int(dict(zip(names, numbers))["OutNoRoutes"])
time.sleep(3)  # who wants to call home in the background has had time
before = unroutable()
try:
    urllib.request.urlopen("http://192.0.2.1/", timeout=5)
    print("the network is not cut")
except OSError as error:
    told = {"outside": str(error), "wanted": before, "counted": unroutable() > before}
    print(json.dumps(told))
END
"""
_LOCKS = ("run.txt", "dev.txt")


def _unlocked(lock: Path) -> list[str]:
    """Return requirements without an exact version or a hash."""
    text = lock.read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [
        line[:60] for line in lines if not re.match(r"[a-z0-9._-]+(\[[a-z,]+\])?==\S+ ", line)
        or not re.search(r"--hash=sha256:[0-9a-f]{64}", line)
    ]  # fmt: skip


@pytest.mark.real
@pytest.mark.row(
    "S20",
    "Packages or models fetched at run time",
    "imports, ingests and answers without a network, and requests nothing from it; every "
    "requirement has a hash",
)
def test_it_serves_with_the_network_cut(row: Row, tmp_path: Path) -> None:
    loose = [line for name in _LOCKS for line in _unlocked(ROOT / "requirements" / name)]
    locked = sum((ROOT / "requirements" / name).read_text().count("==") for name in _LOCKS)
    book, home = small_book(tmp_path / "docs"), tmp_path / "home"
    home.mkdir()
    arguments = [PROGRAM, str(book), str(home), str(free_port())]
    command = ["unshare", "--map-root-user", "--net", "sh", "-c", _CUT, "sh", *arguments]
    cache = tmp_path / "cache"
    done = subprocess.run(
        [*command, sys.executable],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "unshare" in done.stderr and "not permitted" in done.stderr:
        pytest.skip("this machine lets nobody have a network of their own")
    assert done.returncode == 0, done.stderr
    ingested = json.loads((home / "ingested").read_text())
    answer, outside = map(json.loads, done.stdout.splitlines())
    left = [file for file in cache.rglob("*") if file.is_file() and "bythebook" not in file.parts]
    row.record(
        f"{locked} locked requirements looked at; {ingested['chunks_created']} passages ingested "
        "and a question answered over HTTP in a network namespace that has loopback alone",
        f"{len(loose)} without version and hash; outside: {outside['outside']}; "
        f"{outside['wanted']} connections elsewhere tried, {len(left)} files left in the cache by "
        f"libraries; answered: {not answer['is_refusal']}",
        passed=not loose
        and not left
        and outside["wanted"] == 0
        and outside["counted"]
        and not answer["is_refusal"]
        and "unreachable" in outside["outside"],
    )


_VARIABLES = {
    name: f"canary-{name.lower()}"
    for name in (
        *("OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "COHERE_API_KEY"),
        *("QDRANT_API_KEY", "BYTHEBOOK_MODEL_KEY", "BYTHEBOOK_EMBEDDING_KEY", "PGPASSWORD"),
        *("OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_WEBHOOK_SECRET"),
    )
}
_VARIABLES["OPENAI_CUSTOM_HEADERS"] = (
    "X-Gateway: canary-header\nAuthorization: canary-authorization"
)
_EMBEDDER = 'embedder = "openai:tiny@32"\n'
# The file of the book, and the variables that are not set.
_FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "accounts": (_EMBEDDER + '[accounts]\nopenai_url = "{url}"\n', ()),
    "qdrant": ('[qdrant]\nurl = "{url}"\n', ()),
    "embedding": (_EMBEDDER + '[embedding]\nbase_url = "{url}"\n', ()),
    "embedding, no own key": (
        _EMBEDDER + '[embedding]\nbase_url = "{url}"\n',
        ("BYTHEBOOK_EMBEDDING_KEY",),
    ),
    "model": ('writer = "openai:x"\n[model]\nbase_url = "{url}"\n', ()),
    "agents, no own key": (
        'writer = "agents:x"\n[model]\nbase_url = "{url}"\n',
        ("BYTHEBOOK_MODEL_KEY",),
    ),
    "ollama": ('writer = "ollama:x"\n[accounts]\nollama_host = "{url}"\n', ()),
    "postgres": ('database_url = "postgresql://me@127.0.0.1:{port}/book?sslmode=disable"\n', ()),
    "in the address": ('[qdrant]\nurl = "http://me:x@127.0.0.1:{port}"\n', ()),
}


def _models(request: Request) -> Iterator[Step]:
    if request.path.endswith("/chat/completions"):
        return iter(chat("A kettle boils water at 100 degrees Celsius. [1]"))
    return embeddings(request)


def _command(folder: Path, unset: tuple[str, ...], *command: str) -> Done:
    secrets = {name: value for name, value in _VARIABLES.items() if name not in unset}
    with contextlib.chdir(folder):
        return run(*command, **secrets)


@pytest.mark.loopback
@pytest.mark.row(
    "S22",
    "A book brings a bythebook.toml that names addresses of its own",
    "0 secrets of the environment sent to them; the error names the variable",
)
def test_no_secret_of_the_environment_goes_to_an_address_of_the_file(
    row: Row, tmp_path: Path
) -> None:
    small_book(tmp_path / "docs")
    question = "At how many degrees does a kettle boil water?"
    wrong: list[str] = []
    with Loopback(_models) as evil:
        for name, (toml, unset) in _FILES.items():
            file = tmp_path / "bythebook.toml"
            file.unlink(missing_ok=True)
            home = ("--home", str(tmp_path / name))
            if "[model]" in toml or "writer" in toml:
                assert _command(tmp_path, unset, "ingest", "docs", *home).returncode == 0
                command = ("ask", question, *home, "--json")
            else:
                command = ("ingest", "docs", *home, "--json")
            file.write_text(toml.format(url=evil.url, port=evil.port))
            done = _command(tmp_path, unset, *command)
            shown = done.stdout + done.stderr
            if unset:  # the file's address gets the question, without any key
                fine = done.returncode == 0 and "settings from ./bythebook.toml: " in done.stderr
            else:
                fine = done.returncode == 2 and "error" in done.stdout
            if not fine or "canary" in shown:
                wrong.append(f"{name}: {done.returncode} {shown[-300:]}")
        sent = [str(request) for request in evil.requests]
    leaked = sum("canary" in request for request in sent)
    row.record(
        f"{len(_FILES)} such files with {len(_VARIABLES)} secrets in the environment",
        f"{leaked} secrets in {len(sent)} requests to the addresses of the file; "
        f"{len(wrong)} commands without the right error" + "".join(f"; {text}" for text in wrong),
        passed=not leaked and not wrong and len(sent) >= 2,
    )
