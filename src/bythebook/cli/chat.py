"""``bythebook chat``: a conversation with the book, in a terminal, from a pipe or for a program."""

from __future__ import annotations

import asyncio
import io
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli import options
from bythebook.cli.lines import shortened

if TYPE_CHECKING:
    from rich.console import Console

    from bythebook.cli.conversation import Conversation, MakeQuestion
    from bythebook.cli.printer import Printer
    from bythebook.library import Library

_HINT = "Ask what you like. /help lists the commands, Ctrl+C stops an answer, Ctrl+D leaves."
_ESCAPES = re.compile(r"(\x1b\[[0-9;]*m)")


def chat(
    home: options.Home = None,
    thread: Annotated[
        str | None,
        typer.Option("--thread", metavar="ID", help='Go on with this thread, or with the "last".'),
    ] = None,
    selected_text: Annotated[
        str | None,
        typer.Option("--selected-text", help="Answer from this text of the book alone."),
    ] = None,
    top_k: options.TopK = None,
    relevance_threshold: options.RelevanceThreshold = None,
    filters: options.Filters = None,
    preset: options.Preset = None,
    embedder: options.Embedder = None,
    writer: options.Writer = None,
    as_json: options.Json = False,
) -> None:
    """Talk with the book. Questions that are piped in are answered line by line.

    Then the exit code is 0 if all were answered, 1 if the book does not say, as that of ask.
    """
    from bythebook.assemble import open_library
    from bythebook.quick import question_for

    settings = options.load(home=home, preset=preset, embedder=embedder, writer=writer)
    narrowed = options.read_filters(filters)
    make_question = partial(
        question_for,
        settings=settings,
        filters=narrowed,
        top_k=top_k,
        relevance_threshold=relevance_threshold,
    )
    opening = Opening(thread=thread, selection=selected_text, as_json=as_json)
    raise typer.Exit(hold(open_library(settings), make_question, opening))


@dataclass(frozen=True, slots=True)
class Opening:
    """How a conversation begins."""

    thread: str | None = None
    selection: str | None = None
    as_json: bool = False


def hold(library: Library, make_question: MakeQuestion, opening: Opening) -> int:
    """A conversation over standard input and output, from its opening to its exit code."""
    from bythebook.cli.conversation import Conversation
    from bythebook.cli.printer import Lines, Page

    console = _console()
    printer: Printer = Lines() if opening.as_json else Page(console)
    with asyncio.Runner() as runner:
        try:
            runner.run(library.desk())  # a book that cannot be opened is said so now
            conversation = Conversation(library, runner.run, printer, make_question)
            conversation.select(opening.selection)
            conversation.resume(opening.thread)
            if opening.as_json or not (sys.stdin.isatty() and console.is_terminal):
                return _from_a_pipe(conversation)
            _greet(conversation, runner, library, console)
            return _at_a_terminal(conversation, console)
        finally:
            runner.run(library.close())


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, emoji=False, markup=False)


def _greet(
    conversation: Conversation, runner: asyncio.Runner, library: Library, console: Console
) -> None:
    async def of_the_book() -> str:
        async with library.reading() as desk:
            return f"{await desk.index.store.count():,} passages, answers by {desk.writer.name}"

    console.print()
    console.print("  By the Book", style="bold cyan", end="")
    console.print(f"  {runner.run(of_the_book())}", style="dim")
    console.print(f"  {_HINT}", style="dim")
    console.print()
    conversation.recall()


def _at_a_terminal(conversation: Conversation, console: Console) -> int:
    read = _line_editor(conversation, console)
    while True:
        try:
            line = read(_prompt(conversation.selection))
        except KeyboardInterrupt:
            console.print()  # what was being typed is dropped, as in a shell
            continue
        except EOFError:
            console.print()
            break
        try:
            if line.strip() == "/select":
                line = f"/select {_pasted(read, console)}"
            if not conversation.hear(line):
                break
        except (KeyboardInterrupt, EOFError):
            conversation.interrupt()
    conversation.part()
    return 0


def _from_a_pipe(conversation: Conversation) -> int:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # said to be no text, line by line
    for line in sys.stdin:
        if not conversation.hear(line):
            break
    return conversation.exit_code


# --- the line that is typed on --------------------------------------------------------------------


def _line_editor(conversation: Conversation, console: Console) -> Callable[[str], str]:
    """Reads a line after a prompt: with arrows, history and completion where there is readline."""
    try:
        import readline
    except ModuleNotFoundError:  # on Windows, the console itself edits lines
        return lambda prompt: console.input(prompt, markup=False)

    def complete(start: str, number: int) -> str | None:
        matching = [name for name in conversation.commands if name.startswith(start)]
        return matching[number] if start and number < len(matching) else None

    for question in conversation.questions:
        readline.add_history(question)
    readline.set_completer_delims(" ")
    readline.set_completer(complete)
    libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")

    def read(prompt: str) -> str:
        with console.capture() as drawn:
            console.print(prompt, style="bold cyan", end="")
        # Between these two, readline counts nothing as shown.
        return input(_ESCAPES.sub("\001\\1\002", drawn.get()))

    return read


def _prompt(selection: str | None) -> str:
    return "› " if selection is None else f"“{shortened(selection, 24)}” › "


def _pasted(read: Callable[[str], str], console: Console) -> str:
    """Lines up to the first empty one; what was broken in the middle of a sentence is joined."""
    console.print("  Paste the passage; an empty line ends it.", style="dim")
    lines: list[str] = []
    while line := read("│ ").strip():
        lines.append(line)
    with suppress(ModuleNotFoundError):
        import readline

        for _ in lines:  # a passage is no question to come back to
            readline.remove_history_item(readline.get_current_history_length() - 1)
    text = lines[0] if lines else ""
    for before, line in pairwise(lines):
        broken = line[0].islower() and before[-1] not in ".!?:"
        text += f" {line}" if broken else f"\n{line}"
    return text
