"""Verify each sentence of a draft against the evidence.

A marker such as ``[2]`` only decides which passage is tried first. A sentence is supported if it
is in a passage verbatim, or if the reading model and a comparison of its words with the passage
together find it probable enough. Each sentence is held back until it is complete and verified, so
that nothing shown is ever retracted. The configured language model can verify instead, or as well:
it is asked once, about the whole draft.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Protocol

from bythebook.errors import ReaderFailed, WriterFailed
from bythebook.grounding.claim_parser import ParsedClaim, TermKind, parse_claim
from bythebook.grounding.entailment import (
    Comparison,
    Window,
    WordSimilarity,
    compare_claim,
    windows,
)
from bythebook.grounding.stream_splitter import (
    DraftClaim,
    claim_of,
    claims,
    inside_fence,
    without_line_mark,
)
from bythebook.interfaces.reader import SentenceSupport
from bythebook.interfaces.writer import WriterSearchResult
from bythebook.language.sentences import split_sentences
from bythebook.language.terms import language_of_passage
from bythebook.types import Evidence, Hit, Passage, UnitKind, Usage, Verdict

if TYPE_CHECKING:
    from bythebook.interfaces.embedding import Embedder
    from bythebook.interfaces.reader import Reader
    from bythebook.interfaces.writer import DraftEvent, DraftPiece

_log = logging.getLogger(__name__)

ENOUGH = 0.5  # minimum probability
_FEWEST_TERMS = 2  # of a sentence that is not verbatim; fewer cannot be verified


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a sentence is supported or not, and counts of what was removed from it."""

    odds: float = 1.0
    reasons: tuple[str, ...] = ()
    foreign_markers: int = 0  # markers that name no passage of the evidence
    addresses: int = 0  # links and markup

    def on(self, text: str, *, holds: bool) -> Verdict:
        return Verdict(text, holds, self.odds, self.reasons, self.foreign_markers, self.addresses)


@dataclass(frozen=True, slots=True)
class Supported:
    """A sentence, and the quote from the evidence that supports it."""

    text: str
    hit: Hit
    quote: str
    lead: str = " "  # whitespace before it in the draft: a space, a newline, an empty line
    finding: Finding = Finding()
    is_verbatim: bool = True
    closes: bool = True  # it is the last sentence of its run, which shares one quote

    @property
    def verdict(self) -> Verdict:
        return self.finding.on(self.text, holds=True)


@dataclass(frozen=True, slots=True)
class Withheld:
    """A sentence that the evidence does not support."""

    text: str
    finding: Finding = Finding(odds=0.0)
    is_claim: bool = False  # it could be true; otherwise it is code or says too little

    @property
    def verdict(self) -> Verdict:
        return self.finding.on(self.text, holds=False)


class SupportModel(Protocol):
    """Language model that judges the sentences of a whole draft at once."""

    async def support(
        self,
        sentences: Sequence[str],
        evidence: Sequence[Passage],
        *,
        on_usage: Callable[[Usage], None],
    ) -> list[SentenceSupport]: ...


@dataclass(frozen=True, slots=True)
class SentenceVerifier:
    """What sentences are verified with. All parts are optional; words are always compared."""

    embedder: Embedder | None = None  # compares single words
    reader: Reader | None = None
    model: SupportModel | None = None
    model_only: bool = False  # reader and words do not decide, except for numbers
    similarity: WordSimilarity = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "similarity", WordSimilarity(self.embedder))


