"""Verify each sentence of a draft against the evidence.

A marker such as ``[2]`` only decides which passage is tried first. Each sentence is held back until
it is complete and judged, so that nothing shown is ever retracted. The configured language model
can judge instead, or as well: it is asked once, about the whole draft.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from bythebook.errors import WriterFailed
from bythebook.grounding.answer_order import AnswerOrder, stands
from bythebook.grounding.claim_parser import TermKind, parse_claim
from bythebook.grounding.entailment import windows
from bythebook.grounding.framing import is_announcement
from bythebook.grounding.sentence_judge import (
    ENOUGH,
    SentenceVerifier,
    SupportModel,
    in_books_words,
    judge,
    keys_of_evidence,
    missing_terms,
)
from bythebook.grounding.stream_splitter import DraftClaim, claim_of, claims, without_line_mark
from bythebook.grounding.verdicts import Finding, Supported, Withheld
from bythebook.interfaces.models import SentenceSupport, WriterSearchResult
from bythebook.types import Evidence, Usage

if TYPE_CHECKING:
    from bythebook.interfaces.models import DraftEvent, DraftPiece

__all__ = [
    "Finding",
    "SentenceVerifier",
    "SupportModel",
    "Supported",
    "Withheld",
    "check",
    "check_quotes",
    "judge",
    "with_search_result",
]

_log = logging.getLogger(__name__)

_Judged = Supported | Withheld | None  # None: a sentence that only announces others


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
    that an earlier draft has already ``shown``. A sentence that only announces others is shown with
    the first of them, or not at all.
    """
    verifier = verifier or SentenceVerifier()
    known = _Known.of(evidence)
    order = AnswerOrder(shown)
    pending: list[tuple[DraftClaim, _Judged]] = []
    async with aclosing(claims(draft)) as pieces:
        async for piece in pieces:
            if not isinstance(piece, tuple):
                if isinstance(piece, WriterSearchResult):
                    evidence = with_search_result(evidence, piece)
                    known = _Known.of(evidence)
                yield piece
                continue
            lead, text = piece
            claim = claim_of(text, lead=lead, known=known.text)
            announces = is_announcement(claim.text, known.keys)
            judged = None if announces else await judge(claim, evidence, verifier)
            if verifier.model is not None:
                pending.append((claim, judged))
                continue
            for verdict in order.add(claim, await _in_context(claim, judged, order, verifier)):
                yield verdict
    async for event in _ask_model(pending, evidence, verifier):
        if isinstance(event, Usage):
            yield event
            continue
        claim, judged = event
        for verdict in order.add(claim, await _in_context(claim, judged, order, verifier)):
            yield verdict


@dataclass(frozen=True, slots=True)
class _Known:
    """Text of the evidence, and the keys of its words."""

    text: str
    keys: frozenset[str]

    @classmethod
    def of(cls, evidence: Evidence) -> _Known:
        text = "\n".join(hit.passage.text for hit in evidence.hits)
        return cls(text, keys_of_evidence(evidence.hits))


async def _ask_model(
    pending: Sequence[tuple[DraftClaim, _Judged]],
    evidence: Evidence,
    verifier: SentenceVerifier,
) -> AsyncGenerator[tuple[DraftClaim, _Judged] | Usage, None]:
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
        if verdict is None or support is None or not _is_in_doubt(verdict, verifier):
            yield claim, verdict
        else:
            yield claim, _by_model(claim, verdict, support, evidence, verifier)


def _is_in_doubt(verdict: _Judged, verifier: SentenceVerifier) -> bool:
    """Return whether the language model's judgement can change this verdict."""
    if verdict is None:
        return False
    if isinstance(verdict, Supported):
        return not verdict.is_verbatim or (verifier.model_only and not verdict.is_own)
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
        if support.passage is not None and isinstance(verdict, Supported) and not verdict.is_own:
            return verdict  # partly supported: the book's words stay in its place
        reason = "the language model does not find it in the passages"
        finding = replace(finding, odds=support.probability, reasons=(reason,))
        return Withheld(claim.text, finding)
    if isinstance(verdict, Supported) and not verifier.model_only:
        odds = min(finding.odds, support.probability)
        return replace(verdict, finding=replace(finding, odds=odds))
    reading = parse_claim(without_line_mark(claim.text))
    missing = missing_terms(reading, keys_of_evidence(evidence.hits), (TermKind.NUMBER,))
    if missing:
        reason = f"the passages have no such number: {', '.join(missing)}"
        return Withheld(claim.text, replace(finding, odds=0.0, reasons=(reason,)))
    hit = evidence.hits[support.passage]
    best = next(iter(windows(reading, [hit])), None)
    quote = best.quote if best else hit.passage.text
    finding = replace(finding, odds=support.probability, reasons=())
    return Supported(claim.text, hit, quote, claim.lead, finding, is_verbatim=False)


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


async def _in_context(
    claim: DraftClaim, verdict: _Judged, order: AnswerOrder, verifier: SentenceVerifier
) -> _Judged:
    """Replace a sentence that leans on another one that is not shown before it."""
    if not isinstance(verdict, Supported) or stands(verdict, order.before):
        return verdict
    withheld = _leaning(verdict)
    replaced = await in_books_words(claim, withheld, [verdict.hit], verifier)
    if isinstance(replaced, Supported) and not stands(replaced, order.before):
        return withheld
    return replaced


def _leaning(verdict: Supported) -> Withheld:
    reason = "it leans on a sentence that is not shown before it"
    finding = replace(verdict.finding, reasons=(reason,))
    return Withheld(verdict.replaces or verdict.text, finding, is_claim=True)
