"""Pack the text pieces of one section into chunks of limited size.

Prose fills chunks up to the limit. A code block, maths block or table row may be longer, up to
``longest(limit)``; anything longer is split, so no passage has more tokens than that. See
decision 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bythebook.ingestion.render import PieceKind, TextPiece
from bythebook.interfaces.blocks import Span
from bythebook.language.sentences import split_sentences
from bythebook.language.tokens import estimate_tokens
from bythebook.text.markdown import marks_within, moved
from bythebook.types import Mark, TextKind

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
    """Return the token limit of a single-block passage: 800 for a limit of 500."""
    return limit * 8 // 5


def pack(pieces: Sequence[TextPiece], limit: int) -> list[TextChunk]:
    """Fill chunks with whole pieces; split a piece only if it is too long by itself."""
    chunks: list[TextChunk] = []
    pending: list[Sized] = []
    size = 0
    for piece, tokens in _cut_all(pieces, limit):
        apart = piece.is_part or (pending and pending[-1][0].is_part)
        if pending and (apart or size + tokens > limit):
            kept, pending = _split_off_titles(pending)
            chunks.append(_chunk(kept))
            if piece.header is not None and not pending:
                header = replace(piece.header, gap="\n\n"), estimate_tokens(piece.header.text)
                pending = [header] if header[1] + tokens <= longest(limit) else []
            size = sum(size_of for _, size_of in pending)
            if pending and size + tokens > longest(limit):
                chunks.append(_chunk(pending))
                pending, size = [], 0
        pending.append((piece, tokens))
        size += tokens
    if pending:
        chunks.append(_chunk(pending))
    return [chunk for chunk in chunks if chunk.text]


def _split_off_titles(pieces: list[Sized]) -> tuple[list[Sized], list[Sized]]:
    """Split off trailing titles, so that they start the chunk of the content they introduce."""
    end = len(pieces)
    while end and pieces[end - 1][0].kind is PieceKind.TITLE:
        end -= 1
    return (pieces[:end], pieces[end:]) if end else (pieces, [])


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
    for piece in pieces:
        tokens = estimate_tokens(piece.text)
        if piece.kind in (PieceKind.CODE, PieceKind.MATHS):
            too_long = max(tokens, len(piece.text) // _CHARS) > longest(limit)
            parts = _cut_block(piece, limit) if too_long else None
        else:
            too_long = tokens > (limit if piece.kind is PieceKind.PROSE else longest(limit))
            parts = _cut_prose(replace(piece, kind=PieceKind.PROSE), limit) if too_long else None
        if parts is None:
            yield piece, tokens
        else:
            yield from ((part, estimate_tokens(part.text)) for part in parts)


def _cut_prose(piece: TextPiece, limit: int) -> Iterator[TextPiece]:
    """Yield groups of whole sentences; each starts with the last sentence of the previous one."""
    sentences = list(_short_sentences(piece.text, limit))
    start = 0
    gap = piece.gap
    while start < len(sentences):
        end, size = start, 0
        while end < len(sentences) and (end == start or size + sentences[end][2] <= limit):
            size += sentences[end][2]
            end += 1
        first, last = sentences[start][0], sentences[end - 1][1]
        marks = tuple(marks_within(piece.marks, first, last))
        yield replace(piece, text=piece.text[first:last], gap=gap, marks=marks)
        if end >= len(sentences):
            return
        overlap = end - 1 > start and sentences[end - 1][2] + sentences[end][2] <= limit
        start = end - 1 if overlap else end
        gap = "\n\n"


def _short_sentences(text: str, limit: int) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, tokens) of each sentence; together they cover every word of the text."""
    spans = split_sentences(text) or [(0, len(text))]
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


def _cut_block(piece: TextPiece, limit: int) -> Iterator[TextPiece]:
    """Split a code or maths block between lines; each part repeats the opening and closing."""
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
        end = _block_border(atoms, sizes, start, room)
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
