"""Fit replies into the limits of a contract's fields, so that every marker keeps its source."""

from __future__ import annotations

from dataclasses import replace

from bythebook.types import Answer, Citation, Place, Reply, Sentence

_CUT = " …"


def citations_of(reply: Reply) -> tuple[Citation, ...]:
    return reply.outcome.citations if isinstance(reply.outcome, Answer) else ()


def sources_of(reply: Reply) -> tuple[Citation, ...]:
    """List each retrieved passage that supports the answer once, at most ``top_k`` of them."""
    sources: dict[str, Citation] = {}
    for citation in citations_of(_as_retrieved(reply)):
        sources.setdefault(citation.passage_id, citation)
    return tuple(sources.values())[: reply.question.top_k]


def _as_retrieved(reply: Reply) -> Reply:
    """Replace citations of a hit's neighbour passages with citations of the hit itself.

    A neighbour may score below the floor, which no listed source may.
    """
    if not isinstance(reply.outcome, Answer):
        return reply
    hits = reply.evidence.hits[: reply.evidence.confidence.count]
    retrieved = {hit.passage.id for hit in hits}
    beside = {name: hit for hit in reversed(hits) for name in hit.passage.neighbours}

    def counted(citation: Citation) -> Citation:
        hit = beside.get(citation.passage_id)
        if hit is None or citation.passage_id in retrieved:
            return citation
        passage = hit.passage
        return replace(
            citation,
            passage_id=passage.id,
            place=passage.place,
            url=passage.place.url,
            score=hit.score,
            position=passage.position,
        )

    citations = tuple(counted(citation) for citation in reply.outcome.citations)
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
    reply = _as_retrieved(reply)
    if not isinstance(reply.outcome, Answer):
        return reply
    sources: dict[Place, Citation] = {}
    numbers: dict[int, int] = {}
    for citation in reply.outcome.citations:
        known = sources.setdefault(citation.place, replace(citation, number=len(sources) + 1))
        numbers[citation.number] = known.number
        sources[citation.place] = replace(known, score=max(known.score, citation.score))
    sentences = tuple(
        replace(s, citations=tuple(dict.fromkeys(numbers[n] for n in s.citations)))
        for s in reply.outcome.sentences
    )
    answer = replace(reply.outcome, sentences=sentences, citations=tuple(sources.values()))
    return replace(reply, outcome=answer)


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
