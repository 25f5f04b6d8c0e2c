"""Cut the pieces of one section into the texts of its passages.

Prose fills passages up to the limit. A code block, a maths block or a table row may be longer, up
to ``longest(limit)``; what is longer still is cut, so that no passage has more tokens than that.
See decision 29.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bythebook.book.blocks import Span
from bythebook.book.render import Kind, Piece
from bythebook.book.sentences import split_sentences
from bythebook.book.tokens import estimate_tokens

_CHARS = 12  # characters that count as one token where white space makes a block long


@dataclass(frozen=True, slots=True)
class Chunk:
    text: str
    span: Span
    has_code: bool
    tokens: int
    continues: str | None = None  # as of the piece that it begins with


Sized = tuple[Piece, int]  # with its tokens


def longest(limit: int) -> int:
    """Return how many tokens a passage may have that is a single block: 800 where 500 is usual."""
    return limit * 8 // 5


def pack(pieces: Sequence[Piece], limit: int) -> list[Chunk]:
    """Fill each chunk with whole pieces; cut a piece only if it is too long by itself."""
    chunks: list[Chunk] = []
    pending: list[Sized] = []
    size = 0
    for piece, tokens in _cut_all(pieces, limit):
        apart = piece.is_part or (pending and pending[-1][0].is_part)
        if pending and (apart or size + tokens > limit):
            kept, pending = _split_off_titles(pending)
            chunks.append(_chunk(kept))
            if piece.kind is Kind.ROW and not pending:
                header = Piece(piece.header, piece.span, Kind.TITLE), estimate_tokens(piece.header)
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
    """A title that would end a chunk goes with what it is the title of."""
    end = len(pieces)
    while end and pieces[end - 1][0].kind is Kind.TITLE:
        end -= 1
    return (pieces[:end], pieces[end:]) if end else (pieces, [])


def _chunk(sized: Sequence[Sized]) -> Chunk:
    pieces = [piece for piece, _ in sized]
    text = "".join((piece.gap if place else "") + piece.text for place, piece in enumerate(pieces))
    span = min(piece.span[0] for piece in pieces), max(piece.span[1] for piece in pieces)
    has_code = any(piece.kind is Kind.CODE for piece in pieces)
    tokens = sum(size for _, size in sized)
    return Chunk(text.strip("\n"), span, has_code, tokens, pieces[0].continues)


def _cut_all(pieces: Sequence[Piece], limit: int) -> Iterator[Sized]:
    """Yield the pieces with their sizes, the over-long ones in parts."""
    for piece in pieces:
        tokens = estimate_tokens(piece.text)
        if piece.kind in (Kind.CODE, Kind.MATHS):
            too_long = max(tokens, len(piece.text) // _CHARS) > longest(limit)
            parts = _cut_block(piece, limit) if too_long else None
        else:
            too_long = tokens > (limit if piece.kind is Kind.PROSE else longest(limit))
            parts = _cut_prose(replace(piece, kind=Kind.PROSE), limit) if too_long else None
        if parts is None:
            yield piece, tokens
        else:
            yield from ((part, estimate_tokens(part.text)) for part in parts)


def _cut_prose(piece: Piece, limit: int) -> Iterator[Piece]:
    """Groups of whole sentences; each group begins with the last sentence of the one before."""
    sentences = list(_short_sentences(piece.text, limit))
    start = 0
    gap = piece.gap
    while start < len(sentences):
        end, size = start, 0
        while end < len(sentences) and (end == start or size + sentences[end][2] <= limit):
            size += sentences[end][2]
            end += 1
        text = piece.text[sentences[start][0] : sentences[end - 1][1]]
        yield replace(piece, text=text, gap=gap)
        if end >= len(sentences):
            return
        overlap = end - 1 > start and sentences[end - 1][2] + sentences[end][2] <= limit
        start = end - 1 if overlap else end
        gap = "\n\n"


def _short_sentences(text: str, limit: int) -> Iterator[tuple[int, int, int]]:
    """Sentences with their size. The first starts at 0 and none leaves a gap of words between."""
    spans = split_sentences(text) or [(0, len(text))]
    spans[0] = (0, spans[0][1])
    for place, (start, _) in enumerate(spans):
        end = spans[place + 1][0] if place + 1 < len(spans) else len(text)
        stop = start + len(text[start:end].rstrip())
        tokens = estimate_tokens(text[start:stop])
        if tokens <= limit:
            yield start, stop, tokens
        else:
            yield from _cut_words(text, start, stop, limit)


def _cut_words(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int, int]]:
    """A sentence without end, cut between words, or anywhere if it has no spaces."""
    while start < end:
        stop = min(end, start + limit)  # no text has more word pieces than characters
        if stop < end:
            stop = _word_border(text, start + limit // 2, stop)
        yield start, stop, estimate_tokens(text[start:stop])
        start = stop + (1 if text[stop : stop + 1] == " " else 0)


def _word_border(text: str, least: int, most: int) -> int:
    space = text.rfind(" ", least, most)
    if space >= 0:
        return space
    place = most
    while place > least and text[place - 1].isalnum() and text[place].isalnum():
        place -= 1
    return place if place > least else most


def _cut_block(piece: Piece, limit: int) -> Iterator[Piece]:
    """Cut a code or maths block between two lines; each part has the marks around it again."""
    title, opening, lines, closing = _block_lines(piece.text)
    head = "\n".join([*title, opening])
    if estimate_tokens(head) > limit // 2:  # no room for code beside it: the words stand apart
        yield from _cut_prose(
            replace(piece, text=head.replace(closing, ""), kind=Kind.PROSE), limit
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
        )
        start, head, gap = end, opening, "\n\n"


Atom = tuple[str, str]  # text that is not cut, and what stands between it and the text before


def _atoms(line: str, room: int) -> Iterator[Atom]:
    """Yield a line, or pieces of a line that alone is too long for a passage."""
    if max(estimate_tokens(line), len(line) // _CHARS + 1) <= room:
        yield line, "\n"
        return
    for start in range(0, len(line), room):  # no text has more tokens than characters
        yield line[start : start + room], "" if start else "\n"


def _block_border(atoms: Sequence[Atom], sizes: Sequence[int], start: int, room: int) -> int:
    """Return where a part ends: if it must end early, after the blank line that ends most."""
    size = 0
    for end in range(start, len(atoms)):
        size += sizes[end]
        if size > room and end > start:
            later = range((start + end) // 2 + 1, end + 1)
            blank = [place for place in later if not atoms[place - 1][0].strip()]
            return min(blank, key=lambda place: (_indent(atoms[place][0]), -place), default=end)
    return len(atoms)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _block_lines(text: str) -> tuple[list[str], str, list[str], str]:
    lines = text.split("\n")
    mark = lines[-1]
    opening = next(place for place, line in enumerate(lines) if line.startswith(mark))
    return lines[:opening], lines[opening], lines[opening + 1 : -1], mark
