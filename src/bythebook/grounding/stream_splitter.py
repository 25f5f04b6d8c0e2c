"""Split a writer's stream of text into claims, each yielded as soon as it is complete.

A claim is a sentence, a list item, a table row or a fenced block, with the citation markers that
follow it. Unknown marker formats, URLs and markup are removed and counted here; citation markers
are only hints.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass

from bythebook.interfaces.models import DraftEvent, DraftPiece
from bythebook.language.sentences import split_sentences
from bythebook.language.text import clean
from bythebook.text.units import FENCE, is_row

# (?<!\s) starts the match at the first of several spaces: avoids quadratic backtracking.
_MARKER = re.compile(r"(?<!\s)\s*\[\s*([0-9]{1,4}(?:\s*[,;–-]\s*[0-9]{1,4})*)\s*\](?!\()")
_LAST_MARKER = re.compile(r"(?<!\s)\s*\[\s*[0-9]{1,4}(?:\s*[,;–-]\s*[0-9]{1,4})*\s*\]\s*\Z")
_MARKERS = re.compile(r"(?:\[\s*[0-9]{1,4}(?:\s*[,;–-]\s*[0-9]{1,4})*\s*\]\s*)+")
_HALF_MARKER = re.compile(r"(?:\[[0-9,;–\s-]{0,20}+\]?+\s*+)+")
# Citation formats of other systems: [^1], 【1†source】, [source 1], digits of another script.
_STRANGE_MARKER = re.compile(
    r"(?<!\s)\s*(?:\[\^[^\]\s]{1,20}\]:?|【[^】]{0,40}】"
    r"|\[(?:source|passage|citation|ref)s?[ #]*\d*\]|\[\s*\d{1,4}\s*\](?!\())",
    re.IGNORECASE,
)
_LINE_MARK = re.compile(r"^\s*(?:(?:[-*+•]|\d{1,3}[.)]|#{1,6}|>)\s+)+")

_LINK = re.compile(r"!?\[([^\[\]]*)\]\s*\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s[^()]*)?\)")
_TAG = re.compile(
    r"</?(?:a|b|i|u|s|p|em|strong|br|hr|div|span|ul|ol|li|sup|sub|code|pre|h[1-6]|img|svg|math|"
    r"script|style|iframe|object|embed|form|input|button|link|meta|base|video|audio|source|table|"
    r"tr|td|th|body|html|head|template|details|summary)\b[^<>]*>?",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"<?(?:\b[a-z][a-z0-9+.-]{1,20}:)?//[^\s<>]+>?"
    r"|\b(?:javascript|vbscript|data|mailto|tel|file|blob|urn|magnet|sms|about):[^\s]+"
    r"|\bwww\.\S+|\S{1,64}@[\w-]+\.[\w.-]+",
    re.IGNORECASE,
)
# Matches evil.example, evil.example/path, also with the dots of other scripts.
_DOTTED = re.compile(
    r"(?<![\w/])[\w-]{1,63}+(?:(?:\[?[.。．｡]\]?)[\w-]{1,63}+){0,20}"
    r"\[?[.。．｡]\]?[^\W\d_]{2,24}(?:[:/][^\s()<>]*)?"
)
_SPACES = re.compile(r"[ \t]{2,}")
_LONGEST_LABEL = 2  # words
_LOOSE = re.compile(r"\(\s*\)|\[\s*\]|(?<!\s)\s++(?=[.,;:!?)])")


@dataclass(frozen=True, slots=True)
class DraftClaim:
    text: str  # without markers, URLs and markup
    raw: str
    lead: str  # whitespace before it in the draft: a space, a newline, an empty line
    cited: tuple[int, ...]  # the numbers of its markers, not validated
    strange_markers: int
    addresses: int

    def wordings(self) -> Iterator[str]:
        """Yield the raw text, then without its last marker, without the last two, and so on.

        Brackets and URLs in it may be part of the book's text.
        """
        text = self.raw
        yield text
        while (last := _LAST_MARKER.search(text)) is not None:
            text = text[: last.start()].rstrip()
            yield text


def claim_of(raw: str, *, lead: str = " ", known: str = "") -> DraftClaim:
    """Build a claim; dotted names in ``known``, the text of the evidence, are not URLs."""
    raw = clean(raw)
    cited = tuple(
        int(number) for marker in _MARKER.findall(raw) for number in re.findall("[0-9]+", marker)
    )
    text = _MARKER.sub("", raw)
    text, strange = _STRANGE_MARKER.subn("", text)
    text, links = _LINK.subn(lambda link: "" if link[1].strip().isdigit() else link[1], text)
    text, tags = _TAG.subn(" ", text)
    text, addresses = _ADDRESS.subn("", text)
    text, dotted = _without_dotted(text, known)
    text = _SPACES.sub(" ", _LOOSE.sub("", text)).strip()
    return DraftClaim(text, raw, lead, cited, strange, links + tags + addresses + dotted)


def _without_dotted(text: str, known: str) -> tuple[str, int]:
    count = 0

    def judge(name: re.Match[str]) -> str:
        nonlocal count
        if name[0] in known:
            return name[0]
        count += 1
        return ""

    return _DOTTED.sub(judge, text), count


def without_line_mark(text: str) -> str:
    """Remove the marker of a list item, heading or quotation, or the borders of a table row."""
    text = _LINE_MARK.sub("", text)
    return text.strip("| \t") if is_row(text) else text


async def claims(
    draft: AsyncIterator[DraftPiece],
) -> AsyncGenerator[tuple[str, str] | DraftEvent, None]:
    """Yield (whitespace before it, text) of each claim with words; pass other events through.

    Closing this generator also closes the draft, so that generation stops if the client leaves.
    """
    splitter = Splitter()
    try:
        async for piece in draft:
            if not isinstance(piece, str):
                yield piece
                continue
            for lead, text in splitter.feed(piece):
                if has_words(text):
                    yield lead, text
        for lead, text in splitter.finish():
            if has_words(text):
                yield lead, text
    finally:
        if isinstance(draft, AsyncGenerator):
            await draft.aclose()


def has_words(text: str) -> bool:
    return any(char.isalnum() for char in _STRANGE_MARKER.sub("", _MARKER.sub("", text)))


class Splitter:
    """Incremental splitter: yields sentences, list items and fenced blocks once complete.

    Each comes with the whitespace before it (a space, a newline or an empty line), which preserves
    the layout of the draft.
    """

    def __init__(self) -> None:
        self._rest = ""
        self._lead = ""

    def feed(self, piece: str) -> Iterator[tuple[str, str]]:
        self._rest += piece
        yield from self._take(final=False)

    def finish(self) -> Iterator[tuple[str, str]]:
        yield from self._take(final=True)

    def _take(self, *, final: bool) -> Iterator[tuple[str, str]]:
        while True:
            self._skip_space()
            fence = FENCE.match(self._rest)
            end = _fence_end(self._rest, fence[1]) if fence else self._rest.find("\n")
            if end < 0 and not final:
                break
            block = self._rest if end < 0 else self._rest[:end]
            self._rest = self._rest[len(block) :]
            if not block.strip():
                return
            for claim in [block.strip()] if fence else split_line(block):
                yield self._with_lead(claim)
        if not FENCE.match(self._rest):
            yield from self._take_whole_sentences()

    def _take_whole_sentences(self) -> Iterator[tuple[str, str]]:
        """Yield the sentences of an unfinished line that are followed by another sentence."""
        if self._rest.startswith("|"):
            return  # a table row is one claim, even with several sentences in it
        *whole, unfinished = split_line(self._rest) or [""]
        if _HALF_MARKER.fullmatch(unfinished):
            return  # it may be a marker of the sentence before it
        if whole:
            self._rest = self._rest[self._rest.rindex(unfinished) :]
        for claim in whole:
            yield self._with_lead(claim)

    def _skip_space(self) -> None:
        stripped = self._rest.lstrip()
        breaks = self._rest[: len(self._rest) - len(stripped)].count("\n")
        if breaks:
            self._lead = "\n\n" if breaks > 1 or self._lead.startswith("\n") else "\n"
        self._rest = stripped

    def _with_lead(self, claim: str) -> tuple[str, str]:
        lead, self._lead = self._lead, " "
        return lead, claim


def _fence_end(text: str, fence: str) -> int:
    """Return the end of a fenced block with the markers after it, or -1 if it is incomplete."""
    closing = _closing(fence[0], len(fence)).search(text)
    return -1 if closing is None else closing.end() - 1


def _closing(sign: str, least: int) -> re.Pattern[str]:
    return re.compile(rf"\n[ \t]*+{re.escape(sign)}{{{least},}}+[ \t]*+(?:(?:\[\d+\])++[ \t]*+)?\n")


def split_line(line: str) -> list[str]:
    """Split a line into sentences with the markers after them; keep a table row whole."""
    if line.startswith("|"):
        return [line.strip()]
    sentences: list[str] = []
    for start, end in _with_labels(line):
        sentence = line[start:end].strip()
        leading = _MARKERS.match(sentence)
        if sentences and leading:
            sentences[-1] = f"{sentences[-1]} {leading[0].strip()}"
            sentence = sentence[leading.end() :]
        if sentence:
            sentences.append(sentence)
    return sentences


def _with_labels(line: str) -> Iterator[tuple[int, int]]:
    """Yield sentence spans; a label of one or two words is joined to the next sentence."""
    spans = split_sentences(line)
    if len(spans) > 1:
        (start, middle), (_, end), *others = spans
        label = without_line_mark(line[start:middle])
        if len(label.split()) <= _LONGEST_LABEL and not _MARKERS.search(line[middle:end]):
            spans = [(start, end), *others]
    yield from spans
