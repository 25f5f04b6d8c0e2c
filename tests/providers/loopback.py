"""Loopback server that acts as a model provider, with real sockets and every fault.

A script returns the steps for a request: bytes are sent, a number is a pause in seconds, ``RESET``
resets the connection and ``HANG`` leaves it open without sending. After the last step the
connection is closed.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bythebook.providers.testing import FakeEmbedder

RESET, HANG = "reset", "hang"
Step = bytes | float | str


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: Any
    at: float = field(default_factory=time.monotonic)


Script = Callable[[Request], Iterable[Step]]


class Loopback:
    """``with Loopback(script) as provider``: serves on ``provider.url`` until left."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.left: list[float] = []  # when clients disconnected before the end of the response
        self.open = 0  # responses in progress
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Loopback:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(self, *error: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0.01)  # transports close one iteration later

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                request = await _read(reader)
                self.requests.append(request)
                self.open += 1
                try:
                    await self._answer(request, reader, writer)
                finally:
                    self.open -= 1
        finally:
            writer.close()

    async def _answer(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        acting = asyncio.ensure_future(_act(self.script(request), writer))
        leaving = asyncio.ensure_future(reader.read(1))  # clients send nothing more
        try:
            done, _ = await asyncio.wait([acting, leaving], return_when="FIRST_COMPLETED")
            if acting not in done:
                self.left.append(time.monotonic())
        finally:
            for task in (acting, leaving):
                task.cancel()
            results = await asyncio.gather(acting, leaving, return_exceptions=True)
        if isinstance(results[0], ConnectionError):
            self.left.append(time.monotonic())


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (r.partition(":") for r in rest)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(line.split()[1], headers, json.loads(body or b"null"))


async def _act(steps: Iterable[Step], writer: asyncio.StreamWriter) -> None:
    for step in steps:
        if isinstance(step, bytes):
            writer.write(step)
            await writer.drain()
        elif step == RESET:
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return
        elif step == HANG:
            await asyncio.sleep(3600)
        else:
            await asyncio.sleep(float(step))


# --- responses ------------------------------------------------------------------------------------


def head(status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Type: {kind}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def reply(body: object, status: int = 200, **headers: str) -> list[Step]:
    return [head(status, **headers) + json.dumps(body).encode()]


def refuse(status: int, message: str = "No.", code: str = "", **headers: str) -> list[Step]:
    error = {"message": message, "type": "error", "param": None, "code": code or None}
    return reply({"error": error}, status, **headers)


def page(status: int = 200) -> list[Step]:
    return [head(status, "text/html") + b"<!doctype html><title>Hello</title><h1>Welcome</h1>"]


def chunk(content: bytes) -> bytes:
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"


STREAM = head(kind="text/event-stream", transfer_encoding="chunked")
LAST = b"0\r\n\r\n"


def event(data: object) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return chunk(f"data: {text}\n\n".encode())


def delta(text: str | None, finish: str | None = None, **more: object) -> bytes:
    said = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": {**said, **more}, "finish_reason": finish}
    return event({"object": "chat.completion.chunk", "choices": [choice]})


DONE = event("[DONE]")


def usage(prompt: int, completion: int) -> bytes:
    return event(
        {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}
    )


def chat(*texts: str, finish: str | None = "stop", cost: tuple[int, int] = (40, 9)) -> list[Step]:
    """Return a complete answer, as OpenAI streams it."""
    return [
        STREAM,
        delta("", role="assistant"),
        *map(delta, texts),
        delta(None, finish),
        usage(*cost),
        DONE,
        LAST,
    ]


# --- embeddings -----------------------------------------------------------------------------------


DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "embed-english-v3.0": 1024,
    "embed-multilingual-v3.0": 1024,
    "nomic-embed-text": 768,
    "tiny": 32,
}


def bag(texts: Sequence[str], dimension: int, length: float = 1.0) -> list[list[float]]:
    """Return vectors: texts that share words are close to each other."""
    embedder = FakeEmbedder(dimension=dimension)
    # Prefixes of the role are ignored.
    bare = [re.sub("^search_(query|document): ", "", text) for text in texts]
    rows = [embedder.vector(text) for text in bare]
    return [(length * row).tolist() for row in rows]


def embeddings(request: Request) -> Iterator[Step]:
    """Answer as OpenAI, Cohere or Gemini, depending on the path."""
    body = request.body
    if request.path.endswith("/embeddings"):
        rows = bag(body["input"], body.get("dimensions") or DIMENSIONS[body["model"]])
        data = [
            {"object": "embedding", "index": number, "embedding": row}
            for number, row in enumerate(rows)
        ]
        yield from reply({"object": "list", "data": data[::-1], "model": body["model"]})
    elif request.path.endswith("/embed"):
        rows = bag(body["texts"], DIMENSIONS[body["model"]])
        yield from reply({"embeddings": {"float": rows}})
    else:
        requests = body["requests"]
        texts = [item["content"]["parts"][0]["text"] for item in requests]
        rows = bag(texts, requests[0]["outputDimensionality"], length=3.0)
        yield from reply({"embeddings": [{"values": row} for row in rows]})
