"""A desk, a question and its evidence in, sentences that hold out; who wrote them, at what cost.

The chosen writer's draft goes through the check as it comes. Where that writer fails, or nothing
of its draft holds, the desk's offline writer takes over: from the start if nothing was shown yet,
else with what was not shown yet. A writer that says that the book does not say is believed.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from bythebook.answer.check import Supported, Withheld, check, with_found
from bythebook.answer.prompt import NOT_SAID
from bythebook.errors import Truncated, WriterFailed
from bythebook.model import Evidence, Message, Question, Usage, Verdict
from bythebook.ports import Found, Writer
from bythebook.retrieve.search import Index

_log = logging.getLogger(__name__)

PARTLY = "The book does not answer all of this question."
_THESE, _THE_REST = "these are the book's own sentences.", "the rest are the book's own sentences."


@dataclass(frozen=True, slots=True)
class Desk:
    """What answers questions: an open book, someone who writes, and someone to stand in."""

    index: Index
    writer: Writer
    context_tokens: int
    fallback: Writer | None = None  # None: a writer that fails is an error


class Writing:
    """One answer while it is written: iterate over ``sentences``, then read the rest."""

    def __init__(
        self, desk: Desk, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> None:
        self.evidence = evidence  # with what the writer looked up by itself
        self.verdicts: list[Verdict] = []
        self.usage = Usage()
        self.writer = desk.writer.name  # whose the sentences are
        self.fallback: str | None = None
        self._desk = desk
        self._question = question
        self._history = history
        self._shown: list[Supported] = []
        self._declined = False

    @property
    def disclaimer(self) -> str | None:
        return PARTLY if self._declined and self._shown else None

    async def sentences(self) -> AsyncGenerator[Supported, None]:
        try:
            async with aclosing(self._draft(self._desk.writer)) as sentences:
                async for sentence in sentences:
                    yield sentence
        except WriterFailed as error:
            if isinstance(error, Truncated) and self._shown:
                return  # it had more to say; what it has said is whole
            if self._desk.fallback is None:
                raise
            _log.warning("%s failed: %s", self._desk.writer.name, error)
            why = _why(error)
        else:
            if self._shown or self._declined:
                return
            why = "Nothing that the language model wrote stands in the book"
        if self._desk.fallback is None:
            return
        self.fallback = f"{why}; {_THE_REST if self._shown else _THESE}"
        if not self._shown:
            self.writer = self._desk.fallback.name
        async with aclosing(self._draft(self._desk.fallback)) as sentences:
            async for sentence in sentences:
                yield sentence

    async def _draft(self, writer: Writer) -> AsyncGenerator[Supported, None]:
        """What holds of one writer's draft; all that is known of it is written down."""
        draft = writer.write(self._question, self.evidence, self._history)
        before = tuple(self._shown)
        checking = check(draft, self.evidence, self._desk.index.embedder, shown=before)
        async with aclosing(checking):
            async for each in checking:
                match each:
                    case Usage():
                        self.usage += each
                    case Found():
                        self.evidence = with_found(self.evidence, each)
                    case Withheld() if _declines(each):
                        self._declined = True
                    case Withheld():
                        self.verdicts.append(each.verdict)
                    case Supported():
                        self.verdicts.append(each.verdict)
                        goes_on = bool(before) and len(self._shown) == len(before)
                        self._shown.append(each)
                        yield replace(each, lead="\n\n") if goes_on else each


def _declines(sentence: Withheld) -> bool:
    return sentence.text.strip(' .*_"“”').casefold() == NOT_SAID.strip(".").casefold()


def _why(error: WriterFailed) -> str:
    """For a reader; what the operator should know of it is in the log."""
    if error.timed_out:
        return "The language model did not answer in time"
    if error.retryable:
        return "The language model is not available at the moment"
    return "The language model could not write this answer"
