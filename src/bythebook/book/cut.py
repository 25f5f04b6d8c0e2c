"""Pieces of one section to the texts of its passages, each within the limit where that can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bythebook.book.blocks import Span
from bythebook.book.render import Kind, Piece
from bythebook.book.sentences import split_sentences
from bythebook.book.tokens import estimate_lines, estimate_tokens

_LONG_CODE = 3  # times the limit: longer code is cut, between two of its lines


@dataclass(frozen=True, slots=True)
class Chunk:
    text: str
    span: Span
    has_code: bool
    tokens: int


Sized = tuple[Piece, int]  # with its tokens


def pack(pieces: Sequence[Piece], limit: int) -> list[Chunk]:
    """Fill each chunk with whole pieces; cut a piece only if it is too long by itself."""
    chunks: list[Chunk] = []
    pending: list[Sized] = []
    size = 0
    for piece, tokens in _cut_all(pieces, limit):
        if pending and size + tokens > limit:
            kept, pending = _split_off_titles(pending)
            chunks.append(_chunk(kept))
            if piece.kind is Kind.ROW and not (pending and pending[-1][0].text == piece.header):
                header = Piece(piece.header, piece.span, Kind.TITLE)
                pending.append((header, estimate_tokens(piece.header)))
            size = sum(size_of for _, size_of in pending)
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
    return Chunk(text.strip("\n"), span, has_code, sum(tokens for _, tokens in sized))


def _cut_all(pieces: Sequence[Piece], limit: int) -> Iterator[Sized]:
    """Pieces with their sizes, the over-long ones in parts."""
    for piece in pieces:
        tokens = estimate_tokens(piece.text)
        if piece.kind is Kind.PROSE and tokens > limit:
            parts = _cut_prose(piece, limit)
        elif piece.kind is Kind.CODE and tokens > _LONG_CODE * limit:
            parts = _cut_code(piece, _LONG_CODE * limit)
        else:
            yield piece, tokens
            continue
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


def _cut_code(piece: Piece, limit: int) -> Iterator[Piece]:
    title, fence_line, lines, fence = _code_lines(piece.text)
    sizes = estimate_lines(lines)
    start = 0
    gap = piece.gap
    while start < len(lines):
        end = _code_border(lines, sizes, start, limit)
        text = "\n".join([*title, fence_line, *lines[start:end], fence])
        yield replace(piece, text=text, gap=gap)
        start, title, gap = end, [], "\n\n"


def _code_border(lines: Sequence[str], sizes: Sequence[int], start: int, limit: int) -> int:
    """How far a part may reach; if it must end early, rather after a blank line."""
    size = 0
    for end in range(start, len(lines)):
        size += sizes[end]
        if size > limit and end > start:
            half = range(end, (start + end) // 2, -1)
            return next((place for place in half if not lines[place - 1].strip()), end)
    return len(lines)


def _code_lines(text: str) -> tuple[list[str], str, list[str], str]:
    lines = text.split("\n")
    fence = lines[-1]
    opening = next(place for place, line in enumerate(lines) if line.startswith(fence))
    return lines[:opening], lines[opening], lines[opening + 1 : -1], fence
