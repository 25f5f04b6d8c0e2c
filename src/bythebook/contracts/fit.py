"""What the data models share: replies that fit into their limits, and calls of an open book."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from bythebook.answering.citations import listed_hit
from bythebook.answering.pipeline import Event
from bythebook.errors import BookError
from bythebook.language.tokens import estimate_tokens
from bythebook.types import Answer, Citation, Hit, Place, Question, Reply, Sentence

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.interfaces.models import Embedder

_CUT = " …"

# --- replies that fit, so that every marker keeps its source ------------------------------------


def sources_of(reply: Reply) -> tuple[Citation, ...]:
    """List each retrieved passage that supports the answer once; markers by source number them."""
    sources: dict[int, Citation] = {}
    for citation in _as_listed(reply).citations:
        sources.setdefault(citation.source, citation)
    return tuple(sources.values())


def _as_listed(reply: Reply) -> Reply:
    """Replace citations of a hit's neighbours, in the same section, by those of the hit itself."""

    def listed(citation: Citation) -> Citation:
        hit = listed_hit(reply.evidence, citation.passage_id)
        if hit is None or hit.passage.id == citation.passage_id:
            return citation
        passage = hit.passage
        return replace(
            citation,
            passage_id=passage.id,
            score=hit.score,
            position=passage.position,
        )

    if not isinstance(reply.outcome, Answer):
        return reply
    citations = tuple(map(listed, reply.outcome.citations))
    return replace(reply, outcome=replace(reply.outcome, citations=citations))


def named(*names: str) -> str:
    """Return the first non-empty name, for fields that may not be empty.

    Books ingested here name everything; collections filled by other tools may not.
    """
    return next(filter(None, names), "unnamed")


def by_place(reply: Reply) -> Reply:
    """Merge citations of the same section, keep the best score and renumber the markers.

    Used by contracts whose sources name a section and quote nothing.
    """
    reply = number_places(reply)
    if not isinstance(reply.outcome, Answer):
        return reply
    sources: dict[int, Citation] = {}
    for citation in _as_listed(reply).citations:
        known = sources.setdefault(citation.source, replace(citation, number=citation.source))
        sources[citation.source] = replace(known, score=max(known.score, citation.score))
    answer = replace(reply.outcome.by_source, citations=tuple(sources.values()))
    return replace(reply, outcome=answer)


def number_places(reply: Reply) -> Reply:
    """Count the citations of the same section as one source."""
    if not isinstance(reply.outcome, Answer):
        return reply
    numbers: dict[Place, int] = {}
    citations = tuple(
        replace(citation, source=numbers.setdefault(citation.place, len(numbers) + 1))
        for citation in reply.outcome.citations
    )
    return replace(reply, outcome=replace(reply.outcome, citations=citations))


def shortened(reply: Reply, *, chars: int | None = None, sources: int | None = None) -> Reply:
    """Keep as many leading sentences as fit into the given characters and sources."""
    if not isinstance(reply.outcome, Answer):
        return reply
    answer = reply.outcome
    while len(answer.sentences) > 1 and not _fits(answer, chars, sources):
        answer = _with(answer, answer.sentences[:-1])
    if not _fits(answer, chars, sources):
        answer = _with(answer, (_clipped(answer.sentences[0], chars, sources),))
    return replace(reply, outcome=answer)


def _fits(answer: Answer, chars: int | None, sources: int | None) -> bool:
    short = chars is None or len(answer.text) <= chars
    return short and (sources is None or len(answer.citations) <= sources)


def _with(answer: Answer, sentences: tuple[Sentence, ...]) -> Answer:
    """Return the answer with its first sentences; the last one shows its markers."""
    used = {number for sentence in sentences for number in sentence.citations}
    citations = tuple(each for each in answer.citations if each.number in used)
    marked = answer.mark.sentence if answer.mark else len(sentences)
    whole = sentences[marked : marked + 1] == answer.sentences[marked : marked + 1]
    mark = answer.mark if whole and marked < len(sentences) else None
    closed = (*sentences[:-1], replace(sentences[-1], closes=True))
    return replace(answer, sentences=closed, citations=citations, mark=mark)


def _clipped(sentence: Sentence, chars: int | None, sources: int | None) -> Sentence:
    """Truncate a single sentence (most likely a code listing) that is too long by itself."""
    cited = sentence.citations[:sources]
    if chars is None:
        return replace(sentence, citations=cited)
    markers = 1 + sum(len(f"[{number}]") for number in cited)
    start = sentence.text.lstrip()[: chars - markers - len(_CUT)].rstrip()
    return replace(sentence, text=start + _CUT, citations=cited)


# --- an open book -------------------------------------------------------------------------------


async def with_failure(
    events: AsyncGenerator[Event, None],
) -> AsyncGenerator[Event | BookError, None]:
    """Yield the events of an answer; a failure is the last event, not an exception."""
    try:
        async with aclosing(events):
            async for event in events:
                yield event
    except BookError as error:
        yield error


async def embedded(book: Book, text: str) -> tuple[list[float], Embedder]:
    """Return the vector of a question, and the embedder that made it."""
    async with book.reading() as context:
        index = context.index
        vector = await index.question_vectors.of(text, index.embedder)
        return vector.tolist(), index.embedder


async def found(book: Book, question: Question) -> tuple[Hit, ...]:
    """Return the hits of a search that have the question's minimum score, best first."""
    findings = (await book.search(question)).at_least(question.min_score)
    return tuple(sorted(findings.hits, key=lambda hit: -hit.score))


def formatted(texts: Iterable[tuple[Sequence[str | None], str]], *, tokens: int) -> list[str]:
    """Number texts under their headings; of the best first ones, as many as the tokens allow."""
    parts: list[str] = []
    for headings, text in texts:
        part = f"[{len(parts) + 1}] {' › '.join(filter(None, headings))}\n{text}"
        tokens -= estimate_tokens(part)
        if tokens < 0:
            break
        parts.append(part)
    return parts
