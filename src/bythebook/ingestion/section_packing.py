"""Pack the text pieces of one section into chunks of limited size.

Prose fills chunks up to the limit. What belongs together, such as a lead-in and its list, and a
code block, maths block or table row may be longer, up to ``longest(limit)``; anything longer is
split, so no passage has more tokens than that. See decision 9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bythebook.ingestion.render import PieceKind, TextPiece
from bythebook.interfaces.blocks import Span
from bythebook.language.sentences import split_sentences
from bythebook.language.tokens import estimate_tokens
from bythebook.text.markdown import marks_within, moved
from bythebook.text.units import without_code
from bythebook.types import Mark, MarkKind, TextKind

_LEAD_IN = re.compile(r"[:：]\W*\Z")
_BLOCKS = (PieceKind.CODE, PieceKind.MATHS)
# How closely a piece belongs to the one before it: a further item, row or block of code; the last
# item or the inside of one, code or a list after words about it; what a title, term or colon names.
_LOOSE, _CLOSE, _ANNOUNCED = 1, 2, 3
_SMALL = 0.5  # a chunk that is too small to stand alone is worse than a longer one
_CHARS = 12  # code and maths: at least one token per 12 characters, for blocks of white space


@dataclass(frozen=True, slots=True)
class TextChunk:
    text: str
    span: Span
    has_code: bool
    tokens: int
    continues: str | None = None  # copied from its first piece
    boxes: tuple[tuple[int, int, TextKind], ...] = ()  # ranges of the text, and their kinds
    marks: tuple[Mark, ...] = ()


Sized = tuple[TextPiece, int]  # a piece and its token count


def longest(limit: int) -> int:
    """Return the token limit of what should not be cut: 800 for a limit of 500."""
    return limit * 8 // 5


def pack(pieces: Sequence[TextPiece], limit: int) -> list[TextChunk]:
    """Fill chunks with whole pieces that belong together; split a piece only if it is too long."""
    sized = list(_cut_all(pieces, limit))
    chunks: list[TextChunk] = []
    start = 0
    while start < len(sized):
        row, tokens = sized[start]
        header = [(row.header, estimate_tokens(row.header.text))] if row.header else []
        if header and header[0][1] + tokens > longest(limit):
            header = []
        end = _end(sized, start, limit, sum(tokens for _, tokens in header))
        chunks.append(_chunk([*header, *sized[start:end]]))
        start = end
    return [chunk for chunk in chunks if chunk.text]


def _end(sized: Sequence[Sized], start: int, limit: int, size: int) -> int:
    """Return where a chunk ends: where the least bond is cut, within the limit if possible."""
    ranked: list[tuple[float, bool, int, int]] = []
    for end in range(start + 1, len(sized) + 1):
        size += sized[end - 1][1]
        if ranked and size > longest(limit):
            break
        is_last = end == len(sized) or _are_apart(sized[end - 1][0], sized[end][0])
        if is_last and size <= limit:
            return end
        bond = 0 if is_last else _bond(sized, end)
        is_over = size > limit
        rank = bond or (_SMALL if size < limit // 4 else 0)
        ranked.append((rank, is_over, end if is_over else -end, end))
        if is_last or (is_over and not bond):
            break
    return min(ranked)[-1]


def _are_apart(before: TextPiece, piece: TextPiece) -> bool:
    """Return whether two pieces are never in one chunk: what is next to a part of a block."""
    is_block = before.kind is not PieceKind.PROSE or piece.continues is not None
    return before.is_part and (piece.is_part or is_block)


def _bond(sized: Sequence[Sized], at: int) -> int:
    """Return how closely a piece belongs to the one before it."""
    (before, _), (piece, _) = sized[at - 1 : at + 1]
    is_term = (MarkKind.STRONG, len(before.text)) in (
        (m.kind, m.end - m.start) for m in before.marks
    )
    if before.kind is PieceKind.TITLE or is_term or _LEAD_IN.search(before.text):
        return _ANNOUNCED
    is_listed = piece.header is not None or piece.nesting == 1
    if is_listed and (before.nesting or before.kind is not PieceKind.PROSE):
        followers = (sized[place][0] for place in range(at + 1, len(sized)))
        after = next((each for each in followers if each.nesting != 2), None)
        return _LOOSE if after and (after.nesting or after.header) else _CLOSE
    if piece.kind in _BLOCKS or piece.text.startswith("|"):
        return _LOOSE if before.kind in _BLOCKS and not piece.nesting else _CLOSE
    goes_on = before.kind in _BLOCKS and piece.text[:1].islower()
    return _CLOSE if goes_on or is_listed or piece.nesting else 0


def _chunk(sized: Sequence[Sized]) -> TextChunk:
    pieces = [piece for piece, _ in sized]
    text, boxes = "", []
    marks: list[Mark] = []
    for index, piece in enumerate(pieces):
        start = len(text)
        text = (text + (piece.gap if index else "") + piece.text).lstrip("\n")
        shown = piece.marks if start else [mark for mark in piece.marks if mark.start >= 0]
        marks += moved(shown, len(text) - len(piece.text))
        if piece.text_kind is not TextKind.TEXT:
            boxes.append((start, len(text), piece.text_kind))
    span = min(piece.span[0] for piece in pieces), max(piece.span[1] for piece in pieces)
    has_code = any(piece.kind is PieceKind.CODE for piece in pieces)
    tokens = sum(size for _, size in sized)
    text = text.rstrip("\n")
    return TextChunk(text, span, has_code, tokens, pieces[0].continues, tuple(boxes), tuple(marks))


def _cut_all(pieces: Sequence[TextPiece], limit: int) -> Iterator[Sized]:
    """Yield each piece with its token count; split pieces that are too long."""
    tokens = 0
    for piece in pieces:
        lead = tokens if tokens < limit // 4 else 0
        tokens = estimate_tokens(piece.text)
        if piece.kind in (PieceKind.CODE, PieceKind.MATHS):
            too_long = max(tokens, len(piece.text) // _CHARS) > longest(limit)
            parts = _cut_block(piece, limit, lead) if too_long else None
        else:
            too_long = tokens > (limit if piece.kind is PieceKind.PROSE else longest(limit))
            parts = _cut_prose(replace(piece, kind=PieceKind.PROSE), limit) if too_long else None
        if parts is None:
            yield piece, tokens
        else:
            yield from ((part, estimate_tokens(part.text)) for part in parts)


def _cut_prose(piece: TextPiece, limit: int) -> Iterator[TextPiece]:
    """Yield groups of whole sentences; each starts with the last sentence of the previous one."""
    sentences = list(_short_sentences(piece, limit))
    start = 0
    gap = piece.gap
    while start < len(sentences):
        end, size = start, 0
        while end < len(sentences) and (end == start or size + sentences[end][2] <= limit):
            size += sentences[end][2]
            end += 1
        first, last = sentences[start][0], sentences[end - 1][1]
        marks = tuple(marks_within(piece.marks, first, last))
        yield replace(piece, text=piece.text[first:last], gap=gap, marks=marks, is_part=True)
        if end >= len(sentences):
            return
        overlap = end - 1 > start and sentences[end - 1][2] + sentences[end][2] <= limit
        start = end - 1 if overlap else end
        gap = "\n\n"


def _short_sentences(piece: TextPiece, limit: int) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, tokens) of each sentence; together they cover every word of the text."""
    text = piece.text
    spans = split_sentences(without_code(text, piece.marks)) or [(0, len(text))]
    spans[0] = (0, spans[0][1])
    for index, (start, _) in enumerate(spans):
        end = spans[index + 1][0] if index + 1 < len(spans) else len(text)
        stop = start + len(text[start:end].rstrip())
        tokens = estimate_tokens(text[start:stop])
        if tokens <= limit:
            yield start, stop, tokens
        else:
            yield from _cut_words(text, start, stop, limit)


