"""The command line, one file for each verb. Heavy imports happen when a verb runs."""

import sys

if sys.platform == "win32":
    raise SystemExit("bythebook: Windows is not supported. Use Linux, macOS or WSL.")
