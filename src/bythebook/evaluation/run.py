"""Ask the questions of an evaluation and grade the replies. No other module asks questions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bythebook.answering.generation import AnswerContext
from bythebook.answering.pipeline import respond
from bythebook.evaluation.grade import DEEPEST_RANK, Asked, Case, Places, claims_of, grade
from bythebook.evaluation.questions import Row
from bythebook.evaluation.support_calibration import make_claims, measure_support
from bythebook.grounding.stream_splitter import claim_of
from bythebook.grounding.verifier import SentenceVerifier, Supported, check, judge
from bythebook.interfaces.store import Candidate, Filters, IndexedPassage, PassageStore
from bythebook.retrieval.search import search
from bythebook.types import Answer, Evidence, Hit, Level, Passage, Question, Reply

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.types import Vectors

Progress = Callable[[int, int], None]


async def ask_all(
    asked: Sequence[tuple[Row, Question]],
    library: Book,
    passages: Mapping[str, Passage],
    *,
    on_progress: Progress = lambda done, total: None,
) -> list[Case]:
    """Ask sequentially, so that timings do not interfere; all on one state of the book."""
    context, book = await library.context(), Places(passages)
    hidden = [book.hidden(row) for row, _ in asked]
    await _settle_in(context, asked)
    cases = []
    for done, ((row, question), without) in enumerate(zip(asked, hidden, strict=True), 1):
        cases.append(await _case(row, question, _without(context, without), book))
        on_progress(done, len(asked))
    return cases


async def _settle_in(context: AnswerContext, asked: Sequence[tuple[Row, Question]]) -> None:
    """Warm up: ask the first question once, so that loading model and index is not timed."""
    for _, question in asked[:1]:
        await _reply(question, context)


async def _case(row: Row, question: Question, context: AnswerContext, book: Places) -> Case:
    reply = await _reply(question, context)
    pressed = reply
    if not isinstance(reply.outcome, Answer):
        unbound = replace(question, min_score=0.0, min_confidence=Level.INSUFFICIENT)
        pressed = await _reply(unbound, context)
    found: tuple[Hit, ...] = ()
    if book.whereabouts(row) is not None:
        found = (await search(replace(question, top_k=DEEPEST_RANK), context.index)).hits
    supported: tuple[bool, ...] = ()
    if isinstance(reply.outcome, Answer):
        supported = await recheck(claims_of(reply.outcome), row, book, context.verifier)
    return grade(Asked(row, reply, pressed, found, supported), book)


async def recheck(
    answer: Answer, row: Row, book: Places, verifier: SentenceVerifier | None = None
) -> tuple[bool, ...]:
    """Verify each sentence again, against the catalog's text of the cited passages."""
    sources = {citation.passage_id: book.source(citation, row) for citation in answer.citations}
    hits = [Hit(source, 1, 0.0, 0.0) for source in sources.values() if source is not None]
    verdicts = check(_redraft(answer), Evidence(hits=tuple(hits)), verifier)
    return tuple([isinstance(verdict, Supported) and verdict.is_own async for verdict in verdicts])


async def judge_support(library: Book, passages: Iterable[Passage]) -> list[tuple[float, bool]]:
    """Let the verifier judge claims made from the book: the probability and label of each."""
    verifier = (await library.context()).verifier

    async def judge_claim(text: str, evidence: Evidence) -> float:
        claim = claim_of(text, known=evidence.hits[0].passage.text)
        return (await judge(claim, evidence, verifier)).finding.odds

    return await measure_support(make_claims(passages), judge_claim)


async def _redraft(answer: Answer) -> AsyncIterator[str]:
    for sentence in answer.sentences:
        yield f"{sentence.text}\n\n"


async def _reply(question: Question, context: AnswerContext) -> Reply:
    async for event in respond(question, context):
        if isinstance(event, Reply):
            return event
    raise AssertionError("a journey ends with its reply")


def _without(context: AnswerContext, passage_ids: Set[str]) -> AnswerContext:
    if not passage_ids:
        return context
    store = Without(context.index.store, frozenset(passage_ids))
    return replace(context, index=replace(context.index, store=store))


@dataclass(frozen=True, slots=True)
class Without:
    """Passage store wrapper that hides some passages.

    Term frequencies (IDF) still count the hidden passages.
    """

    store: PassageStore
    hidden: frozenset[str]

    async def find(
        self, vector: Vectors | None, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Candidate]:
        # Fetch as many more as are hidden: they may be the best ones of each search method.
        more = limit + len(self.hidden)
        found = await self.store.find(vector, terms, limit=more, filters=filters)
        return [each for each in found if each.passage_id not in self.hidden]

    async def fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        return await self.store.fetch([name for name in passage_ids if name not in self.hidden])

    async def count(self) -> int:
        return await self.store.count() - len(self.hidden)

    async def close(self) -> None:
        await self.store.close()
