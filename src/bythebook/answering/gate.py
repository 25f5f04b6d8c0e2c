"""Answerability gate: select evidence, measure its confidence, refuse if it is insufficient.

The answerability of the passages found and the minimum score decide whether there is an answer at
all. They do not hide other passages from the writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING

from bythebook.answering.citations import deep_link
from bythebook.answering.routing import WorkflowMode, mode_of
from bythebook.answering.runs import is_label, leans_back
from bythebook.language.english.question_types import QuestionType, question_type
from bythebook.language.english.small_talk import is_small_talk
from bythebook.language.terms import covered, term_ids
from bythebook.refusals import Refusal, RefusalType, Related, Topic
from bythebook.retrieval.question_analysis import AnalyzedQuestion
from bythebook.retrieval.score import ANSWERABLE
from bythebook.retrieval.search import Findings
from bythebook.types import Confidence, Evidence, Hit, Level, Question, UnitKind

if TYPE_CHECKING:
    from bythebook.types import Vectors

DECISIVE = 0.85  # one passage with this score is enough for "medium"
_BESIDE = 0.3  # of the best probability of an answer, of a hit that the writer may use
_COVERED = 0.6  # share of a part's words in the passages, for it to count as answered
_RELATED_HITS = 2  # best hits that are searched for a sentence about the question's subject
_RELATED_WORDS = 0.3  # share of the question's words in a sentence about its subject
_NEARBY_TOPICS = 3
_NEARBY = 0.4  # similarity of a nearby topic
_NOT_ANSWERED = "The book does not answer this part"
_NO_ROOM = "With this top_k there is no passage left for this part"

# Bands of the chat contract: (average score, passages, level). Counts are capped by top_k.
_BANDS = ((0.85, 5, Level.HIGH), (0.75, 3, Level.MEDIUM), (0.60, 2, Level.LOW))
_ORDER = (Level.INSUFFICIENT, Level.LOW, Level.MEDIUM, Level.HIGH)


@dataclass(frozen=True, slots=True)
class QuestionPart:
    """Question, or one part of it, with the hits that the writer may use, best first."""

    question: AnalyzedQuestion
    hits: tuple[Hit, ...] = ()
    is_overview: bool = False  # the hits are an introduction, to be shown in their order
    is_side: bool = False  # one side of a comparison
    is_answered: bool = False  # the book answers it, even if ``top_k`` leaves its passages out


def gather(
    found: Sequence[Findings], *, context_tokens: int
) -> tuple[Evidence, tuple[QuestionPart, ...]]:
    """Return the evidence for the whole question, and what of it each part may use.

    The first findings are those of the whole question. A part that the book does not answer has
    no evidence. Hits with the minimum score come first; they alone count for the confidence.
    Weaker hits and neighbours in the section follow, the best ones first, within the token budget.
    All of them together are at most ``top_k`` passages.
    """
    question = found[0].question.question
    parts = [
        QuestionPart(each.question, hits, each.is_overview, each.is_side, bool(hits))
        for each, hits in zip(found, map(_usable, found), strict=True)
    ]
    counted = _best_of_all(
        [replace(part, hits=_at_least(question.min_score, part.hits)) for part in parts],
        question.top_k,
    )
    kept: dict[str, Hit] = {}
    tokens = 0
    beside = _merge([*part.hits, *each.neighbours] for part, each in zip(parts, found, strict=True))
    wanted = {name for hit in counted for name in hit.passage.neighbours}
    usable = {hit.passage.id for part in parts for hit in part.hits}
    for hit in (*counted, *beside):
        size = hit.passage.tokens
        is_wanted = hit.passage.id in usable or hit.passage.id in wanted
        if hit.passage.id in kept or not is_wanted or (kept and tokens + size > context_tokens):
            continue
        if len(kept) == question.top_k:
            break
        kept[hit.passage.id] = hit
        tokens += size
    counted = [hit for hit in counted if hit.passage.id in kept]
    evidence = Evidence(
        tuple(kept.values()),
        tokens,
        measure(counted, top_k=question.top_k),
        tuple(_best_of_all(found, question.top_k)),
        max(each.answerability for each in found),
    )
    return evidence, tuple(
        _with_neighbours(part, each, kept) for part, each in zip(parts, found, strict=True)
    )


def _usable(findings: Findings) -> tuple[Hit, ...]:
    """Return the hits for the writer: none unless they answer and one has the minimum score."""
    question = findings.question.question
    if not (findings.is_answerable and _at_least(question.min_score, findings.hits)):
        return ()
    best = max(hit.answers for hit in findings.hits)
    likely = (hit for hit in findings.hits if hit.answers >= _BESIDE * best)
    return _at_least(question.min_evidence, tuple(likely))


def _at_least(score: float, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    return tuple(hit for hit in hits if hit.score >= score)


def _best_of_all(found: Sequence[Findings] | Sequence[QuestionPart], top_k: int) -> list[Hit]:
    """Return at most ``top_k`` hits, best first, among them the best one of each part if it fits.

    The parts cover the whole question; the sides of a comparison do not.
    """
    parts = found[1:] if not any(each.is_side for each in found) else found
    firsts = _merge(_merge([part.hits])[:1] for part in parts)
    kept = {hit.passage.id: hit for hit in (*firsts, *_merge(each.hits for each in found))}
    return sorted(list(kept.values())[:top_k], key=lambda hit: -hit.answers)


def _merge(found: Iterable[Iterable[Hit]]) -> list[Hit]:
    """Return all hits, each passage once, those first that most probably hold the answer."""
    best: dict[str, Hit] = {}
    for hit in chain.from_iterable(found):
        known = best.setdefault(hit.passage.id, hit)
        if hit.answers > known.answers:
            best[hit.passage.id] = hit
    return sorted(best.values(), key=lambda hit: -hit.answers)


def _with_neighbours(part: QuestionPart, found: Findings, kept: Mapping[str, Hit]) -> QuestionPart:
    """Add the passages next to the hits, with the scores they have for this part."""
    own = {hit.passage.id for hit in part.hits}
    names = {name for hit in part.hits for name in hit.passage.neighbours} - own
    beside = _merge([found.hits, found.neighbours])
    hits = [hit for hit in part.hits if hit.passage.id in kept]
    neighbours = [hit for hit in beside if hit.passage.id in names and hit.passage.id in kept]
    return replace(part, hits=(*hits, *neighbours))


def measure(hits: Sequence[Hit], *, top_k: int) -> Confidence:
    """Compute the chat contract's ConfidenceMetrics on similarities."""
    if not hits:
        return Confidence()
    scores = [hit.score for hit in hits]
    average = min(max(sum(scores) / len(scores), min(scores)), max(scores))
    return Confidence(
        average=average,
        minimum=min(scores),
        maximum=max(scores),
        count=len(hits),
        diversity=diversity_of([hit.vector for hit in hits if hit.vector is not None]),
        level=level_of(average, max(scores), len(hits), top_k),
    )


