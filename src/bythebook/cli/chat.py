"""``bythebook chat``: a conversation in a terminal, from a pipe or for a program."""

from __future__ import annotations

import asyncio
import io
import re
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli import options
from bythebook.cli.output import shortened
from bythebook.errors import BookError, InvalidInput
from bythebook.interfaces.conversations import Thread, no_such_thread
from bythebook.types import Citation, Question, Role

if TYPE_CHECKING:
    from rich.console import Console

    from bythebook.book import Book
    from bythebook.cli.printer import Lines, Page
    from bythebook.interfaces.conversations import ThreadSummary


_HINT = "Ask what you like. /help lists the commands, Ctrl+C stops an answer, Ctrl+D leaves."
_LISTED = 9  # threads
_LONGEST_TOPIC = 60
_ESCAPES = re.compile(r"(\x1b\[[0-9;]*m)")

MakeQuestion = Callable[..., Question]  # (text, selection=…), within the limits of the settings

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
    from bythebook.cli.printer import Lines, Page

    page = Page()
    console = page.console
    printer = Lines() if as_json else page
    with asyncio.Runner() as runner:
        try:
            runner.run(book.context())  # fail early if the book cannot be opened
            session = ChatSession(book, runner, printer, make_question)
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


# --- the session ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Command:
    act: Callable[[str], object]  # returning False ends the conversation
    argument: str
    help: str


