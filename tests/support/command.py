"""The command line with nothing but the given settings: in this process, or in one of its own."""

from __future__ import annotations

import gc
import io
import logging
import os
import subprocess
import sys
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from bythebook.cli import main

PROGRAM = str(Path(sys.executable).with_name("bythebook"))
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "COLUMNS": "100"}

Done = subprocess.CompletedProcess[str]


def run(*arguments: str, stdin: str = "", **environment: str) -> Done:
    """Run a command in this process, which has its models loaded already."""
    given, out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(3))
    given.write(stdin)
    given.seek(0)
    threshold, code = gc.get_threshold(), 0
    told = logging.StreamHandler(err)  # as Python prints warnings of a program without handlers
    told.setLevel(logging.WARNING)
    with ExitStack() as stack:
        stack.callback(gc.set_threshold, *threshold)
        stack.callback(logging.getLogger().removeHandler, told)
        logging.getLogger().addHandler(told)
        stack.enter_context(mock.patch.dict(os.environ, _ENVIRONMENT | environment, clear=True))
        stack.enter_context(mock.patch.object(sys, "argv", ["bythebook", *arguments]))
        stack.enter_context(mock.patch.object(sys, "stdin", given))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        try:
            main.run()
        except SystemExit as ended:
            code = int(ended.code or 0)
    shown = []
    for stream in (out, err):
        stream.flush()
        shown.append(stream.buffer.getvalue().decode("utf-8"))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(arguments, code, *shown)


def run_process(*arguments: str, **environment: str) -> Done:
    """Run the installed command in a process of its own."""
    return subprocess.run(
        [PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=_ENVIRONMENT | environment,
    )


def ask(home: Path, *arguments: str, **environment: str) -> Done:
    return run("ask", *arguments, "--home", str(home), **environment)
