"""Cut a passage into blocks, and quote a run of its units.

A block is what a reader sees as one thing: a paragraph, a list with its lead-in, a table with the
sentence before it, code with its introduction. A run is a sequence of units of one passage. Its
neighbouring units share a quotation as long as that is short; so each quotation contains what it
is cited for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from bythebook.grounding.stream_splitter import has_words, split_line
from bythebook.grounding.verifier import Supported
from bythebook.language.english.lexicon import LEANS_BACK
from bythebook.language.terms import language_of_passage, term_ids
from bythebook.text.text_kinds import mistakes_label
from bythebook.types import Hit, Passage, UnitKind

LONGEST_QUOTE = 500  # characters; envelope: Citation.referenced_text
_LONGEST_LABEL = 4  # words: the title of a tab, a listing or a note
_LONGEST_LEAD_IN = 60  # words of a paragraph that a list or table below it belongs to
_SENTENCE_END = re.compile(r"[.!?…:。！？؟۔।][\"'”’)\]*_`]*\Z")
# In "It is important to …" the word "it" does not refer to an earlier sentence.
_EXPLETIVE = re.compile(
    r"it(?:['’]s|\s+is|\s+was)\s+(?:(?:also|often|usually)\s+)?\w+\s+(?:to|that)\b", re.IGNORECASE
)

# Costs of a marker at the end of a paragraph, within one, and between a lead-in and what it
# announces. With them, 142 answers of the sample book have 331 markers, 4 within paragraphs.
_AT_END, _WITHIN, _APART = 1, 2, 9

Block = range  # indices into ``passage.units``


def count_words(passage: Passage, units: Sequence[int]) -> int:
    return sum(len(passage.unit_text(passage.units[unit]).split()) for unit in units)


def blocks_of(passage: Passage) -> list[Block]:
    """Return the blocks of the passage in order; together they have all its units."""
    blocks: list[Block] = []
    for part in _parts(passage):
        if blocks and _belongs_to(part, blocks[-1], passage):
            blocks[-1] = range(blocks[-1].start, part.stop)
        else:
            blocks.append(part)
    return blocks


def _parts(passage: Passage) -> Iterator[Block]:
    """Yield paragraphs, lists, tables and listings, without what introduces them."""
    units, start = passage.units, 0
    for index in range(1, len(units) + 1):
        if index < len(units) and _continues(passage, index):
            continue
        if start < index:
            yield range(start, index)
        start = index


def _continues(passage: Passage, index: int) -> bool:
    before, unit = passage.units[index - 1 : index + 1]
    if before.kind is not unit.kind:
        return False
    if unit.kind in (UnitKind.ITEM, UnitKind.ROW):
        return not (unit.kind is UnitKind.ROW and is_header(passage, index))
    is_prose = unit.kind is UnitKind.SENTENCE
    return is_prose and "\n\n" not in passage.text[before.end : unit.start]


def _belongs_to(part: Block, block: Block, passage: Passage) -> bool:
    """Return whether the block introduces this part, or whether both are one list of steps."""
    last, first = passage.units[block[-1]], passage.units[part[0]]
    text = passage.unit_text(last).rstrip()
    if text.endswith(":") or is_label(passage, block[-1]):
        return True
    if first.kind is UnitKind.MATHS:
        return last.kind is not UnitKind.MATHS
    if first.kind is UnitKind.CODE:
        return last.kind is not UnitKind.CODE and _share_terms(passage, part, block)
    if first.kind is UnitKind.ITEM and last.kind is UnitKind.CODE:
        return any(passage.units[unit].kind is UnitKind.ITEM for unit in block)
    is_prose = last.kind is UnitKind.SENTENCE
    is_listed = first.kind in (UnitKind.ITEM, UnitKind.ROW)
    return is_prose and is_listed and count_words(passage, block) <= _LONGEST_LEAD_IN


def _share_terms(passage: Passage, part: Block, block: Block) -> bool:
    """Return whether two blocks have a word in common: code is about what introduces it."""
    language = language_of_passage(passage)
    here, there = (
        {term for unit in units for term in term_ids(_text(passage, unit), language)}
        for units in (part, block)
    )
    return not here.isdisjoint(there)


def _text(passage: Passage, unit: int) -> str:
    return passage.unit_text(passage.units[unit])


def is_label(passage: Passage, unit: int) -> bool:
    """Return whether the unit is the title of what follows: a tab, a listing, a note."""
    if passage.units[unit].kind is not UnitKind.SENTENCE:
        return False
    text = passage.unit_text(passage.units[unit]).rstrip()
    return len(text.split()) <= _LONGEST_LABEL and not _SENTENCE_END.search(text)


def is_header(passage: Passage, unit: int) -> bool:
    """Return whether the unit is the header row of a table."""
    if passage.units[unit].kind is not UnitKind.ROW:
        return False
    following = passage.text[passage.units[unit].end :].split("\n", 2)
    return len(following) > 1 and following[1].lstrip().startswith(("|-", "| -", "|:", "| :"))


def leans_back(passage: Passage, unit: int) -> bool:
    """Return whether the unit starts with a word such as "it" that needs the unit before it."""
    text = passage.unit_text(passage.units[unit])
    is_prose = passage.units[unit].kind is UnitKind.SENTENCE
    return bool(unit > 0 and is_prose and LEANS_BACK.match(text) and not _EXPLETIVE.match(text))


def announces(passage: Passage, unit: int) -> bool:
    """Return whether the unit is a lead-in, the title of what follows, or a table's header."""
    is_lead_in = passage.unit_text(passage.units[unit]).rstrip().endswith(":")
    return is_lead_in or is_label(passage, unit) or is_header(passage, unit)