def band(score: float) -> Level:
    """Return the level of a single passage's score.

    It replaces the exact score, which would help to optimise text for retrieval.
    """
    return next((level for least, _, level in _BANDS if score >= least), Level.LOW)


def gate(question: AnalyzedQuestion, evidence: Evidence) -> Refusal | None:
    """Return a refusal if the evidence is insufficient for an answer."""
    if mode_of(question.question) is WorkflowMode.SELECTED_TEXT_ONLY:
        is_answered = evidence.hits and not _lacks_number(question.type, evidence)
        return None if is_answered else Refusal(RefusalType.SELECTED_TEXT_MISSING)
    kind = RefusalType.LOW_RELEVANCE if evidence.considered else RefusalType.EMPTY_RETRIEVAL
    if is_small_talk(question.text):
        return Refusal(kind, is_small_talk=True)
    needed = question.question.min_confidence
    if evidence.hits and _ORDER.index(evidence.confidence.level) >= _ORDER.index(needed):
        return None
    return Refusal(kind, nearby_topics(evidence), related(question, evidence))


def related(question: AnalyzedQuestion, evidence: Evidence) -> Related | None:
    """Return the sentence of the book that is nearest to the question, if it is near enough."""
    best: tuple[float, Hit, int] | None = None
    for hit in evidence.considered[:_RELATED_HITS]:
        for index, (unit, cosine) in enumerate(
            zip(hit.passage.units, hit.unit_cosines, strict=False)
        ):
            words = set(term_ids(hit.passage.unit_text(unit)))
            is_sentence = unit.kind is UnitKind.SENTENCE and not is_label(hit.passage, index)
            shared = covered(question.terms, words)
            if is_sentence and shared >= _RELATED_WORDS and not leans_back(hit.passage, index):
                best = max(best or (0.0, hit, index), (cosine + shared, hit, index), key=_first)
    if best is None:
        return None
    _, hit, index = best
    quote = hit.passage.unit_text(hit.passage.units[index])
    return Related(quote, hit.passage.place.heading, deep_link(hit.passage, quote))


