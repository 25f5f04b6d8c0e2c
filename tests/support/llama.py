"""A real language model behind a real OpenAI-compatible server: SmolLM2-135M on llama.cpp.

``python -m tests.support.llama GGUF PORT`` serves it in its own process until its input ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.servers import free_ports

_CACHE = Path.home() / ".cache" / "bythebook"
_GGUF = Path(os.environ.get("BYTHEBOOK_SMOLLM2", _CACHE / "smollm2")) / (
    "SmolLM2-135M-Instruct.Q4_1.gguf"
)


@contextmanager
def running_llama(folder: Path) -> Iterator[str]:
    """The address of its API."""
    if not _GGUF.is_file():
        pytest.skip("needs the weights of SmolLM2: sh .ci/install")
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "tests.support.llama", str(_GGUF), str(port)]
    pipe = subprocess.PIPE
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log) as process,
    ):
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        assert address, (folder / "log").read_text()
        yield f"{address}/v1"


def main(gguf: str, port: int) -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = gguf
    parameters.hostnames, parameters.port = ["127.0.0.1"], port
    parameters.n_ctx, parameters.n_parallel = 4096, 1
    parameters.cpuparams.n_threads = 1  # two that wait for each other are slow on a busy machine
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
