"""``bythebook COMMAND …``: finds the command; turns errors into a message and an exit code."""

from __future__ import annotations

import gc
import io
import os
import sys
from importlib import import_module
from itertools import takewhile
from typing import Any

import typer
from typer.core import TyperGroup

from bythebook import __version__, validation
from bythebook.cli.output import echo, print_json
from bythebook.errors import BookError, WriterFailed

_BAD_INPUT = 2  # exit code for bad input and configuration; 3 is for service failures

_COMMANDS = {  # and the module of each
    "ingest": "ingest",
    "ask": "ask",
    "search": "ask",
    "chat": "chat",
    "export": "export",
    "serve": "serve",
    "mcp": "serve",
    "eval": "eval",
    "check": "check",
    "threads": "threads",
    "keys": "keys",
}


class _Commands(TyperGroup):
    """Commands that are imported when one is run, and all of them for --help."""

    def list_commands(self, _: object) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _: object, name: str) -> Any:
        if name not in _COMMANDS:
            return None
        module = _COMMANDS[name]
        command: Any = typer.main.get_command(import_module(f"bythebook.cli.{module}").app)
        if module in getattr(command, "commands", {}):  # one of several in a module
            command = command.commands[name]
        command.name = name
        return command


app = typer.Typer(
    name="bythebook",
    cls=_Commands,
    help="Ask a book: answers from the book with sources, or a refusal.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"bythebook {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Define the options that belong to no command."""


def run() -> None:
    """Run the command line; every error ends as a one-line message and an exit code."""
    # Startup creates many objects and frees hardly any: garbage collection takes a tenth of it.
    gc.set_threshold(50_000)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot encode a character gets "?" instead of a crash.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except typer.Exit as done:
        code = done.exit_code
    except typer.Abort:
        echo("bythebook: stopped.", err=True)
        code = 130
    except BookError as error:
        code = _fail(str(error), error.exit_code, generation=isinstance(error, WriterFailed))
    except BrokenPipeError:
        code = _leave_quietly()
    except Exception as error:
        code = _fail_unexpected(error)
    sys.exit(code)


def _fail(message: str, code: int, *, generation: bool = False) -> int:
    """Print the error on stderr and, with --json, as JSON on stdout."""
    echo(f"bythebook: {message}", err=True)
    _print_json_error(message, code, generation=generation)
    return code


def _print_json_error(message: str, code: int, *, generation: bool = False) -> None:
    """Print plain's IngestResult for the command ``ingest``, ask's AgentError for all others."""
    arguments = list(takewhile(lambda argument: argument != "--", sys.argv[1:]))
    if "--json" not in arguments:
        return
    verb = next((argument for argument in arguments if not argument.startswith("-")), "")
    if verb == "ingest":
        from bythebook.contracts.plain import IngestResult

        result = IngestResult(
            files_processed=0, chunks_created=0, errors=[message], warnings=[], exit_code=code
        )
        print_json(result.model_dump(mode="json", exclude_unset=True))
    else:
        kind = "validation" if code == _BAD_INPUT else "generation" if generation else "retrieval"
        from bythebook.contracts.ask import AgentError, AgentErrorType

        error = AgentError(error_type=AgentErrorType(kind), message=message)
        print_json(error.model_dump(mode="json"))


def _leave_quietly() -> int:
    """Handle a closed output pipe, as with `head`: Python must not flush into it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fail_usage(error: Any) -> int:
    """Print typer's message about wrong options; its exit code is 0 for --help."""
    from pydantic_core import ValidationError

    if isinstance(error.__cause__, ValidationError):  # a value of the wrong type
        error.message = validation.describe_error(error.__cause__.errors()[0])
    error.show()
    if error.exit_code:
        message = getattr(error, "format_message", error.__str__)()
        _print_json_error(message or "Invalid usage. --help shows the options.", error.exit_code)
    return int(error.exit_code)


def _fail_unexpected(error: Exception) -> int:
    if hasattr(error, "exit_code") and hasattr(error, "show"):  # raised by typer
        return _fail_usage(error)
    if os.environ.get("BYTHEBOOK_DEBUG"):
        raise error
    if isinstance(error, OSError):
        return _fail(f"{error.strerror or error}. Check disk space and permissions.", 3)
    return _fail(
        f"unexpected error ({type(error).__name__}). "
        "BYTHEBOOK_DEBUG=1 shows the traceback; please report it.",
        3,
    )
