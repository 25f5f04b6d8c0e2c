"""``bythebook VERB …``: collects the verbs and turns errors into one sentence and an exit code."""

from __future__ import annotations

import sys

import typer

from bythebook import __version__
from bythebook.cli import ask, check, ingest, search, serve
from bythebook.errors import BookError

app = typer.Typer(
    name="bythebook",
    help="A book you can ask: answers that stand in the book, or an honest no.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 100},
)
app.command("ingest")(ingest.ingest)
app.command("ask")(ask.ask)
app.command("search")(search.search)
app.command("serve")(serve.serve)
app.add_typer(check.app, name="check")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bythebook {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options that belong to no verb."""


def run() -> None:
    try:
        app()
    except BookError as error:
        typer.echo(f"bythebook: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("bythebook: stopped.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output went away, as `head` does.
        sys.stderr.close()
        sys.exit(0)
