"""Proxy in front of any TCP server that delays, cuts or resets its answers.

    with faulty_line(("127.0.0.1", 6333)) as line:
        line.faults = Faults(latency_s=0.2)     # applies to open connections too
        ... http://127.0.0.1:{line.port} ...
        line.faults = Faults(stall_after=0)     # accepts requests and never answers

It runs on its own thread and event loop, so tests, coroutines and other processes can use it.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_PIECE = 16_384


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults of a connection. Bytes are counted per connection from when the faults were set."""

    latency_s: float = 0.0  # before each piece of an answer
    bytes_per_s: float | None = None
    stall_after: int | None = None  # bytes of answers; then silence, until there are other faults
    cut_after: int | None = None  # bytes; then a clean end, as if all had been said
    reset_after: int | None = None  # bytes; then the line breaks. 0: nobody is let in


class FaultyLine:
    def __init__(self, upstream: tuple[str, int]) -> None:
        self.faults = Faults()
        self.port = 0
        self.connections = 0  # that were made so far
        self._upstream = upstream
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def listen(self) -> asyncio.Server:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def hang_up(self) -> None:
        still_open = dict(self._open)
        for task in still_open:
            task.cancel()
        await asyncio.gather(*still_open, return_exceptions=True)
        for writer in still_open.values():  # one that had not begun could not end it itself
            writer.transport.abort()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._open[task] = writer
        task.add_done_callback(self._ended)
        self.connections += 1

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Close the connection of a task that was cancelled before its first step."""
        writer = self._open.pop(task)
        if not writer.transport.is_closing():
            _reset(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.faults.reset_after == 0:
                raise ConnectionResetError
            await self._carry(reader, writer)
            writer.close()
            await writer.wait_closed()
        except (OSError, asyncio.CancelledError):
            _reset(writer)
            await _until_closed(writer)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy in both directions until one side ends, then end the other."""
        their_reader, their_writer = await asyncio.open_connection(*self._upstream)
        both = [
            asyncio.ensure_future(_copy(reader, their_writer)),
            asyncio.ensure_future(self._answer(their_reader, writer)),
        ]
        try:
            ended, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            their_writer.transport.abort()  # before any await: a second cancellation ends those
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            await _until_closed(their_writer)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        faults, sent = self.faults, 0
        while piece := await reader.read(self._piece_size()):
            if faults is not self.faults:
                faults, sent = self.faults, 0
            await asyncio.sleep(faults.latency_s)
            ends = (faults.stall_after, faults.cut_after, faults.reset_after)
            left = min((end - sent for end in ends if end is not None), default=len(piece))
            passed = piece[:left]
            writer.write(passed)
            await writer.drain()
            sent += len(passed)
            if faults.bytes_per_s is not None:
                await asyncio.sleep(len(passed) / faults.bytes_per_s)
            if sent == faults.stall_after:
                await self._other_faults(faults)
                writer.write(piece[left:])
            if sent == faults.cut_after:
                return
            if sent == faults.reset_after:
                raise ConnectionResetError

    async def _other_faults(self, faults: Faults) -> None:
        while self.faults is faults:  # noqa: ASYNC110 - other threads set them
            await asyncio.sleep(0.01)

    def _piece_size(self) -> int:
        """Return a small piece size for slow lines, so that they are slow evenly."""
        speed = self.faults.bytes_per_s
        return _PIECE if speed is None else max(1, min(_PIECE, int(speed / 20)))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()


async def _until_closed(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        await writer.wait_closed()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Reset the connection instead of closing it (SO_LINGER 0)."""
    line: socket.socket = writer.get_extra_info("socket")
    with suppress(OSError):
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _end(line: FaultyLine, server: asyncio.Server) -> None:
    """Close everything, also a connection that is being accepted just now."""
    server.close()
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await line.hang_up()
        await asyncio.wait(others)


@contextmanager
def faulty_line(upstream: tuple[str, int]) -> Iterator[FaultyLine]:
    line, loop = FaultyLine(upstream), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(line.listen(), loop).result()
    try:
        yield line
    finally:
        asyncio.run_coroutine_threadsafe(_end(line, server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
