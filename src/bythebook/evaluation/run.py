"""Ask the questions of an evaluation and grade the replies, and let the verifier judge claims.

No other module asks questions.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from bythebook.answering.generation import AnswerContext
from bythebook.answering.pipeline import respond
from bythebook.evaluation.grade import DEEPEST_RANK, Case, Places, claims_of, grade
from bythebook.evaluation.make_questions import as_object, find_gaps, stands_alone
from bythebook.evaluation.questions import Row
from bythebook.grounding.stream_splitter import claim_of
from bythebook.grounding.verifier import SentenceVerifier, Supported, check, judge
from bythebook.interfaces.store import Candidate, Filters, IndexedPassage, PassageStore
from bythebook.retrieval.search import search
from bythebook.types import Answer, Evidence, Hit, Level, Passage, Question, Reply, UnitKind

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
    pressed = None
    if not isinstance(reply.outcome, Answer):
        unbound = replace(
            question, min_score=0.0, min_answerability=0.0, min_confidence=Level.INSUFFICIENT
        )
        pressed = await _reply(unbound, context)
    found: tuple[Hit, ...] = ()
    if book.whereabouts(row) is not None:
        found = (await search(replace(question, top_k=DEEPEST_RANK), context.index)).hits
    supported: tuple[bool, ...] = ()
    if isinstance(reply.outcome, Answer):
        supported = await recheck(claims_of(reply.outcome), row, book, context.verifier)
    return grade(row, reply, book, pressed=pressed, found=found, supported=supported)


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

    judged = []
    for claim in make_claims(passages):
        text = claim_of(claim.text, known=claim.evidence.hits[0].passage.text)
        found = (await judge(text, claim.evidence, verifier)).finding
        judged.append((found.odds, claim.is_supported))
    return judged


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


# --- claims made from the book -------------------------------------------------------------------
#
# A question set has no labels for sentences. So rules reword a sentence of the book, which is a
# supported claim, and change a number, a name or the negation of the reworded sentence, which is
# an unsupported one. The two differ only in that change. The rules are for English.


MOST_CLAIMS = 60
_COMPANY = 2  # passages beside the one that a claim was made from, as in real evidence
_NAMES_FROM = 500  # sentences that other names are taken from


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    text: str
    is_supported: bool
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class _Source:
    sentence: str
    passage: Passage
    reworded: str | None

    @property
    def claim(self) -> str:
        return self.reworded or f"According to the book, {as_object(self.sentence)}"

    @property
    def order(self) -> tuple[bool, str]:
        """Return a sort key: sentences that a rule rewords first, otherwise at random."""
        identity = f"{self.sentence}\0{self.passage.id}"
        return self.reworded is None, hashlib.sha256(identity.encode()).hexdigest()


def make_claims(passages: Iterable[Passage], most: int = MOST_CLAIMS) -> list[LabelledClaim]:
    """Return pairs of a supported and an unsupported claim; deterministic, ``most`` at most."""
    sources = sorted(_sources(passages), key=lambda source: source.order)
    names = _names(sources[:_NAMES_FROM])
    used: Counter[str] = Counter()
    pairs = islice(_pairs(sources, names, used), most // 2)
    return [claim for pair in pairs for claim in pair]


def _sources(passages: Iterable[Passage]) -> Iterator[_Source]:
    for passage in passages:
        for unit in passage.units if passage.metadata.language == "en" else ():
            sentence = passage.unit_text(unit)
            if unit.kind is UnitKind.SENTENCE and stands_alone(sentence):
                yield _Source(sentence, passage, _reword(sentence))


def _pairs(
    sources: Sequence[_Source], names: Sequence[str], used: Counter[str]
) -> Iterator[tuple[LabelledClaim, LabelledClaim]]:
    """Yield pairs; of the possible changes of a sentence, the one that was ``used`` least."""
    for index, source in enumerate(sources):
        changes = dict(_changes(source.claim, source.passage, names))
        if not changes:
            continue
        kind = min(changes, key=lambda kind: used[kind])
        used[kind] += 1
        others = (other.passage for other in sources[index + 1 :])
        company = islice((one for one in others if one.id != source.passage.id), _COMPANY)
        hits = [Hit(one, rank, 0.0, 0.0) for rank, one in enumerate((source.passage, *company), 1)]
        evidence = Evidence(hits=tuple(hits))
        yield (
            LabelledClaim(source.claim, True, evidence),
            LabelledClaim(changes[kind], False, evidence),
        )


# --- rewording -----------------------------------------------------------------------------------

_SYNONYMS: dict[str, str] = dict(
    pair.split("=")
    for pair in [
        "contains=includes",
        "provides=offers",
        "requires=needs",
        "begins=starts",
        "creates=produces",
        "occurs=happens",
        "checks=verifies",
        "called=named",
        "often=frequently",
        "usually=normally",
        "approximately=about",
        "mainly=primarily",
        "quickly=rapidly",
        "large=big",
        "entire=whole",
        "additional=extra",
        "separate=distinct",
        "necessary=needed",
        "method=technique",
        "result=outcome",
        "object=item",
        "objects=items",
        "device=instrument",
        "location=place",
        "answer=reply",
        "image=picture",
        "images=pictures",
        "task=job",
        "goal=target",
    ]
)
_SYNONYM = re.compile(rf"\b({'|'.join(_SYNONYMS)})\b")
_ASIDE = re.compile(r" \([^()]*\)")
_CLAUSE_FIRST = re.compile(
    r"(?P<clause>(?:When|If|Because|After|Before|While|During) [^,;]+), "
    r"(?!it |they |this |then )(?P<main>[^,;]+)\."
)


def _reword(sentence: str) -> str | None:
    """Return the sentence in other words or another order; None if no rule applies."""
    found = _CLAUSE_FIRST.fullmatch(sentence)
    if found is not None:
        main, clause = found["main"], found["clause"]
        return f"{main[:1].upper()}{main[1:]} {clause[:1].lower()}{clause[1:]}."
    shorter = _ASIDE.sub("", sentence)
    reworded = _SYNONYM.sub(lambda word: _SYNONYMS[word[0]], shorter)
    return reworded if reworded != sentence else None


# --- changing ------------------------------------------------------------------------------------

_AUXILIARY = re.compile(r"\b(?:is|are|was|were|can|could|should|must|will|would)\b")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nothing|without|only|cannot)\b|n't\b", re.IGNORECASE
)


def _changes(claim: str, passage: Passage, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (kind, changed claim)."""
    for start, end, _, _ in find_gaps(claim):
        old = claim[start:end]
        if old[0].isdigit():
            kind, new = "number", _other_number(old)
        else:
            kind = "name"
            new = next((name for name in names if name not in passage.text), "")
        if new:
            yield kind, claim[:start] + new + claim[end:]
    found = _AUXILIARY.search(claim)
    if found is not None and not _NEGATION.search(claim):
        yield "negation", f"{claim[: found.end()]} not{claim[found.end() :]}"


def _other_number(number: str) -> str:
    """Change the first digit; of a year, the third: 30 becomes 40, 1989 becomes 1999."""
    place = 2 if len(number) == 4 and number.isdigit() else 0
    return f"{number[:place]}{int(number[place]) % 9 + 1}{number[place + 1 :]}"


def _names(sources: Iterable[_Source]) -> list[str]:
    gaps = (gap for source in sources for gap in find_gaps(source.sentence))
    return list(dict.fromkeys(answer for _, _, _, answer in gaps if not answer[0].isdigit()))
