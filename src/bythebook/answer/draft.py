"""A writer's stream of text in; its claims out, one by one, each as soon as it is complete.

A claim is a sentence, a list item, a line of a table or a fenced block, with the markers that
follow it. What a writer may not say (markers of its own making, addresses, markup) is taken out
here and counted; what it cites is only ever a hint.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass

from bythebook.book.letters import clean
from bythebook.book.sentences import split_sentences
from bythebook.ports import Aside, Piece

# Looked for from where the spaces before it begin, or each of many spaces would be tried.
_MARKER = re.compile(r"(?<!\s)\s*\[\s*([0-9]{1,4}(?:\s*[,;–-]\s*[0-9]{1,4})*)\s*\](?!\()")
_LAST_MARKER = re.compile(r"(?<!\s)\s*\[\s*[0-9]{1,4}(?:\s*[,;–-]\s*[0-9]{1,4})*\s*\]\s*\Z")
_MARKERS = re.compile(r"(?:\[\s*[0-9]{1,4}(?:\s*[,;–-]\s*[0-9]{1,4})*\s*\]\s*)+")
_HALF_MARKER = re.compile(r"(?:\[[0-9,;–\s-]{0,20}+\]?+\s*+)+")
# Citations in other systems' dress: [^1], 【1†source】, [source 1], digits of another script.
_STRANGE_MARKER = re.compile(
    r"(?<!\s)\s*(?:\[\^[^\]\s]{1,20}\]:?|【[^】]{0,40}】"
    r"|\[(?:source|passage|citation|ref)s?[ #]*\d*\]|\[\s*\d{1,4}\s*\](?!\())",
    re.IGNORECASE,
)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
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
# evil.example, evil.example/path, also with the dots of other scripts.
_DOTTED = re.compile(
    r"(?<![\w/])[\w-]{1,63}+(?:(?:\[?[.。．｡]\]?)[\w-]{1,63}+){0,20}"
    r"\[?[.。．｡]\]?[^\W\d_]{2,24}(?:[:/][^\s()<>]*)?"
)
_SPACES = re.compile(r"[ \t]{2,}")
_LONGEST_LABEL = 2  # words
_LOOSE = re.compile(r"\(\s*\)|\[\s*\]|(?<!\s)\s++(?=[.,;:!?)])")


@dataclass(frozen=True, slots=True)
class Claim:
    text: str  # in the writer's own words: no markers, no addresses, no markup
    raw: str
    lead: str  # what stood before it in the draft: a blank, a line break, an empty line
    cited: tuple[int, ...]  # the numbers of its markers, right or wrong
    strange_markers: int
    addresses: int

    def wordings(self) -> Iterator[str]:
        """As it was written, less one marker at its end, less two …: the book's own brackets and
        addresses are no writer's."""
        text = self.raw
        yield text
        while (last := _LAST_MARKER.search(text)) is not None:
            text = text[: last.start()].rstrip()
            yield text


def claim_of(raw: str, *, lead: str = " ", known: str = "") -> Claim:
    """``known`` is what the evidence says: its own file names are no addresses."""
    raw = clean(raw)
    cited = tuple(
        int(number) for found in _MARKER.findall(raw) for number in re.findall("[0-9]+", found)
    )
    text = _MARKER.sub("", raw)
    text, strange = _STRANGE_MARKER.subn("", text)
    text, links = _LINK.subn(lambda link: "" if link[1].strip().isdigit() else link[1], text)
    text, tags = _TAG.subn(" ", text)
    text, addresses = _ADDRESS.subn("", text)
    text, dotted = _without_dotted(text, known)
    text = _SPACES.sub(" ", _LOOSE.sub("", text)).strip()
    return Claim(text, raw, lead, cited, strange, links + tags + addresses + dotted)


def _without_dotted(text: str, known: str) -> tuple[str, int]:
    count = 0

    def judge(found: re.Match[str]) -> str:
        nonlocal count
        if found[0] in known:
            return found[0]
        count += 1
        return ""

    return _DOTTED.sub(judge, text), count


def without_line_mark(text: str) -> str:
    """Without the mark of a list item, a heading or a quotation, and without a row's borders."""
    text = _LINE_MARK.sub("", text)
    if len(text) > 1 and text.startswith("|") and text.endswith("|"):
        text = text.strip("| \t")
    return text


def inside_fence(text: str) -> str | None:
    """What stands between the fences of a block, if it is one."""
    return text.partition("\n")[2].rpartition("\n")[0] if _FENCE.match(text) else None


async def claims(draft: AsyncIterator[Piece]) -> AsyncGenerator[tuple[str, str] | Aside, None]:
    """(what stood before it, its text) of each piece that has words; what is no text passes.

    The draft is closed with us: nobody goes on writing for a reader who has left.
    """
    splitter = Splitter()
    try:
        async for piece in draft:
            if not isinstance(piece, str):
                yield piece
                continue
            for lead, text in splitter.feed(piece):
                if _has_words(text):
                    yield lead, text
        for lead, text in splitter.finish():
            if _has_words(text):
                yield lead, text
    finally:
        if isinstance(draft, AsyncGenerator):
            await draft.aclose()


def _has_words(text: str) -> bool:
    return any(char.isalnum() for char in _STRANGE_MARKER.sub("", _MARKER.sub("", text)))


class Splitter:
    """A stream of text in; sentences, list items and fenced blocks out, each once it is complete.

    Each comes with the space that stood before it (a blank, a line break or an empty line), so
    that the layout of the draft survives.
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
            fence = _FENCE.match(self._rest)
            end = _fence_end(self._rest, fence[1]) if fence else self._rest.find("\n")
            if end < 0 and not final:
                break
            block = self._rest if end < 0 else self._rest[:end]
            self._rest = self._rest[len(block) :]
            if not block.strip():
                return
            for claim in [block.strip()] if fence else _sentences(block):
                yield self._with_lead(claim)
        if not _FENCE.match(self._rest):
            yield from self._take_whole_sentences()

    def _take_whole_sentences(self) -> Iterator[tuple[str, str]]:
        """Of an unfinished line, the sentences that another one has already followed."""
        if self._rest.startswith("|"):
            return  # a row of a table is one claim, however many stops are in it
        *whole, unfinished = _sentences(self._rest) or [""]
        if _HALF_MARKER.fullmatch(unfinished):
            return  # it may still belong to the sentence before it
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
    """Where a fenced block ends, with the markers after it; -1 while that is not known."""
    found = _closing(fence[0], len(fence)).search(text)
    return -1 if found is None else found.end() - 1


def _closing(sign: str, least: int) -> re.Pattern[str]:
    return re.compile(rf"\n[ \t]*+{re.escape(sign)}{{{least},}}+[ \t]*+(?:(?:\[\d+\])++[ \t]*+)?\n")


def _sentences(line: str) -> list[str]:
    """Sentences with the markers that follow them; a row of a table is one."""
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
    """A word or two at the beginning, as of a list item, belong to the sentence after them."""
    spans = split_sentences(line)
    if len(spans) > 1:
        (start, middle), (_, end), *others = spans
        label = without_line_mark(line[start:middle])
        if len(label.split()) <= _LONGEST_LABEL and not _MARKERS.search(line[middle:end]):
            spans = [(start, end), *others]
    yield from spans