def _cut_words(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int, int]]:
    """Split an over-long sentence between words, or anywhere if it has no spaces."""
    while start < end:
        stop = min(end, start + limit)  # a text never has more tokens than characters
        if stop < end:
            stop = _word_border(text, start + limit // 2, stop)
        yield start, stop, estimate_tokens(text[start:stop])
        start = stop + (1 if text[stop : stop + 1] == " " else 0)


def _word_border(text: str, least: int, most: int) -> int:
    space = text.rfind(" ", least, most)
    if space >= 0:
        return space
    index = most
    while index > least and text[index - 1].isalnum() and text[index].isalnum():
        index -= 1
    return index if index > least else most


def _cut_block(piece: TextPiece, limit: int, lead: int) -> Iterator[TextPiece]:
    """Split a code or maths block between lines; each part repeats the opening and closing.

    The first one leaves room for the tokens of the piece before.
    """
    title, opening, lines, closing = _block_lines(piece.text)
    head = "\n".join([*title, opening])
    if estimate_tokens(head) > limit // 2:  # too little room for code: emit as prose
        yield from _cut_prose(
            replace(piece, text=head.replace(closing, ""), kind=PieceKind.PROSE, marks=()), limit
        )
        head = opening = closing
    room = longest(limit) - estimate_tokens(f"{head}\n{closing}")
    atoms = [atom for line in lines for atom in _atoms(line, room)]
    sizes = [max(estimate_tokens(text), len(text) // _CHARS + 1) for text, _ in atoms]
    gap, start = piece.gap, 0
    while start < len(atoms):
        end = _block_border(atoms, sizes, start, room - (0 if start else lead))
        joint = atoms[start][1]
        body = "".join(between + text for text, between in atoms[start:end])
        yield replace(
            piece,
            text="\n".join([head, body.removeprefix(joint), closing]),
            gap=gap,
            is_part=True,
            continues=joint if start else None,
            marks=(),
        )
        start, head, gap = end, opening, "\n\n"


Atom = tuple[str, str]  # unsplittable text, and its separator from the text before


def _atoms(line: str, room: int) -> Iterator[Atom]:
    """Yield the line, or parts of it if it is too long for one passage."""
    if max(estimate_tokens(line), len(line) // _CHARS + 1) <= room:
        yield line, "\n"
        return
    for start in range(0, len(line), room):  # a text never has more tokens than characters
        yield line[start : start + room], "" if start else "\n"


def _block_border(atoms: Sequence[Atom], sizes: Sequence[int], start: int, room: int) -> int:
    """Return the end of a part, preferably at a blank line before the least indented line."""
    size = 0
    for end in range(start, len(atoms)):
        size += sizes[end]
        if size > room and end > start:
            later = range((start + end) // 2 + 1, end + 1)
            blank = [index for index in later if not atoms[index - 1][0].strip()]
            return min(blank, key=lambda index: (_indent(atoms[index][0]), -index), default=end)
    return len(atoms)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _block_lines(text: str) -> tuple[list[str], str, list[str], str]:
    lines = text.split("\n")
    mark = lines[-1]
    opening = next(index for index, line in enumerate(lines) if line.startswith(mark))
    return lines[:opening], lines[opening], lines[opening + 1 : -1], mark