class ChatSession:
    """State of a chat: current thread, selection and the last reply's citations."""

    def __init__(
        self,
        book: Book,
        runner: asyncio.Runner,
        printer: Page | Lines,
        make_question: MakeQuestion,
    ) -> None:
        self._book = book
        self._run = runner.run  # Ctrl+C cancels what runs
        self._printer = printer
        self._make_question = make_question
        self._thread_id = str(uuid.uuid4())
        self._earlier: Thread | None = None  # messages from before this conversation
        self._is_stored = False
        self._listed: Sequence[ThreadSummary] = ()
        self._citations: tuple[Citation, ...] = ()
        self.selection: str | None = None
        self.exit_code = 0
        self.commands: Mapping[str, Command] = {
            "/sources": Command(self._sources, "[N]", "show the last sources in full, with links"),
            "/select": Command(
                self._select, "[TEXT | off]", "ask only about a passage; off: the whole book"
            ),
            "/new": Command(self._new, "", "start a new thread"),
            "/history": Command(self._history, "", "show this thread"),
            "/threads": Command(self._threads, "", "list the latest threads"),
            "/resume": Command(self._resume, "N | ID | last", "continue a thread"),
            "/help": Command(self._help, "", "show this list"),
            "/quit": Command(lambda _: False, "", "leave (also Ctrl+D)"),
        }

    @property
    def questions(self) -> list[str]:
        """Return the earlier questions of the resumed thread, one line each."""
        messages = self._earlier.messages if self._earlier else ()
        return [" ".join(one.content.split()) for one in messages if one.role is Role.USER]

    def handle_line(self, line: str) -> bool:
        """Handle a line; return False if the conversation ends. Errors do not end it."""
        word, _, rest = line.strip().partition(" ")
        if not word:
            return True
        try:
            if word.startswith("/"):
                return self._command(word, rest.strip()) is not False
            self._ask(line)
        except BookError as error:
            self.exit_code = max(self.exit_code, error.exit_code)
            self._printer.fail(error)
        return True

    def interrupt(self) -> None:
        self._printer.stop()
        self._say("Stopped; nothing was saved.", style="yellow")

    def select(self, text: str | None) -> None:
        """Restrict further questions to this text; None: the whole book."""
        # Building a question validates the selection.
        self.selection = self._make_question("?", selection=text).selection

    def resume(self, thread_id: str | None) -> None:
        """Continue a thread, given by its id or "last". None: a new one."""
        if thread_id is None:
            return
        if thread_id == "last":
            listed = self._run(self._book.threads.list(owner=None, limit=1))
            if not listed:
                raise no_such_thread()
            thread_id = listed[0].id
        thread = self._run(self._book.threads.read(thread_id, owner=None))
        if thread is None:
            raise no_such_thread()
        self._earlier, self._thread_id, self._is_stored = thread, thread.id, True
        self._citations = thread.messages[-1].citations if thread.messages else ()

    def show_last_question(self) -> None:
        """Print the last question of a resumed thread."""
        if not self.questions:
            return
        self._printer.note(f"Last question: {shortened(self.questions[-1], _LONGEST_TOPIC)}")
        self._say("/history shows the whole thread.")

    def show_resume_command(self) -> None:
        if self._is_stored:
            self._printer.note(f"To continue: bythebook chat --thread {self._thread_id}")

    def _say(self, text: str, *, style: str = "dim") -> None:
        """Print a note and an empty line."""
        self._printer.note(text, style=style)
        self._printer.note()

    # --- questions ------------------------------------------------------------------------------

    def _ask(self, text: str) -> None:
        from bythebook.cli.printer import show_events

        question = self._make_question(text, selection=self.selection)
        self._printer.begin(question)
        events = self._book.ask(replace(question, thread=self._thread_id))
        reply = self._run(show_events(events, self._printer))
        self._is_stored = self._is_stored or reply.persisted
        self._citations = reply.citations
        if not reply.answered:
            self.exit_code = max(self.exit_code, 1)

    # --- commands -------------------------------------------------------------------------------

    def _command(self, word: str, argument: str) -> object:
        command = self.commands.get("/quit" if word == "/exit" else word)
        if command is None:
            raise InvalidInput(f"There is no command {word}.", hint="/help lists them.")
        return command.act(argument)

    def _sources(self, number: str) -> None:
        if not self._citations:
            self._say("The last reply has no sources.")
            return
        wanted = [one for one in self._citations if not number or str(one.number) == number]
        if not wanted:
            raise InvalidInput(
                f"There is no source {number}.", hint=f"Use 1 to {len(self._citations)}."
            )
        self._printer.sources(wanted)

    def _select(self, text: str) -> None:
        if text in ("", "off"):
            self.select(None)
            self._say("Questions are now about the whole book.")
        else:
            self.select(text)
            self._say("Questions are now about this passage; /select off ends that.")

    def _new(self, _: str) -> None:
        self._thread_id, self._earlier, self._is_stored = str(uuid.uuid4()), None, False
        self._citations = ()
        self.select(None)
        self._say("Started a new thread.")

    def _history(self, _: str) -> None:
        thread = self._run(self._book.threads.read(self._thread_id, owner=None))
        if thread is None:
            self._say("This thread has no messages yet.")
            return
        if thread.earlier:
            self._printer.note(f"({thread.earlier} earlier messages)")
        for message in thread.messages:
            if message.role is Role.USER:
                self._printer.note(f"› {message.content}", style="bold cyan")
            else:
                self._say(message.content, style="")

    def _threads(self, _: str) -> None:
        self._listed = self._run(self._book.threads.list(owner=None, limit=_LISTED))
        if not self._listed:
            self._printer.note("There are no threads yet.")
        for number, thread in enumerate(self._listed, 1):
            moment = thread.updated_at.astimezone().strftime("%Y-%m-%d %H:%M")
            topic = shortened(self._topic(thread), _LONGEST_TOPIC)
            here = "  (this one)" if thread.id == self._thread_id else ""
            self._printer.note(f"{number}  {moment}  {topic}{here}", style="")
        self._printer.note()

    def _topic(self, summary: ThreadSummary) -> str:
        if summary.topic_summary:
            return summary.topic_summary
        thread = self._run(self._book.threads.read(summary.id, owner=None))
        return thread.messages[0].content if thread and thread.messages else ""

    def _resume(self, which: str) -> None:
        if not which:
            raise InvalidInput("No thread was given.", hint="/threads lists them. Use: /resume 1")
        if which.isdecimal() and 1 <= int(which) <= len(self._listed):
            which = self._listed[int(which) - 1].id
        self.resume(which)
        self.show_last_question()

    def _help(self, _: str) -> None:
        width = max(len(f"{name} {one.argument}") for name, one in self.commands.items())
        for name, command in self.commands.items():
            self._printer.note(f"{f'{name} {command.argument}':<{width}}  {command.help}", style="")
        self._printer.note()