def _first(scored: tuple[float, Hit, int]) -> float:
    return scored[0]


def name_unanswered(parts: Sequence[QuestionPart]) -> str | None:
    """Return sentences that name the parts of the question that the answer leaves out.

    A part counts as answered if the passages for the whole question have its words.
    """
    whole, *others = parts
    words = {term for hit in whole.hits for term in term_ids(hit.passage.embedded_text)}
    missing: dict[str, list[str]] = {}
    for part in others:
        is_shown = part.hits or covered(part.question.terms, words) >= _COVERED
        if not is_shown and not (part.is_side and part.is_answered):
            why = _NO_ROOM if part.is_answered else _NOT_ANSWERED
            missing.setdefault(why, []).append(f"“{part.question.text.strip()}”")
    return " ".join(f"{why}: {', '.join(texts)}." for why, texts in missing.items()) or None


def reasons(question: Question, evidence: Evidence) -> Iterator[str]:
    """Explain the gate's decision, with its figures."""
    best = max((hit.score for hit in evidence.considered), default=0.0)
    least = ANSWERABLE if question.min_answerability is None else question.min_answerability
    confidence = evidence.confidence
    yield f"the passages answer with probability {evidence.answerability:.2f}; needed: {least:.2f}"
    yield (
        f"{confidence.count} of {len(evidence.considered)} passages have a similarity of at least "
        f"{question.min_score:.2f}; the best has {best:.2f}"
    )
    beside = len(evidence.hits) - confidence.count
    if beside:
        yield f"{beside} more stand beside them in their sections"
    wanted = (
        "any will do"
        if question.min_confidence is Level.INSUFFICIENT
        else f"needed: {question.min_confidence}"
    )
    yield f"confidence is {confidence.level} (average {confidence.average:.2f}; {wanted})"
    if question.selection is not None and _lacks_number(question_type(question.text), evidence):
        yield "a number was asked for, and the selected text has none"


def _lacks_number(asked: QuestionType, evidence: Evidence) -> bool:
    """Return whether the question asks "how many" and the evidence has no number."""
    return asked.count and not any(asked.is_counted_by(hit.passage.text) for hit in evidence.hits)


def ungrounded(question: Question, evidence: Evidence) -> Refusal:
    """Return the refusal for a draft of which no sentence passed verification."""
    if mode_of(question) is WorkflowMode.SELECTED_TEXT_ONLY:
        return Refusal(RefusalType.SELECTED_TEXT_MISSING)
    return Refusal(RefusalType.INSUFFICIENT_GROUNDING, nearby_topics(evidence))


def settle(evidence: Evidence, *, answered: bool) -> Evidence:
    """Align the level with the outcome: insufficient for a refusal, at least low for an answer."""
    level = evidence.confidence.level
    if not answered:
        level = Level.INSUFFICIENT
    elif level is Level.INSUFFICIENT:
        level = Level.LOW
    return replace(evidence, confidence=replace(evidence.confidence, level=level))


def nearby_topics(evidence: Evidence) -> tuple[Topic, ...]:
    topics: dict[str, Topic] = {}
    for hit in evidence.considered:
        if hit.score >= _NEARBY:
            place = hit.passage.place
            topics.setdefault(place.url, Topic(place.path, place.url))
    return tuple(topics.values())[:_NEARBY_TOPICS]


def level_of(average: float, best: float, count: int, top_k: int) -> Level:
    """Return the level of scores; a single decisive one is enough for "medium"."""
    for least, passages, level in _BANDS:
        if average >= least and count >= min(passages, top_k):
            return level
        if level is Level.MEDIUM and best >= DECISIVE:
            return level
    return Level.INSUFFICIENT


def diversity_of(vectors: Sequence[Vectors]) -> float:
    """Return 1 minus the mean cosine of the pairs of vectors; 0 without a pair."""
    pairs = list(combinations(vectors, 2))
    if not pairs:
        return 0.0
    similarity = sum(float(one @ other) for one, other in pairs) / len(pairs)
    return min(1.0, max(0.0, 1 - similarity))
