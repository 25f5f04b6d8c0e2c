"""Command line; ``main`` names the module of each command. Imports are heavy only when it runs."""

import sys

if sys.platform == "win32":
    raise SystemExit("bythebook: Windows is not supported. Use Linux, macOS or WSL.")
