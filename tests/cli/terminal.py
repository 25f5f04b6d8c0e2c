"""A program on a pseudo terminal: type text and wait for output."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

PATIENCE_S = 120
_STEERING = re.compile(
    r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x1b\x07]*(?:\x1b\\|\x07)|[=>])|[\x01\x02\r]"
)


class Terminal:
    def __init__(self, device: int, process: subprocess.Popen[bytes]) -> None:
        self._device = device
        self.process = process
        self.raw = ""  # everything the program wrote
        self._read = 0  # how far it has been waited for

    @property
    def text(self) -> str:
        """Everything the program wrote, without colours, links and cursor movements."""
        return _STEERING.sub("", self.raw)

    def type(self, keys: str) -> None:
        os.write(self._device, keys.encode())

    def line(self, text: str) -> None:
        self.type(text + "\n")

    def wait_for(self, words: str) -> str:
        """What was written since the last wait, up to and including these words."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.text.find(words, self._read)) < 0:
            assert time.monotonic() < deadline, f"{words!r} did not come: {self.text!r}"
            assert self._listen(1) or self.process.poll() is None, self.text
        start, self._read = self._read, found + len(words)
        return self.text[start : self._read]

    def insist(self, key: str, words: str) -> None:
        """A key, again and again until these words come.

        A signal that arrives after readline has shown its prompt, and before it waits for
        keys, is not heard until the next key; whoever sits there presses it again.
        """
        for _ in range(PATIENCE_S):
            self.type(key)
            again = time.monotonic() + 1
            while (left := again - time.monotonic()) > 0:
                self._listen(left)
                if words in self.text[self._read :]:
                    self.wait_for(words)
                    return
        raise AssertionError(f"{words!r} did not come: {self.text!r}")

    def leave(self) -> int:
        """Ctrl+D, until it is read; the exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.text
            self.type("\x04")
            while self._listen(0.2):
                pass
        return self.process.wait()

    def _listen(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._device], [], [], seconds)
        with suppress(OSError):  # the program is gone
            if ready and (got := os.read(self._device, 65536)):
                self.raw += got.decode("utf-8", "replace")
                return True
        return False


@contextmanager
def terminal(
    command: Sequence[str], *, columns: int = 100, **environment: str
) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        # Only its own session can make the terminal send it Ctrl+C.
        ["setsid", "--ctty", "--wait", *command],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={"PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "LANG": "C.UTF-8", **environment},
    )
    os.close(theirs)
    try:
        yield Terminal(ours, process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
