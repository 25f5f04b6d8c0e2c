"""Chat conversation: input lines are questions or commands; a printer shows the results."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bythebook.cli.output import shortened
from bythebook.cli.printer import Lines, Page, show_events
from bythebook.errors import BookError, InvalidInput
from bythebook.interfaces.conversations import no_such_thread
from bythebook.types import Citation, Question, Role, Thread

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.interfaces.conversations import ThreadSummary

T = TypeVar("T")

_LISTED = 9
_LONGEST_TOPIC = 60


MakeQuestion = Callable[..., Question]  # (text, selection=…), within the limits of the settings


class RunCoroutine(Protocol):
    """Callable that runs a coroutine to completion; Ctrl+C cancels it."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> T: ...


@dataclass(frozen=True, slots=True)
class Command:
    act: Callable[[str], object]  # returning False ends the conversation
    argument: str
    help: str


class ChatSession:
    """State of a chat: current thread, selection and the last reply's citations."""

    def __init__(
        self, book: Book, run: RunCoroutine, printer: Page | Lines, make_question: MakeQuestion
    ) -> None:
        self._book = book
        self._run = run
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
