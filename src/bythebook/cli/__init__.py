"""Command line, one module per command. Heavy imports happen when a command runs."""

import sys

if sys.platform == "win32":
    raise SystemExit("bythebook: Windows is not supported. Use Linux, macOS or WSL.")
