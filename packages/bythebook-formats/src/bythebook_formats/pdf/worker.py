"""Process that reads one PDF file: bytes on standard input, lines of JSON on standard output.

python -P -m bythebook_formats.pdf.worker SECONDS BYTES NAME

PDFium is native code, and a file can be made to crash it or to keep it busy; so it runs in a
process of its own, which may use so many seconds of the processor and so many bytes of memory.
"""

from __future__ import annotations

import sys

from bythebook_formats.pdf.reading import read_lines

_MAX_OUTPUT = 1024 * 1024 * 1024  # bytes
_MAX_OPEN_FILES = 64


def main() -> None:
    seconds, memory, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    _limit(seconds, memory)
    content = sys.stdin.buffer.read()
    for line in read_lines(content, name):
        sys.stdout.write(line + "\n")
    sys.stdout.write('{"end": true}\n')


def _limit(seconds: int, memory: int) -> None:
    try:
        import resource  # noqa: PLC0415 - there is none on Windows
    except ImportError:
        return
    limits = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_FSIZE: _MAX_OUTPUT,
        resource.RLIMIT_NOFILE: _MAX_OPEN_FILES,
        resource.RLIMIT_CORE: 0,
    }
    for kind, wanted in limits.items():
        allowed = resource.getrlimit(kind)[1]
        most = wanted if allowed == resource.RLIM_INFINITY else min(wanted, allowed)
        resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
