"""Printers that show the events of a question as they arrive.

``Page`` is for people, on a terminal, in a file or a pipe; ``Lines`` is for programs: one JSON
document per reply.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.style import Style
from rich.text import Text

from bythebook.answering.pipeline import Event, State
from bythebook.cli.output import LONGEST_QUOTE, print_json, printable, shortened, warnings_of
from bythebook.refusals import SMALL_TALK, Refusal
from bythebook.types import Answer, Citation, Evidence, MarkKind, Question, Reply, Sentence

if TYPE_CHECKING:
    from rich.status import Status

    from bythebook.book import ReplyStream
    from bythebook.errors import BookError

_WIDEST = 96  # longer lines are hard to read, however wide the window
_FENCE = re.compile(r"(`{3,}+|~{3,}+)[ \t]*+([\w+-]*+)[^\n]*+\n")

_WORD = re.compile(r"\S+")
_STYLES = {
    MarkKind.STRONG: "bold",
    MarkKind.EMPHASIS: "italic",
    MarkKind.STRUCK: "strike",
    MarkKind.CODE: "green",
}

_WAITING = {State.RETRIEVING: "Searching …", State.GENERATING: "Writing …"}


async def show_events(events: ReplyStream, printer: Page | Lines) -> Reply:
    """Print the events of a question as they arrive, and return the reply."""
    async with aclosing(events):
        async for event in events:
            printer.show(event)
            if isinstance(event, Reply):
                return event
    raise AssertionError("the last event is the reply")


class Page:
    """Printer for people: streams wrapped sentences, then sources, warnings and figures."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False, emoji=False, markup=False)
        self._terminal = self.console.is_terminal
        self._margin = 2 if self._terminal else 0
        self._column = 0
        self._links: dict[int, str] = {}
        self._status: Status | None = None

    def begin(self, question: Question) -> None:
        """Print the question, except on a terminal, where it was just typed."""
        self.note("" if self._terminal else f"› {question.text}")

    def show(self, event: Event) -> None:
        if isinstance(event, State):
            self._wait(event)
        elif isinstance(event, Citation):
            self._links[event.number] = printable(event.link)
        elif isinstance(event, Sentence):
            self._sentence(event)
        elif isinstance(event, Reply):
            self._finish(event)
        else:
            assert isinstance(event, Evidence)  # its sentences arrive as separate events

    def stop(self) -> None:
        self._stop_waiting()
        if self._column:
            self.console.print()
        self._column = 0
        self._links = {}

    def note(self, text: str = "", *, style: str = "dim") -> None:
        self._line(Text(printable(text), style))

    def fail(self, error: BookError) -> None:
        self.stop()
        self.note(str(error), style="red")
        self.note()

    def sources(self, citations: Sequence[Citation]) -> None:
        """Print each citation in full, with the link to the quoted text."""
        for citation in citations:
            self._place(citation, citation.link)
            self._quote(citation, printable(citation.quote.strip()), style="")
            self.note()

    # --- while streaming ------------------------------------------------------------------------

    def _wait(self, state: State) -> None:
        if not self._terminal or state not in _WAITING:
            return
        if self._status is None:
            self._status = self.console.status(_WAITING[state], spinner_style="cyan")
            self._status.start()
        self._status.update(_WAITING[state])

    def _stop_waiting(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _sentence(self, sentence: Sentence) -> None:
        self._stop_waiting()
        text = printable(sentence.text)
        if self._column:
            self.console.print("\n" * (sentence.lead.count("\n") or "\n" in text), end="")
            self._column = 0 if "\n" in sentence.lead + text else self._column
        if "\n" in text:
            self._block(text)
        else:
            nested = (sentence.lead.rpartition("\n")[2] + text) if not self._column else ""
            self._words(_styled(sentence, text), indent=len(nested) - len(nested.lstrip()))
        for number in sentence.markers:
            link = Style(color="cyan", link=self._links.get(number) if self._terminal else None)
            self._words(Text(f"[{number}]", link))

    def _words(self, text: Text, *, indent: int = 0) -> None:
        """Append text to the current line, wrapped at word boundaries; indent a new one."""
        edge = min(self.console.width, _WIDEST) if self._terminal else sys.maxsize
        for found in _WORD.finditer(text.plain):
            word = text[found.start() : found.end()]
            width = cell_len(word.plain)
            if self._column and self._column + 1 + width > edge:
                self.console.print()
                self._column = 0
            gap = " " * (1 if self._column else self._margin + indent)
            self.console.print(gap, word, sep="", end="", soft_wrap=True)
            self._column += len(gap) + width

    def _block(self, text: str) -> None:
        """Print code and tables with their line breaks."""
        fence = _FENCE.match(text)
        code = text.partition("\n")[2].rpartition("\n")[0] if fence else text
        if not self._terminal:
            self.console.print(Text(text), soft_wrap=True)
        else:
            from rich.syntax import Syntax

            lexer = (fence[2] if fence else "") or "text"
            drawn = Syntax(code, lexer, theme="ansi_dark", background_color="default")
            self.console.print(Padding(drawn, (0, 0, 0, self._margin + 2)))

    # --- after the reply ------------------------------------------------------------------------

    def _finish(self, reply: Reply) -> None:
        self.stop()
        if isinstance(reply.outcome, Answer):
            self._answered(reply.outcome)
        else:
            self._refused(reply.outcome)
        remarks = [(warning, "yellow") for warning in warnings_of(reply)]
        if self._terminal and isinstance(reply.outcome, Answer):
            remarks.append((" · ".join(_figures(reply, reply.outcome)), "dim"))
        if remarks:
            self.note()
        for remark, style in remarks:
            self.note(remark, style=style)
        self.note()

    def _answered(self, answer: Answer) -> None:
        """Print the sources below the answer, grouped by place, with their quotes."""
        places: dict[str, list[Citation]] = {}
        for citation in answer.citations:
            places.setdefault(citation.url or citation.place.path, []).append(citation)
        for cited in places.values():
            self.note()
            self._place(cited[0], cited[0].url)
            for citation in cited:
                quote = shortened(citation.quote, LONGEST_QUOTE)
                self._quote(citation, quote, mark=answer.span)

    def _refused(self, refusal: Refusal) -> None:
        self.note(SMALL_TALK if refusal.is_small_talk else f"{refusal.text}.", style="bold")
        if refusal.related is not None:
            self.note()
            self.note(printable(refusal.remark or ""))
            link = refusal.related.link
            self._address(link.partition(":~:")[0].removesuffix("#"), link, indent=2)
        if refusal.nearby:
            self.note()
            self.note("Nearby, the book covers:")
        for topic in refusal.nearby:
            self._line(Text(printable(topic.title)), indent=2)
            self._address(topic.url, topic.url, indent=2)

    def _place(self, citation: Citation, address: str) -> None:
        place = citation.place
        path = " › ".join(dict.fromkeys((place.title, *place.section)))
        self._line(Text(printable(path), "bold"))
        if address:
            self._address(address, citation.link)

    def _quote(
        self, citation: Citation, quote: str, *, mark: str | None = None, style: str = "dim"
    ) -> None:
        number = f"[{citation.number}] "
        text = Text.assemble((number, "cyan"), (f"“{quote}”", style))
        if mark:
            text.highlight_words([mark], "not dim bold")
        self._line(text, hang=len(number))

    def _address(self, shown: str, link: str, *, indent: int = 0) -> None:
        style = Style(color="blue", link=printable(link)) if self._terminal else ""
        space = " " * (self._margin + indent)
        self.console.print(Text.assemble(space, (printable(shown), style)), soft_wrap=True)

    def _line(self, text: Text, *, indent: int = 0, hang: int = 0) -> None:
        """Print a paragraph with a hanging indent."""
        if not self._terminal or not text:
            self.console.print(Text(" " * indent) + text, soft_wrap=True)
            return
        left = self._margin + indent
        width = max(min(self.console.width, _WIDEST) - left - hang, 8)
        for number, line in enumerate(text.wrap(self.console, width)):
            space = " " * (left + (hang if number else 0))
            self.console.print(Text(space) + line, soft_wrap=True)


def _styled(sentence: Sentence, shown: str) -> Text:
    """Return what is shown of a sentence with its inline markup, unless it has lost characters."""
    text = Text(shown)
    for mark in sentence.marks or () if shown == sentence.text else ():
        link = Style(link=printable(mark.target), underline=True)
        style = link if mark.kind is MarkKind.LINK else _STYLES.get(mark.kind, "")
        text.stylize(style, mark.start, mark.end)
    return text


def _figures(reply: Reply, answer: Answer) -> Iterator[str]:
    yield f"{reply.evidence.confidence.level.value} confidence"
    yield printable(answer.writer)
    usage = reply.usage
    if usage.calls:
        yield f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens"
    if usage.cost_usd is not None:
        yield f"${usage.cost_usd:.4f}"
    if reply.cached:
        yield "cached"
    yield f"{reply.timings.total_ms:.0f} ms"


class Lines:
    """Printer for programs: one JSON line per reply or error; notes go to standard error."""

    def begin(self, question: Question) -> None:
        """Do nothing: the reply's line contains the question."""

    def show(self, event: Event) -> None:
        if not isinstance(event, Reply):
            return
        from bythebook.contracts.ask import show

        shown = show(event).model_dump(mode="json")
        self._print({"question": event.question.text, "thread": event.question.thread, **shown})

    def stop(self) -> None:
        """Do nothing: there is no partial output."""

    def note(self, text: str = "", *, style: str = "dim") -> None:
        del style
        if text:
            print(printable(text), file=sys.stderr)

    def fail(self, error: BookError) -> None:
        self._print({"error": str(error)})

    def sources(self, citations: Sequence[Citation]) -> None:
        for citation in citations:
            self.note(f"[{citation.number}] {citation.place.path}  {citation.link}")

    def _print(self, document: Mapping[str, object]) -> None:
        print_json(document, indent=None)
        sys.stdout.flush()
