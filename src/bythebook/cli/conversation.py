"""Chat conversation: input lines are questions or commands; a printer shows the results."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bythebook.cli.terminal_text import shortened
from bythebook.errors import BookError, InvalidInput
from bythebook.interfaces.thread_rules import no_such_thread
from bythebook.types import Answer, Citation, Question, Reply, Role, Thread

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.cli.printer import Printer
    from bythebook.interfaces.conversations import ThreadSummary

T = TypeVar("T")

_LISTED = 9
_LONGEST_TOPIC = 60


class MakeQuestion(Protocol):
    """Callable that builds a question within the limits of the settings."""

    def __call__(self, text: str, *, selection: str | None) -> Question: ...


class Run(Protocol):
    """Callable that runs a coroutine to completion; Ctrl+C cancels it."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> T: ...


@dataclass(frozen=True, slots=True)
class Command:
    act: Callable[[str], None]
    argument: str
    help: str


class Conversation:
    """State of a chat: current thread, selection and the last reply's citations."""

    def __init__(
        self, library: Book, run: Run, printer: Printer, make_question: MakeQuestion
    ) -> None:
        self._library = library
        self._run = run
        self._printer = printer
        self._make_question = make_question
        self._thread_id = str(uuid.uuid4())
        self._said: Thread | None = None  # messages from before this conversation
        self._kept = False
        self._listed: Sequence[ThreadSummary] = ()
        self._citations: tuple[Citation, ...] = ()
        self.selection: str | None = None
        self.exit_code = 0
        self.commands: Mapping[str, Command] = {
            "/sources": Command(self._sources, "[N]", "the sources in full, with their links"),
            "/select": Command(
                self._select, "[TEXT | off]", "ask about a passage alone; off: the whole book"
            ),
            "/new": Command(self._new, "", "begin a new thread"),
            "/history": Command(self._history, "", "what was said in this thread"),
            "/threads": Command(self._threads, "", "the latest threads"),
            "/resume": Command(self._resume, "N | ID | last", "go on with one of them"),
            "/help": Command(self._help, "", "this list"),
            "/quit": Command(self._help, "", "leave, as Ctrl+D does"),
        }

    @property
    def questions(self) -> list[str]:
        """Return the earlier questions of the resumed thread, one line each."""
        said = self._said.messages if self._said else ()
        return [" ".join(each.content.split()) for each in said if each.role is Role.USER]

    def hear(self, line: str) -> bool:
        """Handle a line; return False if the conversation ends. Errors do not end it."""
        word, _, rest = line.strip().partition(" ")
        if not word:
            return True
        if word in ("/quit", "/exit"):
            return False
        try:
            if word.startswith("/"):
                self._command(word, rest.strip())
            else:
                self._ask(line)
        except BookError as error:
            self.exit_code = max(self.exit_code, error.exit_code)
            self._printer.fail(error)
        return True

    def interrupt(self) -> None:
        self._printer.stop()
        self._printer.note("Stopped; nothing of it is kept.", style="yellow")
        self._printer.note()

    def select(self, text: str | None) -> None:
        """Restrict further questions to this text; None: the whole book."""
        # Building a question validates the selection.
        self.selection = self._make_question("?", selection=text).selection

    def resume(self, name: str | None) -> None:
        """Continue a thread, given by its id or "last". None: a new one."""
        if name is None:
            return
        if name == "last":
            listed = self._run(self._library.threads.list(owner=None, limit=1))
            if not listed:
                raise no_such_thread()
            name = listed[0].id
        found = self._run(self._library.threads.read(name, owner=None))
        if found is None:
            raise no_such_thread()
        self._said, self._thread_id, self._kept = found, found.id, True
        self._citations = found.messages[-1].citations if found.messages else ()

    def recall(self) -> None:
        """Print the last question of a resumed thread."""
        if not self.questions:
            return
        self._printer.note(f"Last you asked: {shortened(self.questions[-1], _LONGEST_TOPIC)}")
        self._printer.note("/history shows the whole thread.")
        self._printer.note()

    def part(self) -> None:
        if self._kept:
            self._printer.note(f"To go on: bythebook chat --thread {self._thread_id}")

    # --- questions ------------------------------------------------------------------------------

    def _ask(self, text: str) -> None:
        question = self._make_question(text, selection=self.selection)
        self._printer.begin(question)
        reply = self._run(self._journey(replace(question, thread=self._thread_id)))
        self._kept = self._kept or reply.persisted
        answered = isinstance(reply.outcome, Answer)
        self._citations = reply.outcome.citations if isinstance(reply.outcome, Answer) else ()
        self.exit_code = max(self.exit_code, 0 if answered else 1)

    async def _journey(self, question: Question) -> Reply:
        async with aclosing(self._library.ask(question)) as journey:
            async for event in journey:
                self._printer.show(event)
                if isinstance(event, Reply):
                    return event
        raise AssertionError("a journey ends with its reply")

    # --- commands -------------------------------------------------------------------------------

    def _command(self, word: str, argument: str) -> None:
        command = self.commands.get(word)
        if command is None:
            raise InvalidInput(f"There is no command {word}.", hint="/help lists them.")
        command.act(argument)

    def _sources(self, number: str) -> None:
        if not self._citations:
            self._printer.note("The last reply has no sources.")
            self._printer.note()
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
            self._printer.note("Asking the whole book.")
        else:
            self.select(text)
            self._printer.note("Asking about this passage alone; /select off ends that.")
        self._printer.note()

    def _new(self, _: str) -> None:
        self._thread_id, self._said, self._kept = str(uuid.uuid4()), None, False
        self._citations = ()
        self.select(None)
        self._printer.note("A new thread.")
        self._printer.note()

    def _history(self, _: str) -> None:
        thread = self._run(self._library.threads.read(self._thread_id, owner=None))
        if thread is None:
            self._printer.note("Nothing has been said yet.")
            self._printer.note()
            return
        if thread.earlier:
            self._printer.note(f"({thread.earlier} earlier messages)")
        for message in thread.messages:
            if message.role is Role.USER:
                self._printer.note(f"› {message.content}", style="bold cyan")
            else:
                self._printer.note(message.content, style="")
                self._printer.note()

    def _threads(self, _: str) -> None:
        self._listed = self._run(self._library.threads.list(owner=None, limit=_LISTED))
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
        thread = self._run(self._library.threads.read(summary.id, owner=None))
        return thread.messages[0].content if thread and thread.messages else ""

    def _resume(self, which: str) -> None:
        if not which:
            raise InvalidInput("Which thread?", hint="/threads numbers them: /resume 1")
        if which.isdecimal() and 1 <= int(which) <= len(self._listed):
            which = self._listed[int(which) - 1].id
        self.resume(which)
        self.recall()

    def _help(self, _: str) -> None:
        width = max(len(f"{name} {one.argument}") for name, one in self.commands.items())
        for name, command in self.commands.items():
            self._printer.note(f"{f'{name} {command.argument}':<{width}}  {command.help}", style="")
        self._printer.note()