def quote_run(hit: Hit, units: Sequence[int], *, lead: str = "") -> Iterator[Supported]:
    """Yield the sentences of a run; those that share a quote end with one that closes it."""
    passage, before, first = hit.passage, None, True
    items = [unit for unit in units if _list_mark(passage, unit)]
    has_list = len(items) > 1 or items[:1] != list(units[:1])  # an item alone needs no mark
    header: Sequence[int] = ()
    for group in quotations(passage, units):
        shown = [*header, *group]
        header = [unit for unit in group[-1:] if _is_apart_from_rows(passage, unit, units)]
        own = group[: len(group) - len(header)]
        if not own:
            continue
        quote = passage.text[passage.units[own[0]].start : passage.units[own[-1]].end]
        shown = shown[: len(shown) - len(header)]
        pieces = [
            piece
            for piece in _sentences(passage, shown, before, has_list=has_list)
            if has_words(piece[0])
        ]
        if first and (label := mistakes_label(passage, units)):
            yield Supported(label, hit, quote, lead, closes=False)
            lead = "\n\n"
        for number, (text, gap) in enumerate(pieces, 1):
            yield Supported(text, hit, quote, lead if first else gap, closes=number == len(pieces))
            first = False
        before = group[-1]


def _is_apart_from_rows(passage: Passage, unit: int, units: Sequence[int]) -> bool:
    """Return whether the unit is a header that is shown above rows further below in its table."""
    after = next((other for other in units if other > unit), unit)
    is_row = passage.units[after].kind is UnitKind.ROW and not is_header(passage, after)
    return is_row and is_header(passage, unit)


def quotations(passage: Passage, units: Sequence[int]) -> Iterator[Sequence[int]]:
    """Cut a run into groups of neighbouring units, each short enough for one quotation.

    The groups are few, and end between paragraphs rather than within one or after a lead-in. A
    unit that is too long by itself is a group with what announces it.
    """
    for _, members in groupby(enumerate(units), lambda each: each[1] - each[0]):
        stretch = [unit for _, unit in members]
        best: list[tuple[int, tuple[int, ...]]] = [(0, (0,))]  # of the leading units: cost, borders
        for end in range(1, len(stretch) + 1):
            best.append(
                min(
                    (cost + _cut_cost(passage, stretch[start]), (*borders, end))
                    for start, (cost, borders) in enumerate(best)
                    if _is_quotable(passage, stretch[start:end])
                )
            )
        yield from (stretch[start:end] for start, end in pairwise(best[-1][1]))


def _is_quotable(passage: Passage, units: Sequence[int]) -> bool:
    first, last = passage.units[units[0]], passage.units[units[-1]]
    if last.end - first.start <= LONGEST_QUOTE:
        return True
    is_long = last.end - last.start > LONGEST_QUOTE
    return len(units) == 1 or (is_long and all(announces(passage, unit) for unit in units[:-1]))


def _cut_cost(passage: Passage, unit: int) -> int:
    """Return the cost of a quotation that begins with the unit: least after a paragraph."""
    before, own = passage.units[max(0, unit - 1)], passage.units[unit]
    if unit and (own.kind is UnitKind.MATHS or announces(passage, unit - 1)):
        return _APART
    return _AT_END if "\n\n" in passage.text[before.end : own.start] else _WITHIN


def _sentences(
    passage: Passage, units: Sequence[int], before: int | None, *, has_list: bool
) -> Iterator[tuple[str, str]]:
    """Yield text and separator: a table and code are one piece each, list items keep their mark."""
    for is_table, group in groupby(units, lambda unit: passage.units[unit].kind is UnitKind.ROW):
        members = list(group)
        if is_table:
            goes_on = before is not None and passage.units[before].kind is UnitKind.ROW
            starts = is_header(passage, members[0])
            yield _table(passage, members), "\n" if goes_on and not starts else "\n\n"
            before = members[-1]
            continue
        for unit in members:
            lead = _lead(passage, before, unit)
            before = unit
            if passage.units[unit].kind in (UnitKind.CODE, UnitKind.MATHS):
                yield passage.unit_text(passage.units[unit]), "\n\n"
                continue
            mark = _list_mark(passage, unit) if has_list else ""
            for sentence in split_line(passage.unit_text(passage.units[unit])):
                yield mark + sentence, lead
                mark, lead = "", " "


def _table(passage: Passage, rows: Sequence[int]) -> str:
    lines = []
    for row in rows:
        cells = passage.unit_text(passage.units[row])
        lines.append(f"| {cells} |")
        if is_header(passage, row):
            lines.append(passage.text[passage.units[row].end :].split("\n", 2)[1].strip())
    return "\n".join(lines)


def _lead(passage: Passage, before: int | None, unit: int) -> str:
    if before is None:
        return ""
    between = passage.text[passage.units[before].end : passage.units[unit].start]
    kinds = {passage.units[before].kind, passage.units[unit].kind}
    if kinds == {UnitKind.ITEM} and "\n" in between:
        line = between.rpartition("\n")[2]
        return "\n" + line[: len(line) - len(line.lstrip())]
    return "\n\n" if "\n" in between else " "


def _list_mark(passage: Passage, unit: int) -> str:
    """Return the mark before a list item, such as "- " or "1. "; empty for other units."""
    if passage.units[unit].kind is not UnitKind.ITEM:
        return ""
    text, end = passage.text, passage.units[unit].start
    mark = text[text.rfind("\n", 0, end) + 1 : end].strip()
    is_mark = mark in ("-", "*", "•") or (mark[-1:] in (".", ")") and mark[:-1].isdigit())
    return f"{mark} " if is_mark else ""
