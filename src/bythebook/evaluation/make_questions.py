"""Generate a question set by rules from the sentences, headings, lists and tables of a book.

Each question is answered by one known section. Some are asked twice: as they are, and with that
section held out, when the right reply is a refusal. docs/authors/evaluation.md describes the
value and the limits of such questions.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, takewhile, zip_longest
from operator import itemgetter
from typing import Any

from bythebook.evaluation.questions import plain_text
from bythebook.language.english.lexicon import LEANS_BACK
from bythebook.language.terms import terms_of
from bythebook.language.text import word_set
from bythebook.text.text_kinds import ASIDE, HIDDEN
from bythebook.types import Passage, UnitKind

_HELD_OUT_SHARE = 3  # one row in three asks without the section of the answer
_FEWEST_WORDS, _MOST_WORDS = 6, 30  # of a sentence used for a question
_LONGEST_SUBJECT = 4  # words
_SAID_ELSEWHERE = 0.6  # share of a question's terms in one other sentence: may be a second answer
_LEANS = word_set(
    "we you i one another other but and so then thus therefore however also instead otherwise"
)
_VAGUE = word_set(
    "similar same main primary first second third next last other difference result reason example "
    "goal aim purpose idea problem method way answer question point key following only"
)
_DEFINITION = re.compile(
    r"(?=[^.]*+\.\Z)"  # avoids scanning to the end from each "is"
    r"(?P<subject>[^\W\d_][\w /-]*?) (?P<verb>is|are) (?P<predicate>(?:an?|the) [^.]+)\."
)
_PREDICATE_END = re.compile(r"[,;:(]| (?:that|which|who|where|when|whose) ")
_NUMBER = re.compile(
    r"(?<=[a-z] )(?P<number>\d+(?:[.,]\d+)*) (?P<noun>[a-z]+s|[a-z]{2,3}|percent)\b"
)
_YEAR = re.compile(r"\b(?:in|since|until|by) (?P<year>1\d{3}|20\d{2})(?=[,.;]| [a-z])")
_NAME = re.compile(
    r"(?<![\w-])(?:in|with|by|to|of|from|on|at|for|as|than|into|over|under|called|named) "
    r"(?P<name>[A-Z][\w-]+(?: (?:[A-Z]|\d)[\w-]*)*)"
    r"(?=[.,;]| (?:and|or|with|which|that|who|in|by|for|to|from|on|at|as|is|are|was|were|has)\b)"
)
_ABOUT = "What does the book say about "
_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_LONGEST_NAME = 3  # words of a thing that is listed or compared
_VERSUS, _TOGETHER = (" vs ", " vs. ", " versus "), (" & ", " and ")
_CONTRAST = word_set(
    "while whereas unlike contrast differ differs different difference differences versus instead"
)
_NUGGET_WORDS, _NUGGET_CHARACTERS = 4, 100  # of a list item, enough to recognise it
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class MadeQuestion:
    """Question that one section answers."""

    rule: str
    question: str
    answers: tuple[str, ...]
    sentence: str | None
    passage: Passage
    nuggets: tuple[str, ...] = ()  # patterns, each of one item of a list

    @property
    def section(self) -> tuple[str, tuple[str, ...]]:
        return self.passage.place.file, self.passage.place.section


def make_questions(
    passages: Iterable[Passage], count: int, *, seed: int = 0
) -> list[dict[str, Any]]:
    """Return up to ``count`` rows, spread over rules and sections; deterministic by ``seed``."""
    book = list(passages)
    candidates = _spread(_candidates(book), seed)
    elsewhere = _Elsewhere(book)
    only_there = (each for each in candidates if not elsewhere.says(each))
    held_out = list(islice(only_there, count // _HELD_OUT_SHARE))
    twins = {each.question for each in held_out}
    others = [each for each in candidates if each.question not in twins]
    answerable = [*held_out, *others][: count - len(held_out)]
    return [*map(_answerable_row, answerable), *map(_held_out_row, held_out)]


# --- the rules -----------------------------------------------------------------------------------


def _candidates(book: Sequence[Passage]) -> Iterator[MadeQuestion]:
    # "Part 1" and "Part 2" count as one heading without information.
    places = {(passage.place.url, passage.place.heading) for passage in book}
    headings = Counter(_DIGITS.sub("", heading) for _, heading in places)
    for passage in book:
        if passage.text_kind in HIDDEN | ASIDE:
            continue
        if headings[_DIGITS.sub("", passage.place.heading)] == 1:
            yield from _from_heading(passage)
            if passage.metadata.language == "en":
                yield from _from_list(passage)
                yield from _from_table(passage)
        for unit in passage.units:
            sentence = passage.unit_text(unit)
            is_lesson = unit.kind is UnitKind.SENTENCE and unit.text_kind not in HIDDEN | ASIDE
            if is_lesson and stands_alone(sentence):
                yield from _from_definition(sentence, passage)
                yield from _from_gap(sentence, passage)


def stands_alone(sentence: str) -> bool:
    words = sentence.split()
    return (
        _FEWEST_WORDS <= len(words) <= _MOST_WORDS
        and words[0][0].isalpha()
        and sentence.endswith(".")
        and ". " not in sentence
        and words[0].lower().strip(",") not in _LEANS
        and not LEANS_BACK.fullmatch(words[0].strip(","))
        and not any(mark in sentence for mark in '$"“”|:[]\n')
    )


def _from_heading(passage: Passage) -> Iterator[MadeQuestion]:
    """Ask for a heading; any sentence of the section is an answer.

    Other headings than "How …", "Why …" and "… and …" are used if their words recur in the text.
    """
    heading = passage.place.heading
    terms, said = set(terms_of(heading)), set(terms_of(passage.text))
    answers = _answers(passage)
    if not answers or not terms:
        return
    english = passage.metadata.language == "en"
    asked = (_how_or_why(heading) or _comparison(heading, passage)) if english else None
    if asked:
        yield MadeQuestion(*asked, answers, None, passage)
        return
    if len(terms & said) * 2 <= len(terms):
        return
    if heading.endswith(("?", "؟", "？")) or not english:
        question = heading
    else:
        question = f"{_ABOUT}{as_object(heading)}?"
    yield MadeQuestion("heading", question, answers, None, passage)


def _answers(passage: Passage) -> tuple[str, ...]:
    return tuple(
        passage.unit_text(unit)
        for unit in passage.units
        if unit.kind in (UnitKind.SENTENCE, UnitKind.ITEM)
        and len(passage.unit_text(unit).split()) > 3
    )


def _how_or_why(heading: str) -> tuple[str, str] | None:
    """Return rule and question of "How to fly", "Why kites fly" and "Kites: why do they fly?"."""
    part = heading.rpartition(": ")[2]
    first, *rest = part.rstrip("?").split() or [""]
    if first.lower() not in ("how", "why") or len(rest) < 2:
        return None
    if rest[0].lower() == "to":
        return "how", f"How do I {' '.join(rest[1:])}?"
    explained = f"Can you explain {first.lower()} {' '.join(rest)}?"
    return first.lower(), heading if heading.endswith("?") else explained


def _comparison(heading: str, passage: Passage) -> tuple[str, str] | None:
    """Return rule and question of "X vs Y", or of "X and Y" if the section contrasts the two."""
    for between in (*_VERSUS, *_TOGETHER):
        one, found, other = heading.partition(between)
        if not found or not (_is_name(one) and _is_name(other)):
            continue
        words = {word.strip(".,;:()").lower() for word in passage.text.split()}
        said = set(terms_of(passage.text)).issuperset(terms_of(f"{one} {other}"))
        if between in _VERSUS or (said and not _CONTRAST.isdisjoint(words)):
            return "compare", _difference(one, other)
    return None


def _from_table(passage: Passage) -> Iterator[MadeQuestion]:
    """Ask for the difference of two columns that the sentences of the section name too."""
    units = passage.units
    head = next((passage.unit_text(unit) for unit in units if unit.kind is UnitKind.ROW), "")
    names = [cell.strip() for cell in head.split("|")][1:]
    texts = [passage.unit_text(unit) for unit in units if unit.kind is not UnitKind.ROW]
    said = set(terms_of(" ".join(texts)))
    if len(names) != 2 or not all(_is_name(name) for name in names):
        return
    if said.issuperset(terms_of(" ".join(names))):
        yield MadeQuestion("compare", _difference(*names), _answers(passage), None, passage)


def _difference(one: str, other: str) -> str:
    return f"What is the difference between {as_object(one)} and {as_object(other)}?"


def _is_name(text: str) -> bool:
    plain = not any(mark in text for mark in ",:;?|")
    return plain and len(text.split()) <= _LONGEST_NAME and bool(terms_of(text))


def _from_list(passage: Passage) -> Iterator[MadeQuestion]:
    """Ask for the items of a list whose lead-in sentence counts them: "Three frames exist …"."""
    texts = [(unit.kind, passage.unit_text(unit)) for unit in passage.units]
    for at, (kind, lead) in enumerate(texts):
        items = list(takewhile(lambda each: each[0] is UnitKind.ITEM, texts[at + 1 :]))
        counted = _counted(lead, len(items)) if kind is UnitKind.SENTENCE and items else None
        nuggets = tuple(filter(None, (_nugget(text) for _, text in items)))
        if not counted or len(nuggets) < len(items):
            continue
        question = _asking_for(counted, passage.place.heading)
        answers = tuple(text for _, text in items)
        yield MadeQuestion("list", question, answers, lead, passage, nuggets)


def _asking_for(counted: str, heading: str) -> str:
    if heading.lower().startswith((counted, f"the {counted}")):
        return f"What are the {heading[heading.lower().index(counted) :]}?"
    if heading.endswith("?"):
        return f"{heading} What are the {counted}?"
    return f"What are the {counted} in {as_object(heading)}?"


def _counted(lead: str, count: int) -> str | None:
    """Return "three frames" of "Three frames exist on almost every robot", if there are three."""
    words = [word.strip(".,:;()") for word in lead.split()]
    number = _NUMBERS[count - 2] if 2 <= count < len(_NUMBERS) + 2 else None
    for at, word in enumerate(words):
        if word.lower() == number:
            name = words[at + 1 : at + 1 + _LONGEST_NAME]
            ends = [end for end, each in enumerate(name, 1) if each.endswith("s")]
            return f"{number} {' '.join(name[: ends[0]])}" if ends else None
    return None


def _nugget(item: str) -> str:
    """Return a pattern of the first words of an item, or of the label that it begins with."""
    words = plain_text(item).split()[:_NUGGET_WORDS]
    ends = [at for at, word in enumerate(words, 1) if word[-1] in ".:"]
    start = " ".join(words[: ends[0]] if ends else words).rstrip(".:")
    return re.escape(start[:_NUGGET_CHARACTERS].strip())


def _from_definition(sentence: str, passage: Passage) -> Iterator[MadeQuestion]:
    found = _DEFINITION.fullmatch(sentence)
    if found is None or passage.metadata.language != "en":
        return
    subject = found["subject"]
    words = [word.lower() for word in subject.split()]
    predicate = _predicate(found["predicate"])
    if len(words) > _LONGEST_SUBJECT or not terms_of(subject) or not _VAGUE.isdisjoint(words):
        return
    if len(predicate.split()) < 3:
        return
    question = f"What {found['verb']} {as_object(subject)}?"
    yield MadeQuestion("definition", question, (predicate,), sentence, passage)


def _from_gap(sentence: str, passage: Passage) -> Iterator[MadeQuestion]:
    """Replace a number, year or name in the sentence by question words."""
    for start, end, asking, answer in find_gaps(sentence):
        english = passage.metadata.language == "en"
        gap = asking if english else "…"
        question = f"{sentence[:start]}{gap}{sentence[end:]}".rstrip(".") + "?"
        yield MadeQuestion("gap", question, (answer,), sentence, passage)
        return


def find_gaps(sentence: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield (start, end, question words, answer), the most reliable first."""
    for found in _NUMBER.finditer(sentence):
        if terms_of(found["noun"]):
            yield found.start("number"), found.end("number"), "how many", found[0]
    for found in _YEAR.finditer(sentence):
        yield found.start("year"), found.end("year"), "what year", found["year"]
    for found in reversed(list(_NAME.finditer(sentence))):
        if sentence.count(found["name"]) == 1:
            yield found.start("name"), found.end("name"), "what", found["name"]