async def check(
    draft: AsyncIterator[DraftPiece],
    evidence: Evidence,
    verifier: SentenceVerifier | None = None,
    *,
    shown: Sequence[Supported] = (),
) -> AsyncGenerator[Supported | Withheld | DraftEvent, None]:
    """Yield the verdict on each sentence as soon as it is complete and verified.

    With a language model as verifier, that is when the draft is complete. Passages that the writer
    found are added to the evidence; its events are passed through. A fallback draft skips sentences
    that an earlier draft has already ``shown``.
    """
    verifier = verifier or SentenceVerifier()
    text_of_evidence = _text_of(evidence)
    before: Supported | Withheld | None = shown[-1] if shown else None
    pending: list[tuple[DraftClaim, Supported | Withheld]] = []
    async with aclosing(claims(draft)) as pieces:
        async for piece in pieces:
            if not isinstance(piece, tuple):
                if isinstance(piece, WriterSearchResult):
                    evidence = with_search_result(evidence, piece)
                    text_of_evidence = _text_of(evidence)
                yield piece
                continue
            lead, text = piece
            claim = claim_of(text, lead=lead, known=text_of_evidence)
            verdict = await judge(claim, evidence, verifier)
            if verifier.model is not None:
                pending.append((claim, verdict))
            elif not _is_shown(verdict, shown):
                before = _in_context(verdict, before)
                yield before
    async for judged in _ask_model(pending, evidence, verifier):
        if isinstance(judged, Usage):
            yield judged
        elif not _is_shown(judged, shown):
            before = _in_context(judged, before)
            yield before


async def _ask_model(
    pending: Sequence[tuple[DraftClaim, Supported | Withheld]],
    evidence: Evidence,
    verifier: SentenceVerifier,
) -> AsyncGenerator[Supported | Withheld | Usage, None]:
    """Yield the verdicts after the language model's judgement; without it if it fails."""
    asked = [claim for claim, verdict in pending if _is_in_doubt(verdict, verifier)]
    usage: list[Usage] = []
    supports: dict[str, SentenceSupport] = {}
    if asked and verifier.model is not None:
        texts = [claim.text for claim in asked]
        passages = [hit.passage for hit in evidence.hits]
        try:
            found = await verifier.model.support(texts, passages, on_usage=usage.append)
            supports = dict(zip(texts, found, strict=True))
        except WriterFailed as error:
            _log.warning("the language model does not verify: %s", error)
    for used in usage:
        yield used
    for claim, verdict in pending:
        support = supports.get(claim.text)
        if support is None or not _is_in_doubt(verdict, verifier):
            yield verdict
        else:
            yield _by_model(claim, verdict, support, evidence, verifier)


def _is_in_doubt(verdict: Supported | Withheld, verifier: SentenceVerifier) -> bool:
    """Return whether the language model's judgement can change this verdict."""
    if isinstance(verdict, Supported):
        return not verdict.is_verbatim
    return verifier.model_only and verdict.is_claim


def _by_model(
    claim: DraftClaim,
    verdict: Supported | Withheld,
    support: SentenceSupport,
    evidence: Evidence,
    verifier: SentenceVerifier,
) -> Supported | Withheld:
    finding = verdict.finding
    if support.passage is None or support.probability <= ENOUGH:
        reason = "the language model does not find it in the passages"
        finding = replace(finding, odds=support.probability, reasons=(reason,))
        return Withheld(claim.text, finding)
    if isinstance(verdict, Supported) and not verifier.model_only:
        odds = min(finding.odds, support.probability)
        return replace(verdict, finding=replace(finding, odds=odds))
    reading = parse_claim(without_line_mark(claim.text))
    missing = _missing_numbers(reading, evidence.hits)
    if missing:
        reason = f"the passages have no such number: {', '.join(missing)}"
        return Withheld(claim.text, replace(finding, odds=0.0, reasons=(reason,)))
    hit = evidence.hits[support.passage]
    best = next(iter(windows(reading, [hit])), None)
    quote = best.quote if best else hit.passage.text
    finding = replace(finding, odds=support.probability, reasons=())
    return Supported(claim.text, hit, quote, claim.lead, finding, is_verbatim=False)


def _missing_numbers(claim: ParsedClaim, hits: Sequence[Hit]) -> list[str]:
    known = {
        key
        for hit in hits
        for text in (hit.passage.text, hit.passage.place.path)
        for key in parse_claim(text).keys
    }
    return [t.text for t in claim.terms if t.kind is TermKind.NUMBER and t.key not in known]


