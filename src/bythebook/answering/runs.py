"""Cut a passage into blocks, and quote a run of its units with one citation.

A block is what a reader sees as one thing: a paragraph, a list with its lead-in, a table with the
sentence before it, code with its introduction. A run is a sequence of units of one passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from bythebook.grounding.stream_splitter import has_words, split_line
from bythebook.grounding.verifier import Supported
from bythebook.language.english.lexicon import LEANS_BACK
from bythebook.language.terms import language_of_passage, term_ids
from bythebook.types import Hit, Passage, UnitKind

_LONGEST_QUOTE = 500  # characters
_LONGEST_LABEL = 4  # words: the title of a tab, a listing or a note
_LONGEST_LEAD_IN = 60  # words of a paragraph that a list or table below it belongs to
_SENTENCE_END = re.compile(r"[.!?…:。！？؟۔।][\"'”’)\]*_`]*\Z")
# In "It is important to …" the word "it" does not refer to an earlier sentence.
_EXPLETIVE = re.compile(
    r"it(?:['’]s|\s+is|\s+was)\s+(?:(?:also|often|usually)\s+)?\w+\s+(?:to|that)\b", re.IGNORECASE
)

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


def quote_run(hit: Hit, units: Sequence[int], *, lead: str = "") -> Iterator[Supported]:
    """Yield the sentences of a run; all share one quote, and the last one closes the run."""
    passage, quote = hit.passage, _quote(hit.passage, units)
    sentences = [
        Supported(text, hit, quote, before, closes=False)
        for text, before in _sentences(passage, units)
        if has_words(text)
    ]
    for number, sentence in enumerate(sentences):
        yield replace(
            sentence,
            lead=sentence.lead if number else lead,
            closes=number == len(sentences) - 1,
        )


def _quote(passage: Passage, units: Sequence[int]) -> str:
    """Return the beginning of the run as it stands in the passage, in whole units."""
    start, end = passage.units[units[0]].start, passage.units[units[0]].end
    for before, unit in pairwise(units):
        last = passage.units[unit].end
        if unit != before + 1 or last - start > _LONGEST_QUOTE:
            break
        end = last
    return passage.text[start : min(end, start + _LONGEST_QUOTE)]


def _sentences(passage: Passage, units: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Yield text and separator: a table and code are one piece each, list items keep their mark."""
    before: int | None = None
    items = [unit for unit in units if _list_mark(passage, unit)]
    has_list = len(items) > 1 or items[:1] != list(units[:1])  # an item alone needs no mark
    for is_table, group in groupby(units, lambda unit: passage.units[unit].kind is UnitKind.ROW):
        members = list(group)
        if is_table:
            yield _table(passage, members), "\n\n"
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