def _predicate(text: str) -> str:
    """Return the text up to the first comma or subordinate clause, without trailing stop words."""
    words = _PREDICATE_END.split(text, maxsplit=1)[0].split()
    while words and not terms_of(words[-1]):
        words.pop()
    return " ".join(words)


def as_object(text: str) -> str:
    """Adapt the case for use inside a sentence: "The" and "How" become lower case, not "ROS"."""
    first, _, rest = text.partition(" ")
    return text if terms_of(first) else f"{first.lower()} {rest}"


# --- choosing ------------------------------------------------------------------------------------


def _spread(candidates: Iterable[MadeQuestion], seed: int) -> list[MadeQuestion]:
    """Order candidates round-robin over the rules, and over the sections within each rule."""
    of_section: defaultdict[tuple[object, ...], list[tuple[str, MadeQuestion]]] = defaultdict(list)
    for each in _unambiguous(candidates):
        of_section[each.rule, each.section].append((_draw(each, seed), each))
    turns: defaultdict[str, list[tuple[int, str, MadeQuestion]]] = defaultdict(list)
    for drawn in of_section.values():
        for turn, (digest, each) in enumerate(sorted(drawn, key=itemgetter(0))):
            turns[each.rule].append((turn, digest, each))
    ordered = [sorted(turns[rule], key=itemgetter(0, 1)) for rule in sorted(turns)]
    mixed = chain.from_iterable(zip_longest(*ordered))
    return [entry[2] for entry in mixed if entry is not None]


