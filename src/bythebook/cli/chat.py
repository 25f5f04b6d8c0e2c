"""``bythebook chat``: a conversation in a terminal, from a pipe or for a program."""

from __future__ import annotations

import asyncio
import io
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli import options
from bythebook.cli.output import shortened

if TYPE_CHECKING:
    from rich.console import Console

    from bythebook.book import Book
    from bythebook.cli.chat_session import ChatSession, MakeQuestion

_HINT = "Ask what you like. /help lists the commands, Ctrl+C stops an answer, Ctrl+D leaves."
_ESCAPES = re.compile(r"(\x1b\[[0-9;]*m)")

app = options.command()


@app.command()
def chat(
    home: options.Home = None,
    thread: Annotated[
        str | None,
        typer.Option("--thread", metavar="ID", help='Continue this thread, or the "last".'),
    ] = None,
    selected_text: options.SelectedText = None,
    top_k: options.TopK = None,
    relevance_threshold: options.RelevanceThreshold = None,
    filters: options.Filters = None,
    preset: options.Preset = None,
    embedder: options.Embedder = None,
    writer: options.Writer = None,
    as_json: options.Json = False,
) -> None:
    """Start a conversation with the book. Piped questions are answered line by line.

    With piped input the exit code is 0 if all were answered, 1 if the book has no answer, as for
    ask.
    """

    from bythebook.book import Book

    settings = options.load(home=home, preset=preset, embedder=embedder, writer=writer)
    make_question = options.question_maker(settings, top_k, relevance_threshold, filters)
    book = Book(settings)
    code = converse(book, make_question, thread=thread, selection=selected_text, as_json=as_json)
    raise typer.Exit(code)


def converse(
    book: Book,
    make_question: MakeQuestion,
    *,
    thread: str | None = None,
    selection: str | None = None,
    as_json: bool = False,
) -> int:
    """Run a conversation over standard input and output and return its exit code."""
    from bythebook.cli.chat_session import ChatSession
    from bythebook.cli.printer import Lines, Page

    page = Page()
    console = page.console
    printer = Lines() if as_json else page
    with asyncio.Runner() as runner:
        try:
            runner.run(book.context())  # fail early if the book cannot be opened
            session = ChatSession(book, runner.run, printer, make_question)
            session.select(selection)
            session.resume(thread)
            if as_json or not (sys.stdin.isatty() and console.is_terminal):
                return _run_piped(session)
            _greet(session, runner, book, console)
            return _run_interactive(session, console)
        finally:
            runner.run(book.close())


def _greet(session: ChatSession, runner: asyncio.Runner, book: Book, console: Console) -> None:
    async def describe() -> str:
        async with book.reading() as context:
            count = await context.index.store.count()
            return f"{count:,} passages, answers by {context.writer.name}"

    console.print()
    console.print("  By the Book", style="bold cyan", end="")
    console.print(f"  {runner.run(describe())}", style="dim")
    console.print(f"  {_HINT}", style="dim")
    console.print()
    session.show_last_question()


def _run_interactive(session: ChatSession, console: Console) -> int:
    read = _line_editor(session, console)
    while True:
        try:
            line = read(_prompt(session.selection))
        except KeyboardInterrupt:
            console.print()  # the current input is dropped, as in a shell
            continue
        except EOFError:
            console.print()
            break
        try:
            if line.strip() == "/select":
                line = f"/select {_pasted(read, console)}"
            if not session.handle_line(line):
                break
        except (KeyboardInterrupt, EOFError):
            session.interrupt()
    session.show_resume_command()
    return 0


def _run_piped(session: ChatSession) -> int:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # invalid text is reported line by line
    for line in sys.stdin:
        if not session.handle_line(line):
            break
    return session.exit_code


# --- line input -------------------------------------------------------------------------------


def _line_editor(session: ChatSession, console: Console) -> Callable[[str], str]:
    """Return a function that reads a line, with history and completion if readline exists."""
    try:
        import readline
    except ModuleNotFoundError:  # on Windows, the console itself edits lines
        return lambda prompt: console.input(prompt, markup=False)

    def complete(start: str, number: int) -> str | None:
        matching = [name for name in session.commands if name.startswith(start)]
        return matching[number] if start and number < len(matching) else None

    for question in session.questions:
        readline.add_history(question)
    readline.set_completer_delims(" ")
    readline.set_completer(complete)
    libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")

    def read(prompt: str) -> str:
        with console.capture() as drawn:
            console.print(prompt, style="bold cyan", end="")
        # \001 and \002 mark text that readline must not count as visible.
        return input(_ESCAPES.sub("\001\\1\002", drawn.get()))

    return read


def _prompt(selection: str | None) -> str:
    return "› " if selection is None else f"“{shortened(selection, 24)}” › "


def _pasted(read: Callable[[str], str], console: Console) -> str:
    """Read lines up to the first empty one; join lines broken in the middle of a sentence."""
    console.print("  Paste the passage; an empty line ends it.", style="dim")
    lines: list[str] = []
    while line := read("│ ").strip():
        lines.append(line)
    with suppress(ModuleNotFoundError):
        import readline

        for _ in lines:  # a pasted passage does not belong in the history
            readline.remove_history_item(readline.get_current_history_length() - 1)
    text = lines[0] if lines else ""
    for before, line in pairwise(lines):
        broken = line[0].islower() and before[-1] not in ".!?:"
        text += f" {line}" if broken else f"\n{line}"
    return text
