"""A book's server in which everything goes wrong that can, and that says whatever it is told to."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Event = tuple[str, dict[str, Any]]
FakeReply = Callable[[dict[str, Any]], Iterator[Event]]  # a request's body -> what the stream tells

SESSION: Event = (
    "session",
    {"session_id": "550e8400-e29b-41d4-a716-446655440000", "request_id": "r"},
)


def delta(text: str, *, html: str = "", citations: list[dict[str, Any]] | None = None) -> Event:
    told = {"text": text, "paragraph": 0, "html": html or f"<p>{text}</p>"}
    return "delta", {**told, "citations": citations or []}


def done(html: str, **more: Any) -> Event:
    told = {"response": "x", "should_answer": True, "confidence_level": "high", "html": html}
    return "done", {**told, "nearby": [], "query_id": None, **more}


def source(number: int, section: str) -> dict[str, Any]:
    url = f"/docs/page#{section.lower()}"
    told = {"chunk_text": "Quoted words.", "similarity_score": 0.9, "chapter": "Chapter"}
    link = f"{url}:~:text=Quoted"
    return {**told, "section": section, "url": url, "link": link, "number": number}


def _cite(number: int) -> str:
    return f'<sup data-cite="{number}">{number}</sup>'


def _telling(*events: Event, then_wait_s: float = 0) -> FakeReply:
    def tell(_: dict[str, Any]) -> Iterator[Event]:
        yield from (SESSION, *events)
        time.sleep(then_wait_s)

    return tell


_CELLS = "".join(f"<td>longword{number}longword</td>" for number in range(12))
_REFUSED = {"should_answer": False, "confidence_level": "insufficient"}
_NEAR = {"Page › Kettles": "/docs/page#kettles", "Page › Nearby": "/docs/page#nearby"}
_RELATED = {
    "quote": "A <b>kettle</b> boils water.",
    "title": "Kettles",
    "link": "/docs/page#kettles:~:text=A",
}

_CUT = _telling(delta("This is only the beginning."))
REPLIES: dict[str, FakeReply] = {
    "cut": _CUT,
    "hang": _telling(delta("The first sentence."), then_wait_s=20),
    "broken": _telling(
        (
            "error",
            {"message": "The search service is away.", "suggested_action": "Wait a little."},
        )
    ),
    "fallback": _telling(done("<p>Offline.</p>", answered_offline=True, disclaimer="Little.")),
    "model": _telling(done("<p>In other words.</p>", written_by_model=True)),
    "table": _telling(
        delta("A table.", citations=[source(1, "Wide")]),
        done(f"<p>A table:</p><table><tr>{_CELLS}<td>end {_cite(1)}</td></tr></table>"),
    ),
    # Sentences that are cited one by one, as a language model writes them.
    "listed": _telling(
        delta("One.", citations=[*(source(n, "First") for n in (1, 2, 3)), source(4, "Second")]),
        done(
            f"<p>One.{_cite(1)} Two.{_cite(2)} Three.{_cite(3)}</p><p>Four.{_cite(1)}</p>"
            f"<pre><code>four()</code></pre><p>{_cite(4)}</p><p>Without a source.</p>",
            next_questions=["What next?", "listed again?"],
        ),
    ),
    "unknown": _telling(
        delta("The book does not say"),
        done(
            "<p>The book does not say</p>",
            related=_RELATED,
            **_REFUSED | {"nearby": [{"title": at, "url": url} for at, url in _NEAR.items()]},
        ),
    ),
}


@contextmanager
def hostile_server(replies: dict[str, FakeReply], seen: list[dict[str, Any]]) -> Iterator[str]:
    """Answers a question by the first telling whose name the question begins with."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_OPTIONS(self) -> None:
            self._head(204)

        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(size))
            key, once = (self.headers.get(name) for name in ("X-API-Key", "Idempotency-Key"))
            seen.append({"path": self.path, "key": key, "once": once, **body})
            asked = str(body.get("message", ""))
            if asked.startswith("busy"):
                self._refuse(429, **{"Retry-After": "2"})
            elif asked.startswith("key"):
                self._refuse(401)
            else:
                named = (tell for name, tell in replies.items() if asked.startswith(name))
                self._tell(next(named, _CUT)(body))

        def _refuse(self, status: int, **headers: str) -> None:
            self._head(status, **headers)
            self.wfile.write(b'{"message": "No.", "suggested_action": "Do not."}')

        def _tell(self, events: Iterator[Event]) -> None:
            self._head(200, **{"Content-Type": "text/event-stream"})
            try:
                for name, data in events:
                    self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
                    self.wfile.flush()
            except OSError:
                return  # the reader has left

        def _head(self, status: int, **headers: str) -> None:
            allowed = {
                "Access-Control-Allow-Origin": "*",
                "Access-Control-Allow-Headers": "Content-Type, Idempotency-Key, X-API-Key",
                "Access-Control-Expose-Headers": "Retry-After",
                "Connection": "close",
            }
            self.send_response(status)
            for name, value in {**allowed, **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