def _unambiguous(candidates: Iterable[MadeQuestion]) -> Iterator[MadeQuestion]:
    """Drop questions that several sections yield; of duplicates in one section, keep the first."""
    same: defaultdict[str, list[MadeQuestion]] = defaultdict(list)
    for each in candidates:
        same[each.question].append(each)
    for group in same.values():
        if len({each.section for each in group}) == 1:
            yield min(group, key=lambda each: each.passage.position)


def _draw(candidate: MadeQuestion, seed: int) -> str:
    identity = (str(seed), *map(str, candidate.section), candidate.question)
    return hashlib.sha256("\n".join(identity).encode()).hexdigest()


class _Elsewhere:
    """Index of all units, to find questions that another section may answer too.

    For such a question, holding out one section proves nothing.
    """

    def __init__(self, book: Sequence[Passage]) -> None:
        self._sections: list[tuple[str, tuple[str, ...]]] = []  # of each unit
        self._units: defaultdict[str, list[int]] = defaultdict(list)  # by term
        for passage in book:
            heading = set(terms_of(passage.place.heading))
            for unit in passage.units:
                for term in heading.union(terms_of(passage.unit_text(unit))):
                    self._units[term].append(len(self._sections))
                self._sections.append((passage.place.file, passage.place.section))

    def says(self, candidate: MadeQuestion) -> bool:
        asked = set(terms_of(candidate.question.removeprefix(_ABOUT)))
        shared = Counter(unit for term in asked for unit in self._units[term])
        return any(
            count >= _SAID_ELSEWHERE * len(asked)
            for unit, count in shared.items()
            if not _is_within(self._sections[unit], candidate.section)
        )


def _is_within(place: tuple[str, tuple[str, ...]], section: tuple[str, tuple[str, ...]]) -> bool:
    return place[0] == section[0] and place[1][: len(section[1])] == section[1]


# --- rows ----------------------------------------------------------------------------------------


def _answerable_row(candidate: MadeQuestion) -> dict[str, Any]:
    nuggets = [{"any": [pattern], "vital": True} for pattern in candidate.nuggets]
    return {
        "id": f"made-{_draw(candidate, 0)[:12]}",
        "kind": candidate.rule,
        "question": candidate.question,
        "is_impossible": False,
        "answers": list(candidate.answers),
        "file": candidate.passage.place.file,
        "section": candidate.passage.place.heading,
        "sentence": candidate.sentence,
        **({"nuggets": nuggets} if nuggets else {}),
    }


def _held_out_row(candidate: MadeQuestion) -> dict[str, Any]:
    file, path = candidate.section
    return {
        **_answerable_row(candidate),
        "id": f"made-{_draw(candidate, 0)[:12]}-held-out",
        "kind": "held_out",
        "is_impossible": True,
        "answers": [],
        "nuggets": [],
        "held_out": {"file": file, "section": list(path)},
    }
