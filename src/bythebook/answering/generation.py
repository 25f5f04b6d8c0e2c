"""Run a writer and stream the verified sentences of its draft, with the fallback and the usage.

The draft is verified while it streams. If the writer fails, or more than two thirds of the claims
in its draft are withheld or replaced, the fallback writer takes over and skips what was already
shown; as long as that is so, sentences are held back. A writer's statement that the book does not
answer is final.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
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
from bythebook.interfaces.models import DraftEvent, Writer, WriterSearchResult
from bythebook.retrieval.search import SearchContext
from bythebook.types import Evidence, Message, Usage, Verdict

_log = logging.getLogger(__name__)

PARTLY = "The book does not answer all of this question."
MOST_UNVERIFIED = 2 / 3  # share of a draft's claims that may be withheld or replaced
_THESE, _THE_REST = "these are the book's own sentences.", "the rest are the book's own sentences."
_UNVERIFIED = "most of the draft could not be verified"
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
        self._held: list[tuple[int, Supported]] = []  # not yet shown; with the verdict's index
        self._own = 0  # claims of the draft that are shown in the writer's words
        self._claims = 0
        self._replaced = ""  # sentence that the last quotation replaces
        self._declined = False

    @property
    def disclaimer(self) -> str | None:
        return PARTLY if self._declined and self._shown else None

    async def sentences(self) -> AsyncGenerator[Supported, None]:
        why: str | None
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
            why = self._why_fall_back()
        fallback = self._context.fallback
        if why is not None and fallback is not None:
            before = len(self._shown)
            self.fallback = f"{why}; {_THE_REST if before else _THESE}"
            self.writer = self.writer if before else fallback.name
            async with aclosing(self._draft(fallback, is_fallback=True)) as sentences:
                async for sentence in sentences:
                    yield sentence
            if len(self._shown) > before or not self._held:
                self._discard()
                return
            self.fallback, self.writer = None, self._context.writer.name
        for sentence in self._release():
            yield sentence

    def _why_fall_back(self) -> str | None:
        """Return why the fallback writer should write the answer, if it should."""
        if self._declined:
            return None  # a model that was asked and says no is right more often than a score
        if not self._shown and not self._held:
            return "Nothing that the language model wrote stands in the book"
        if self._is_unverified:
            return "Most of what the language model wrote could not be verified"
        return None

    @property
    def _is_unverified(self) -> bool:
        return self._claims - self._own > MOST_UNVERIFIED * self._claims

    def _count(self, sentence: Supported) -> None:
        """Count a claim; two quotations in place of one sentence are one claim."""
        if sentence.is_own or sentence.replaces != self._replaced:
            self._claims += 1
            self._own += sentence.is_own
        self._replaced = sentence.replaces

    def _release(self) -> Iterator[Supported]:
        """Yield the sentences that were held back; from now on they are shown."""
        held, self._held = self._held, []
        for _, sentence in held:
            self._shown.append(sentence)
            yield sentence

    def _discard(self) -> None:
        """Count the sentences that were held back as not shown."""
        for at, sentence in self._held:
            written = sentence.replaces or sentence.text
            finding = replace(sentence.finding, reasons=(_UNVERIFIED,))
            self.verdicts[at] = Withheld(written, finding).verdict
        self._held = []

    async def _draft(
        self, writer: AnswerWriter, *, is_fallback: bool = False
    ) -> AsyncGenerator[Supported, None]:
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
                        self._claims += event.is_claim
                        self.verdicts.append(event.verdict)
                    case Supported() if is_fallback:
                        self.verdicts.append(event.verdict)
                        goes_on = bool(before) and len(self._shown) == len(before)
                        self._shown.append(event)
                        yield replace(event, lead="\n\n") if goes_on else event
                    case Supported():
                        self._count(event)
                        self._held.append((len(self.verdicts), event))
                        self.verdicts.append(event.verdict)
                        if self._shown or not self._is_unverified:
                            for sentence in self._release():
                                yield sentence

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
