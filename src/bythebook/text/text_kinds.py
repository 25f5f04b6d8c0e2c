"""Decide the kind of each passage and unit, such as exercise, mistake or bibliography.

Headings, box titles and the structure of units decide; the words are in ``text_kinds.toml``. Text
that orders an assistant about is a kind of its own, and is also looked for when a question is
asked: other indexes and selections have no kinds.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from bythebook.language.text import word_set, words
from bythebook.types import Mark, MarkKind, Passage, Place, Question, TextKind, Unit, UnitKind

_WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
HIDDEN = frozenset(map(TextKind, _WORDS["hidden"].split()))
ASIDE = frozenset(map(TextKind, _WORDS["aside"].split()))
_CONFIRMED = frozenset(map(TextKind, _WORDS["confirmed"].split()))
_QUALIFIERS = word_set(_WORDS["qualifiers"])
_HINTS = tuple(_WORDS["instruction_hints"]["lines"].strip("\n").split("\n"))
_PHRASES = {
    phrase: TextKind(kind)
    for kind, lines in _WORDS["headings"].items()
    for phrase in lines.strip().split("\n")
}


def _any_of(phrases: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted(phrases, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b")


def _patterns(table: str, frame: str = "{}") -> dict[str, re.Pattern[str]]:
    names = _WORDS[table].get("names", "")
    texts = {name: text.replace("NAMES", names) for name, text in _WORDS[table].items()}
    return {name: re.compile(frame.format(text), re.I) for name, text in texts.items()}


_PHRASE, _ANYWHERE = _any_of(list(_PHRASES)), _any_of(_WORDS["anywhere"].strip().split("\n"))
_LABELS = _patterns("labels", r"\A(?:{})\s\d[\d.]*+\s?(?:[:.(—–-]|\Z)")
_STRUCTURES = _patterns("structures", r"\A(?:{})")
_INSIDE = _patterns("structures_inside")
_ORDERS = _patterns("instructions")
_EXTRAS = re.compile(r"\{[^{}]*\}|\A\W*\d[\d.]*+(?=\D)")  # "{#anchor}", "2.1 "
_SEPARATORS = re.compile(r"(?<!\s)\s*+:\s++|(?<!\s)\s++[-–—|]\s++|(?<!\s)\s*+[—(]\s*+|:\Z")
_CITED = re.compile(_WORDS["cited"])
# A unit has one of them if a structure is inside of it.
_INSIDE_SIGNS = (
    "..",
    ". .",
    ".\xa0.",
    "doi",
    "isbn",
    "arxiv",
    "all rights",
    "? a",
    "? (a",
    "true or",
)
_UNIT_STRUCTURES = ("title_block", "credit", "exercise", "notice")
_FILE_NAME = re.compile(r"[\w./@~-]*[\w-]\.[A-Za-z]\w{0,5}:?")
_LEAD_WORDS = 5  # at most, before a colon or as a sentence: "Check your understanding: …"
_NUMBER = re.compile(r"\d+|[ivx]+|[a-z]")
_SENTENCE = re.compile(r"[.!?。！？؟۔।][\"'”’)\]*_]*\Z")
_OPTION = re.compile(r"\(?[A-Ha-h][.)]\s|\[[ xX]\]\s|[☐☑□○◯]")
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
_SPACED = re.compile(r"(?<!\w)\w(?: \w){5,}(?!\w)")  # "i g n o r e"
_LETTERS_ALIKE = bytes(119 if re.match(r"\w", chr(code)) else code for code in range(128)) * 2


@lru_cache(maxsize=4096)
def kind_of_heading(heading: str) -> TextKind:
    """Return the kind that a heading or the title of a box names."""
    text = _EXTRAS.sub(" ", heading.casefold().replace("’", "'")).strip()
    parts = [part for part in _SEPARATORS.split(text) if words(part)] or [""]
    for found in (_PHRASE.search(parts[0]), _PHRASE.fullmatch(parts[-1].rstrip(" .0123456789"))):
        rest = words(_PHRASE.sub(" ", found.string)) if found else ()
        if found and all(word in _QUALIFIERS or _NUMBER.fullmatch(word) for word in rest):
            return _PHRASES[found[0]]
    found = _ANYWHERE.search(text)
    return _PHRASES[found[0]] if found else TextKind.TEXT


def kind_of_place(place: Place) -> tuple[TextKind, str]:
    """Return the kind of the nearest heading that names one, and that heading."""
    headings = (*reversed(place.section), place.title)
    kinds = ((kind_of_heading(heading), heading) for heading in headings)
    return next((each for each in kinds if each[0] is not TextKind.TEXT), (TextKind.TEXT, ""))


def mistakes_label(passage: Passage, units: Sequence[int]) -> str:
    """Return "Common mistakes:" for units of such a section: else they would read as advice."""
    mistakes = [n for n, unit in enumerate(passage.units) if unit.text_kind is TextKind.MISTAKE]
    if not set(mistakes).intersection(units):
        return ""
    kind, label = kind_of_place(passage.place)
    if kind is not TextKind.MISTAKE:  # the title of their box
        label = "" if mistakes[0] in units else passage.unit_text(passage.units[mistakes[0]])
    return f"{label.rstrip(':')}:" if label else ""


def asked_kinds(question: str) -> Set[TextKind]:
    return {_PHRASES[phrase] for phrase in _PHRASE.findall(question.casefold())}


def hidden_kinds(question: Question) -> Set[TextKind]:
    """Return the kinds that are not shown to whoever asks this question."""
    asked = {*asked_kinds(question.text), *question.filters.values()}
    options = {TextKind.OPTION} if TextKind.EXERCISE in asked else set()
    return HIDDEN - asked - options | {TextKind.INSTRUCTION}


def shown_part(passage: Passage, hidden: Set[TextKind]) -> Passage:
    """Return the passage with spaces in place of the units of hidden kinds."""
    ordered, text = set(instruction_units(passage)), passage.text
    for at, unit in enumerate(passage.units):
        if unit.text_kind in hidden or at in ordered:
            blank = re.sub(r"[^\n]", " ", passage.unit_text(unit))
            text = text[: unit.start] + blank + text[unit.end :]
    return passage if text == passage.text else replace(passage, text=text)


def with_text_kinds(passage: Passage, boxes: Sequence[tuple[int, int, TextKind]] = ()) -> Passage:
    """Return the passage with the kinds of it and of its units; ``boxes`` are kinds of ranges."""
    units, texts = passage.units, [passage.unit_text(unit) for unit in passage.units]
    kind = kind_of_place(passage.place)[0]
    if kind in _CONFIRMED and not _has_entries(passage.text, texts, kind):
        kind = TextKind.TEXT
    forms = [_forms(text) for text in texts]
    kind = _of_structure(forms) or kind
    links = [mark for mark in passage.marks or () if mark.kind is MarkKind.LINK]
    linked = [_is_linked(u, links) for u, text in zip(units, texts, strict=True) if text[-1] != ":"]
    if kind is TextKind.TEXT and sum(linked) > 2 * linked.count(False):
        kind = TextKind.LINKS
    kinds = [next((k for k in _UNIT_STRUCTURES if k in form), kind) for form in forms]
    for start, end, boxed in boxes:
        kinds = [boxed if start <= u.start < end else k for u, k in zip(units, kinds, strict=True)]
    label: str | None = None
    question: int | None = None
    for at, (unit, text) in enumerate(zip(units, texts, strict=True)):
        is_start = at == 0 or "\n" in passage.text[units[at - 1].end : unit.start]
        if is_start and unit.kind is UnitKind.SENTENCE:
            goes_on = label if at and texts[at - 1].endswith(":") else None
            label = _label_of(text) or goes_on
        kinds[at] = label or kinds[at]
        if _FILE_NAME.fullmatch(text) and UnitKind.CODE in (
            each.kind for each in units[at + 1 :][:1]
        ):
            kinds[at] = TextKind.FILE_NAME
        if text.rstrip(' )”"*_').endswith("?"):
            question = at
        elif question is not None and _is_option(units[at], text, units[question], kinds[question]):
            kinds[question], kinds[at] = TextKind.EXERCISE, TextKind.OPTION
        else:
            question = None
    for at in instruction_units(passage):
        kinds[at] = TextKind.INSTRUCTION
    marked = (
        unit if kind is TextKind.TEXT else replace(unit, text_kind=TextKind(kind))
        for unit, kind in zip(units, kinds, strict=True)
    )
    return replace(passage, text_kind=kind, units=tuple(marked))


def _is_linked(unit: Unit, links: Sequence[Mark]) -> bool:
    """Return whether a list item is links with few words around them."""
    sizes = (min(link.end, unit.end) - max(link.start, unit.start) for link in links)
    size = sum(size for size in sizes if size > 0)
    return unit.kind is UnitKind.ITEM and 3 * size > 2 * (unit.end - unit.start)


def _label_of(text: str) -> str | None:
    """Return the kind that the first words of a paragraph name, if they do."""
    named = next((kind for kind, words in _LABELS.items() if words.match(text)), None)
    lead = text.partition(":")[0]
    if named is None and len(lead.split()) <= _LEAD_WORDS:
        kind = kind_of_heading(lead)
        return kind if kind is TextKind.EXERCISE else None
    return named


def _forms(text: str) -> Set[str]:
    """Return the kinds whose structure a unit has."""
    found = {kind for kind, pattern in _STRUCTURES.items() if pattern.match(text)}
    if any(map(text.lower().__contains__, _INSIDE_SIGNS)):
        found |= {kind for kind, pattern in _INSIDE.items() if pattern.search(text)}
    return found


def _has_entries(passage: str, texts: Sequence[str], kind: TextKind) -> bool:
    """Return whether most units are no sentences, or most paragraphs cite something."""
    entries = [
        text for text in texts if not _SENTENCE.search(text) or "bibliography" in _forms(text)
    ]
    lines = [line for line in passage.split("\n") if line.strip()]
    cited = [line for line in lines if kind is TextKind.BIBLIOGRAPHY and _CITED.search(line)]
    return 2 * len(entries) > len(texts) or 2 * len(cited) > len(lines)


def _of_structure(forms: Sequence[Set[str]]) -> TextKind | None:
    """Return the kind of most units; of fewer than three, a similar form says nothing."""
    counts = Counter(kind for form in forms for kind in form)
    found = (k for k in _STRUCTURES if len(forms) > 2 and 2 * counts[k] > len(forms))
    return next(map(TextKind, found), None)


def _is_option(unit: Unit, text: str, question: Unit, kind: str) -> bool:
    """Return whether a unit below a question is lettered or ticked, or a list in an exercise."""
    is_listed = unit.kind is UnitKind.ITEM and question.kind is UnitKind.SENTENCE
    return bool(_OPTION.match(text)) or (is_listed and kind == TextKind.EXERCISE)


def instruction_units(passage: Passage) -> Iterator[int]:
    """Yield the units that order an assistant about, with what follows in their paragraph."""
    units, ordered = passage.units, False
    for at, unit in enumerate(units) if _has_hint(_plain(passage.text)) else ():
        between = passage.text[units[at - 1].end : unit.start] if at else ""
        follows = "\n\n" not in between and unit.kind is UnitKind.SENTENCE
        own = passage.unit_text(unit)
        goes_on = at + 1 < len(units) and units[at + 1].kind is not UnitKind.CODE
        is_cut = goes_on and not _SENTENCE.search(own)
        texts = (own, f"{own} {passage.unit_text(units[at + 1])}") if is_cut else (own,)
        ordered = bool(ordered and follows) or any(map(addresses_assistant, texts))
        if ordered and unit.kind is not UnitKind.CODE:
            yield at


def addresses_assistant(text: str) -> bool:
    """Return whether a text orders a language model about, outside quotation marks."""
    plain = _plain(text)
    if not _has_hint(plain):
        return False
    if _ORDERS["tags"].search(plain):
        return True
    plain = _ORDERS["quoted"].sub(" … ", plain)
    override = _ORDERS["override"].search(plain)
    rest = f"{plain[: override.start()]} … {plain[override.end() :]}" if override else plain

    def has(name: str) -> bool:
        return _ORDERS[name].search(rest) is not None

    if (override and (not override.lastgroup or has("order"))) or has("others"):
        return not has("condition")
    return has("secret") or has("salutation") or (has("address") and (has("duty") or has("order")))


def _has_hint(text: str) -> bool:
    lowered = f" {text.lower()}"
    return any(map(lowered.__contains__, _HINTS))


def _plain(text: str) -> str:
    """Return the text without invisible characters, special letters and spaced-out words."""
    is_ascii = text.isascii()
    text = text if is_ascii else _UNSEEN.sub("", unicodedata.normalize("NFKC", text))
    if not is_ascii or b"w w w w w" in text.encode().translate(_LETTERS_ALIKE):
        text = _SPACED.sub(lambda run: run[0].replace(" ", ""), text)
    return " ".join(text.split())
