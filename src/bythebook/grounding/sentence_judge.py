"""Judge one sentence: shown as it is, replaced by the book's own words, or withheld.

A sentence is shown if it is in a passage verbatim, or if the reading model and a comparison of its
words with the passage together find it probable enough. If it is not, but its names and numbers
are those of the evidence and no passage says it otherwise, the words of the book that it rests on
take its place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from bythebook.errors import ReaderFailed
from bythebook.grounding.claim_parser import ParsedClaim, TermKind, parse_claim
from bythebook.grounding.entailment import Comparison, Window, WordSimilarity, compare_claim
from bythebook.grounding.framing import without_connective, without_particle
from bythebook.grounding.quotation import LEAST_RELEVANCE, Quotation, find_quotations
from bythebook.grounding.stream_splitter import (
    DraftClaim,
    claim_of,
    without_line_mark,
)
from bythebook.grounding.verbatim import find_verbatim
from bythebook.grounding.verdicts import Finding, Supported, Withheld
from bythebook.interfaces.models import SentenceSupport
from bythebook.language.terms import language_of_passage
from bythebook.text.units import inside_fence
from bythebook.types import Evidence, Hit, Passage, Usage

if TYPE_CHECKING:
    from bythebook.interfaces.models import Embedder, Reader

_log = logging.getLogger(__name__)

ENOUGH = 0.5  # minimum probability
_FEWEST_TERMS = 2  # of a sentence that is not verbatim; fewer cannot be verified


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


async def judge(
    claim: DraftClaim, evidence: Evidence, verifier: SentenceVerifier
) -> Supported | Withheld:
    """Look for the claim verbatim in the evidence first, then compare words and meaning."""
    named = [evidence.hits[n - 1] for n in claim.cited if 1 <= n <= len(evidence.hits)]
    hits = [*named, *(hit for hit in evidence.hits if hit not in named)]
    for text in claim.wordings():
        for hit in hits:
            quote = find_verbatim(text, hit)
            if quote is not None:
                # The matched wording is the book's own text, including its brackets and URLs.
                cited = claim_of(claim.raw.removeprefix(text)).cited
                finding = Finding(foreign_markers=_count_foreign(cited, evidence))
                return Supported(text, hit, quote, claim.lead, finding)
    claim = replace(claim, text=without_particle(claim.text))
    verdict = await _in_own_words(claim, evidence, hits, verifier)
    if isinstance(verdict, Withheld) and verdict.is_claim and not verdict.is_refuted:
        return await in_books_words(claim, verdict, hits, verifier)
    return verdict


async def _in_own_words(
    claim: DraftClaim, evidence: Evidence, hits: Sequence[Hit], verifier: SentenceVerifier
) -> Supported | Withheld:
    foreign = claim.strange_markers + _count_foreign(claim.cited, evidence)
    dropped = Finding(0.0, foreign_markers=foreign, addresses=claim.addresses)
    text = without_connective(claim.text)
    reading = parse_claim(text)
    if len([term for term in reading.terms if not term.is_light]) < _FEWEST_TERMS:
        return Withheld(claim.text, replace(dropped, reasons=("it says too little",)))
    if inside_fence(claim.text) is not None:
        reason = "code is shown only as it stands in the book"
        return Withheld(claim.text, replace(dropped, reasons=(reason,)))
    support = await _read(text, hits, verifier)
    weighed = await compare_claim(reading, hits, verifier.similarity, support)
    if weighed is None:
        reason = "no passage has its words"
        finding = replace(dropped, reasons=(reason,))
        return Withheld(claim.text, finding, is_claim=True, is_refuted=True)
    best, odds = weighed
    finding = replace(dropped, odds=odds, reasons=tuple(_reasons(best)))
    unsaid = _unsaid(reading, best.window)
    if unsaid:
        return Withheld(claim.text, replace(finding, odds=0.0, reasons=(unsaid,)))
    refuted = is_refuted(reading, best, hits)
    if odds < ENOUGH or refuted:
        finding = replace(finding, odds=min(odds, 1 - ENOUGH))
        return Withheld(claim.text, finding, is_claim=True, is_refuted=refuted)
    quote = best.window.quote
    return Supported(claim.text, best.window.hit, quote, claim.lead, finding, is_verbatim=False)


def is_refuted(claim: ParsedClaim, best: Comparison, hits: Sequence[Hit]) -> bool:
    """Return whether no passage has a name or number of the claim, or one says it otherwise.

    A passage says it otherwise if it has all words of the claim, but denies them, has others in
    their place, or compares them the other way round.
    """
    if missing_terms(claim, keys_of_evidence(hits), (TermKind.NUMBER, TermKind.NAME)):
        return True
    signals = best.signals
    differs = signals.flips or signals.clashes or signals.exchanged
    return bool(differs) and not signals.uncovered


async def in_books_words(
    claim: DraftClaim, withheld: Withheld, hits: Sequence[Hit], verifier: SentenceVerifier
) -> Supported | Withheld:
    """Return the words of the book that the sentence rests on, or the sentence as withheld."""
    text = without_connective(claim.text)
    found = await find_quotations(text, hits, verifier.similarity, verifier.reader)
    if not found or found[0].relevance < LEAST_RELEVANCE:
        return withheld
    first, *others = (_quoted(each, claim, withheld.finding) for each in found)
    return replace(first, also=next(iter(others), None))


def _quoted(found: Quotation, claim: DraftClaim, finding: Finding) -> Supported:
    """Return the quotation with the list mark of the sentence, unless it has lines of its own."""
    mark = claim.text.removesuffix(without_line_mark(claim.text))
    is_block = "\n" in found.text
    text = found.text if is_block else mark + without_line_mark(found.text)
    lead = "\n\n" if is_block else claim.lead
    return Supported(text, found.hit, found.quote, lead, finding, replaces=claim.text)


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


def keys_of_evidence(hits: Sequence[Hit]) -> frozenset[str]:
    """Return the keys of all words of the passages and their headings."""
    texts = (text for hit in hits for text in (hit.passage.text, hit.passage.place.path))
    return frozenset(key for text in texts for key in parse_claim(text).keys)


def missing_terms(
    claim: ParsedClaim, known: frozenset[str], kinds: Sequence[TermKind]
) -> list[str]:
    """Return the numbers or names of the claim that are not known; "Wi-Fi" is known as "WiFi"."""
    texts = ["", *(term.text.lower() for term in claim.terms), ""]
    return [
        term.text
        for before, term, after in zip(texts, claim.terms, texts[2:], strict=False)
        if term.kind in kinds
        and not term.is_light
        and known.isdisjoint((term.key, before + term.text.lower(), term.text.lower() + after))
    ]