async def check_quotes(
    quotes: Iterable[Supported], *, shown: Sequence[Supported] = ()
) -> AsyncGenerator[Supported | Withheld, None]:
    """Yield the sentences that the extractive writer took from the evidence.

    They are verbatim, so that nothing is withheld; what was already ``shown`` is left out.
    """
    new = [quote for quote in quotes if not _is_shown_verbatim(quote, shown)]
    for quote, after in zip_longest(new, new[1:]):
        closes = after is None or after.quote != quote.quote
        yield replace(quote, closes=quote.closes or closes)


def _is_shown_verbatim(quote: Supported, shown: Sequence[Supported]) -> bool:
    text = without_line_mark(quote.text)
    return any(
        quote.hit.passage.id == other.hit.passage.id and text in other.quote for other in shown
    )


def with_search_result(evidence: Evidence, result: WriterSearchResult) -> Evidence:
    """Append the passages a writer searched for; they do not affect the confidence."""
    tokens = evidence.tokens + sum(hit.passage.tokens for hit in result.hits)
    return replace(evidence, hits=(*evidence.hits, *result.hits), tokens=tokens)


def _text_of(evidence: Evidence) -> str:
    return "\n".join(hit.passage.text for hit in evidence.hits)


def _is_shown(verdict: Supported | Withheld, shown: Sequence[Supported]) -> bool:
    """Return whether the same words of the same passage were already quoted."""
    return isinstance(verdict, Supported) and any(
        verdict.hit.passage.id == other.hit.passage.id and verdict.quote in other.quote
        for other in shown
    )


def _in_context(
    verdict: Supported | Withheld, before: Supported | Withheld | None
) -> Supported | Withheld:
    """Withhold a sentence that leans on another one that is not shown before it."""
    if isinstance(verdict, Withheld) or _stands(verdict, before):
        return verdict
    reason = "it leans on a sentence that is not shown before it"
    return Withheld(verdict.text, replace(verdict.finding, reasons=(reason,)))


async def judge(
    claim: DraftClaim, evidence: Evidence, verifier: SentenceVerifier
) -> Supported | Withheld:
    """Look for the claim verbatim in the evidence first, then compare words and meaning."""
    named = [evidence.hits[n - 1] for n in claim.cited if 1 <= n <= len(evidence.hits)]
    hits = [*named, *(hit for hit in evidence.hits if hit not in named)]
    for text in claim.wordings():
        for hit in hits:
            quote = _verbatim(text, hit)
            if quote is not None:
                # The matched wording is the book's own text, including its brackets and URLs.
                cited = claim_of(claim.raw.removeprefix(text)).cited
                finding = Finding(foreign_markers=_count_foreign(cited, evidence))
                return Supported(text, hit, quote, claim.lead, finding)
    return await _in_own_words(claim, evidence, hits, verifier)


async def _in_own_words(
    claim: DraftClaim, evidence: Evidence, hits: Sequence[Hit], verifier: SentenceVerifier
) -> Supported | Withheld:
    foreign = claim.strange_markers + _count_foreign(claim.cited, evidence)
    dropped = Finding(0.0, foreign_markers=foreign, addresses=claim.addresses)
    reading = parse_claim(without_line_mark(claim.text))
    if len([term for term in reading.terms if not term.is_light]) < _FEWEST_TERMS:
        return Withheld(claim.text, replace(dropped, reasons=("it says too little",)))
    if inside_fence(claim.text) is not None:
        reason = "code is shown only as it stands in the book"
        return Withheld(claim.text, replace(dropped, reasons=(reason,)))
    support = await _read(claim.text, hits, verifier)
    weighed = await compare_claim(reading, hits, verifier.similarity, support)
    if weighed is None:
        reason = "no passage has its words"
        return Withheld(claim.text, replace(dropped, reasons=(reason,)), is_claim=True)
    best, odds = weighed
    finding = replace(dropped, odds=odds, reasons=tuple(_reasons(best)))
    if odds < ENOUGH:
        return Withheld(claim.text, finding, is_claim=True)
    unsaid = _unsaid(reading, best.window)
    if unsaid:
        return Withheld(claim.text, replace(finding, odds=0.0, reasons=(unsaid,)))
    quote = best.window.quote
    return Supported(claim.text, best.window.hit, quote, claim.lead, finding, is_verbatim=False)


