"""Run the worker on a PDF file, and turn its crash or its limits into a reason."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from bythebook.interfaces.source import UnreadableFile

_ENVIRONMENT = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "SYSTEMROOT", "TEMP", "TMP")
_MEGABYTE = 1024 * 1024
_TOO_LONG = "takes too long to read"
_BAD_REPLY = "the PDF reader failed: the file is damaged or too large"
_KILLED = {
    getattr(signal, name, None): reason
    for name, reason in (
        ("SIGXCPU", _TOO_LONG),
        ("SIGKILL", _TOO_LONG),
        ("SIGXFSZ", "has too much text"),
        ("SIGABRT", "needs too much memory to be read, or crashes the PDF reader"),
        ("SIGTRAP", "needs too much memory to be read, or crashes the PDF reader"),
    )
}


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """What the worker may use for one file."""

    seconds: int = 120  # of the processor
    seconds_per_megabyte: int = 20
    memory: int = 2048 * _MEGABYTE  # address space
    memory_factor: int = 4  # for each byte of the file

    def processor(self, size: int) -> int:
        return self.seconds + self.seconds_per_megabyte * size // _MEGABYTE

    def address_space(self, size: int) -> int:
        return self.memory + self.memory_factor * size


def run_worker(content: bytes, name: str, limits: WorkerLimits) -> Iterator[dict[str, Any]]:
    """Yield the values that the worker writes; raise UnreadableFile if it fails."""
    seconds = limits.processor(len(content))
    command = [sys.executable, "-P", "-m", "bythebook_formats.pdf.worker"]
    arguments = [str(seconds), str(limits.address_space(len(content))), name]
    with tempfile.TemporaryFile() as output:
        worker = subprocess.Popen(  # noqa: S603 - our own module
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.DEVNULL,
            env={key: os.environ[key] for key in _ENVIRONMENT if key in os.environ},
        )
        try:
            worker.communicate(content, timeout=2 * seconds + 30)
        except subprocess.TimeoutExpired:
            raise UnreadableFile(_TOO_LONG) from None
        finally:
            worker.kill()
            worker.wait()
        if worker.returncode:
            raise UnreadableFile(_reason(worker.returncode))
        output.seek(0)
        yield from _values(output)


def _reason(status: int) -> str:
    if status > 0:
        return _BAD_REPLY
    return _KILLED.get(-status) or f"crashes the PDF reader (signal {-status})"


def _values(output: BinaryIO) -> Iterator[dict[str, Any]]:
    ended = False
    for line in output:
        try:
            value = json.loads(line)
        except ValueError:
            raise UnreadableFile(_BAD_REPLY) from None
        if not isinstance(value, dict):
            raise UnreadableFile(_BAD_REPLY)
        ended = "end" in value
        if not ended:
            yield value
    if not ended:
        raise UnreadableFile(_BAD_REPLY)
