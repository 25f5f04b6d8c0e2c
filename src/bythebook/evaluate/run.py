"""A library and rows in, graded cases out: the only part of an evaluation that asks anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bythebook.answer.check import Supported, check
from bythebook.answer.respond import respond
from bythebook.answer.write import Desk
from bythebook.evaluate.grade import DEEPEST_RANK, Asked, Case, grade
from bythebook.evaluate.places import Places
from bythebook.evaluate.questions import Row
from bythebook.model import Answer, Evidence, Hit, Level, Passage, Question, Reply
from bythebook.ports import Candidate, Embedder, Entry, Filters, PassageStore
from bythebook.retrieve.search import search

if TYPE_CHECKING:
    from bythebook.library import Library
    from bythebook.model import Vectors

Progress = Callable[[int, int], None]


async def ask_all(
    asked: Sequence[tuple[Row, Question]],
    library: Library,
    passages: Mapping[str, Passage],
    *,
    on_progress: Progress = lambda done, total: None,
) -> list[Case]:
    """Every question in turn, so that its times are its own; all on one state of the book."""
    desk, book = await library.desk(), Places(passages)
    hidden = [book.hidden(row) for row, _ in asked]
    await _settle_in(desk, asked)
    cases = []
    for done, ((row, question), without) in enumerate(zip(asked, hidden, strict=True), 1):
        cases.append(await _case(row, question, _without(desk, without), book))
        on_progress(done, len(asked))
    return cases


async def _settle_in(desk: Desk, asked: Sequence[tuple[Row, Question]]) -> None:
    """The first question pays for opening the model and the index: it is asked once for nothing."""
    for _, question in asked[:1]:
        await _reply(question, desk)


async def _case(row: Row, question: Question, desk: Desk, book: Places) -> Case:
    reply = await _reply(question, desk)
    pressed = reply
    if not isinstance(reply.outcome, Answer):
        unbound = replace(question, floor=0.0, needs=Level.INSUFFICIENT)
        pressed = await _reply(unbound, desk)
    found: tuple[Hit, ...] = ()
    if book.whereabouts(row) is not None:
        found = (await search(replace(question, top_k=DEEPEST_RANK), desk.index)).hits
    supported: tuple[bool, ...] = ()
    if isinstance(reply.outcome, Answer):
        supported = await recheck(reply.outcome, row, book, desk.index.embedder)
    return grade(Asked(row, reply, pressed, found, supported), book)


async def recheck(
    answer: Answer, row: Row, book: Places, embedder: Embedder | None = None
) -> tuple[bool, ...]:
    """Whether each sentence holds against the catalog's passages that the answer cites."""
    sources = {citation.passage_id: book.source(citation, row) for citation in answer.citations}
    hits = [Hit(source, 1, 0.0, 0.0) for source in sources.values() if source is not None]
    verdicts = check(_redraft(answer), Evidence(hits=tuple(hits)), embedder)
    return tuple([isinstance(verdict, Supported) async for verdict in verdicts])


async def _redraft(answer: Answer) -> AsyncIterator[str]:
    for sentence in answer.sentences:
        yield f"{sentence.text}\n\n"


async def _reply(question: Question, desk: Desk) -> Reply:
    async for event in respond(question, desk):
        if isinstance(event, Reply):
            return event
    raise AssertionError("a journey ends with its reply")


def _without(desk: Desk, passage_ids: Set[str]) -> Desk:
    if not passage_ids:
        return desk
    store = Without(desk.index.store, frozenset(passage_ids))
    return replace(desk, index=replace(desk.index, store=store))


@dataclass(frozen=True, slots=True)
class Without:
    """A passage store that has never heard of some of its passages.

    Only how rare a word is in the book still counts them.
    """

    store: PassageStore
    hidden: frozenset[str]

    async def find(
        self, vector: Vectors | None, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Candidate]:
        # As many more as are hidden: they may have been the best in each of the ways.
        more = limit + len(self.hidden)
        found = await self.store.find(vector, terms, limit=more, filters=filters)
        return [each for each in found if each.passage_id not in self.hidden]

    async def fetch(self, passage_ids: Sequence[str]) -> list[Entry]:
        return await self.store.fetch([name for name in passage_ids if name not in self.hidden])

    async def count(self) -> int:
        return await self.store.count() - len(self.hidden)

    async def close(self) -> None:
        await self.store.close()
