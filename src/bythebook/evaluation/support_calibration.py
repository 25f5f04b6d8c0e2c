"""Measure whether the verifier's probabilities are right, on labelled claims made from the book.

A question set has no labels for sentences. So rules reword a sentence of the book, which is a
supported claim, and change a number, a name or the negation of the reworded sentence, which is an
unsupported one. The two differ only in that change. The rules are for English.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from bythebook.evaluation.make_questions import as_object, find_gaps, stands_alone
from bythebook.types import Evidence, Hit, Passage, UnitKind

MOST_CLAIMS = 60
_COMPANY = 2  # passages beside the one that a claim was made from, as in real evidence
_NAMES_FROM = 500  # sentences that other names are taken from

JudgeClaim = Callable[[str, Evidence], Awaitable[float]]


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


async def measure_support(
    claims: Iterable[LabelledClaim], judge_claim: JudgeClaim
) -> list[tuple[float, bool]]:
    """Return the probability that ``judge_claim`` gives to each claim, with the claim's label."""
    return [(await judge_claim(claim.text, claim.evidence), claim.is_supported) for claim in claims]


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