async def _read(text: str, hits: Sequence[Hit], verifier: SentenceVerifier) -> float | None:
    """Return the reading model's probability of support; None if it has no say."""
    english = [hit.passage for hit in hits if language_of_passage(hit.passage) == "en"]
    if verifier.reader is None or not english:
        return None
    try:
        (support,) = await verifier.reader.support([text], english)
    except ReaderFailed as error:
        _log.warning("verifying without the reading model: %s", error)
        return None
    return support.probability


def _unsaid(claim: ParsedClaim, window: Window) -> str | None:
    """Return why the window has the claim's words but does not assert them, or None.

    "State that kites are dangerous" does not assert that kites are, nor does "suppose".
    """
    there = [parse_claim(text) for text in window.texts]
    words = {term.text.lower() for term in claim.terms}
    if any(reading.orders - words for reading in there):
        return "the passage orders or supposes it, and does not say it"
    if claim.is_own and not any(reading.is_own for reading in there):
        return "it speaks of whoever wrote it"
    return None


def _count_foreign(cited: Sequence[int], evidence: Evidence) -> int:
    return sum(not 1 <= number <= len(evidence.hits) for number in cited)


def _stands(verdict: Supported, before: Supported | Withheld | None) -> bool:
    """Return whether a leading pronoun such as "it" keeps its antecedent in the answer."""
    units = verdict.hit.passage.units
    if not parse_claim(without_line_mark(verdict.text)).leans:
        return True
    first = units[0].end if units else 0
    if verdict.hit.passage.text.find(verdict.quote) < first:
        return True  # its antecedent is the heading
    return isinstance(before, Supported) and before.hit.passage.id == verdict.hit.passage.id


def _in_a_row(words: Sequence[str]) -> re.Pattern[str]:
    return re.compile(r"\s+".join(map(re.escape, words)))


def _verbatim(text: str, hit: Hit) -> str | None:
    """Return the passage's own text if whole sentences match; for a fenced block, its content."""
    words = without_line_mark(text).split()
    passage = hit.passage
    if not words or words[0] not in passage.text:
        return None
    for match in _in_a_row(words).finditer(passage.text):
        if _is_whole(hit, match.start(), match.end()):
            return inside_fence(match[0]) or match[0]
    return None


def _is_whole(hit: Hit, start: int, end: int) -> bool:
    """Return whether the span starts and ends at borders of sentences, rows or blocks.

    A part of a sentence may state the opposite of the whole.
    """
    borders = list(_borders(hit))
    return any(first == start for first, _ in borders) and any(last == end for _, last in borders)


def _borders(hit: Hit) -> Iterator[tuple[int, int]]:
    for unit in hit.passage.units:
        yield unit.start, unit.end
        if unit.kind in (UnitKind.SENTENCE, UnitKind.ITEM):
            for first, last in split_sentences(hit.passage.unit_text(unit)):
                yield unit.start + first, unit.start + last


_REASONS = {
    "flips": "it denies what the passage says, or says what it denies",
    "clashes": "it says more, less or the opposite",
    "exchanged": "names, numbers or words have changed places",
    "reversed": "its words stand the other way round",
    "lost": "a name or number stands in other company",
    "leaps": "it ties one sentence's subject to another's predicate",
}


def _reasons(comparison: Comparison) -> Iterator[str]:
    for kind in (TermKind.NUMBER, TermKind.NAME, TermKind.WORD):
        lacking = [f"“{term.text}”" for term in comparison.lacking if term.kind is kind]
        if lacking:
            yield f"the passage has no such {kind.value}: {', '.join(lacking)}"
    for name, reason in _REASONS.items():
        if getattr(comparison.signals, name):
            yield reason
