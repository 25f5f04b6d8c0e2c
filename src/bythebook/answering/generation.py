"""Run a writer and stream the verified sentences of its draft, with the fallback and the usage.

The draft is verified while it streams. If the writer fails, or no sentence of its draft is
supported, the fallback writer takes over and skips what was already shown. A writer's statement
that the book does not answer is accepted without a fallback.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from bythebook.answering.extractive import ExtractiveWriter
from bythebook.answering.gate import QuestionPart
from bythebook.answering.prompts import NOT_SAID
from bythebook.errors import Truncated, WriterFailed
from bythebook.grounding.verifier import (
    SentenceVerifier,
    Supported,
    Withheld,
    check,
    check_quotes,
    with_search_result,
)
from bythebook.interfaces.writer import DraftEvent, Writer, WriterSearchResult
from bythebook.retrieval.search import SearchContext
from bythebook.types import Evidence, Message, Usage, Verdict

_log = logging.getLogger(__name__)

PARTLY = "The book does not answer all of this question."
_THESE, _THE_REST = "these are the book's own sentences.", "the rest are the book's own sentences."
AnswerWriter = Writer | ExtractiveWriter


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """Everything needed to answer: a search index, a writer and a fallback writer."""

    index: SearchContext
    writer: AnswerWriter
    context_tokens: int
    fallback: AnswerWriter | None = None  # None: a failing writer raises an error
    verifier: SentenceVerifier = field(default_factory=SentenceVerifier)


class GenerationRun:
    """State of one generation: iterate over ``sentences``, then read the other attributes."""

    def __init__(
        self,
        context: AnswerContext,
        parts: Sequence[QuestionPart],
        evidence: Evidence,
        history: Sequence[Message],
    ) -> None:
        self.evidence = evidence  # plus what the writer searched for by itself
        self.verdicts: list[Verdict] = []
        self.usage = Usage()
        self.writer = context.writer.name  # name of the writer of the shown sentences
        self.fallback: str | None = None
        self._context = context
        self._parts = parts  # the whole question first
        self._history = history
        self._shown: list[Supported] = []
        self._declined = False

    @property
    def disclaimer(self) -> str | None:
        return PARTLY if self._declined and self._shown else None

    async def sentences(self) -> AsyncGenerator[Supported, None]:
        try:
            async with aclosing(self._draft(self._context.writer)) as sentences:
                async for sentence in sentences:
                    yield sentence
        except WriterFailed as error:
            if isinstance(error, Truncated) and self._shown:
                return  # the sentences shown so far are complete
            if self._context.fallback is None:
                raise
            _log.warning("writer %s failed: %s", self._context.writer.name, error)
            why = _why(error)
        else:
            if self._shown or self._declined:
                return
            why = "Nothing that the language model wrote stands in the book"
        if self._context.fallback is None:
            return
        self.fallback = f"{why}; {_THE_REST if self._shown else _THESE}"
        if not self._shown:
            self.writer = self._context.fallback.name
        async with aclosing(self._draft(self._context.fallback)) as sentences:
            async for sentence in sentences:
                yield sentence

    async def _draft(self, writer: AnswerWriter) -> AsyncGenerator[Supported, None]:
        """Yield the supported sentences of one writer's draft; record verdicts, usage, evidence."""
        before = tuple(self._shown)
        async with aclosing(self._check(writer, before)) as checked:
            async for event in checked:
                match event:
                    case Usage():
                        self.usage += event
                    case WriterSearchResult():
                        self.evidence = with_search_result(self.evidence, event)
                    case Withheld() if _declines(event):
                        self._declined = True
                    case Withheld():
                        self.verdicts.append(event.verdict)
                    case Supported():
                        self.verdicts.append(event.verdict)
                        goes_on = bool(before) and len(self._shown) == len(before)
                        self._shown.append(event)
                        yield replace(event, lead="\n\n") if goes_on else event

    def _check(
        self, writer: AnswerWriter, shown: tuple[Supported, ...]
    ) -> AsyncGenerator[Supported | Withheld | DraftEvent, None]:
        if isinstance(writer, ExtractiveWriter):
            return check_quotes(writer.extract(self._parts), shown=shown)
        question = self._parts[0].question.question
        draft = writer.write(question, self.evidence, self._history)
        return check(draft, self.evidence, self._context.verifier, shown=shown)


def _declines(sentence: Withheld) -> bool:
    return sentence.text.strip(' .*_"“”').casefold() == NOT_SAID.strip(".").casefold()


def _why(error: WriterFailed) -> str:
    """Return the reason to show to readers; the details for the operator are in the log."""
    if error.timed_out:
        return "The language model did not answer in time"
    if error.retryable:
        return "The language model is not available at the moment"
    return "The language model could not write this answer"
