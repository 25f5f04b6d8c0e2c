"""Fit replies into the limits of a contract's fields, so that every marker keeps its source."""

from __future__ import annotations

from dataclasses import replace

from bythebook.answering.citations import listed_hit
from bythebook.types import Answer, Citation, Place, Reply, Sentence

_CUT = " …"


def citations_of(reply: Reply) -> tuple[Citation, ...]:
    return reply.outcome.citations if isinstance(reply.outcome, Answer) else ()


def sources_of(reply: Reply) -> tuple[Citation, ...]:
    """List each retrieved passage that supports the answer once; markers by source number them."""
    sources: dict[int, Citation] = {}
    for citation in citations_of(_as_listed(reply)):
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
    for citation in citations_of(_as_listed(reply)):
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
