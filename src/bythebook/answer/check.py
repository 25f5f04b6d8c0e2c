"""Any writer's text and the evidence in; the sentences that the evidence supports out.

A marker such as ``[2]`` is a hint where to look first and never a proof. A sentence holds when
its words stand in a passage verbatim, or when its words, numbers, names and negation all do.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from bythebook.book.sentences import split_sentences
from bythebook.index.lexicon import terms_of
from bythebook.model import Evidence, Hit

_MARKER = re.compile(r"\s*\[(\d{1,3})\]")
_LAST_MARKER = re.compile(r"\s*\[\d{1,3}\]\s*\Z")
_MARKERS = re.compile(r"(?:\[\d{1,3}\]\s*)+")
_HALF_MARKER = re.compile(r"\[\d{0,3}")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)|\b(?:https?|ftp)://\S+|\bwww\.\S+")
_LIST_MARKER = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NAME = re.compile(r"\b[A-Z][\w-]*\b")
_NEGATION = re.compile(r"\b(?:not|no|never|without|cannot|nor|none|neither)\b|n['’]t\b", re.I)
_SPACES = re.compile(r"\s+")

_ENOUGH_TERMS = 0.8  # of a paraphrase's terms must stand in the passage's nearest unit


@dataclass(frozen=True, slots=True)
class Supported:
    """A sentence, and the words of the evidence that say it."""

    text: str
    hit: Hit
    quote: str
    lead: str = " "  # what stood before it in the draft: a blank, a line break, an empty line


@dataclass(frozen=True, slots=True)
class Withheld:
    """A sentence that the evidence does not support."""

    text: str


async def check(
    draft: AsyncIterator[str], evidence: Evidence
) -> AsyncIterator[Supported | Withheld]:
    """Each sentence as soon as it is complete and has been checked."""
    async for lead, claim in _claims(draft):
        if any(char.isalnum() for char in _MARKER.sub("", claim)):
            yield judge(claim, evidence, lead=lead)


def judge(claim: str, evidence: Evidence, *, lead: str = " ") -> Supported | Withheld:
    """First whether the book says just this; then whether it says as much."""
    cited = [int(number) for number in _MARKER.findall(claim)]
    named = [evidence.hits[n - 1] for n in cited if 1 <= n <= len(evidence.hits)]
    hits = [*named, *(hit for hit in evidence.hits if hit not in named)]
    for text in _without_markers(claim):
        for hit in hits:
            quote = _verbatim(text, hit)
            if quote is not None:
                return Supported(text, hit, quote, lead)
    # A writer's own words carry no addresses and no markers.
    text = _LINK.sub(r"\1", _MARKER.sub("", claim)).strip()
    for hit in hits:
        quote = _paraphrased(text, hit)
        if quote is not None:
            return Supported(text, hit, quote, lead)
    return Withheld(text)


def _without_markers(claim: str) -> Iterator[str]:
    """The claim, less one marker at its end, less two …: brackets of the book's own are kept."""
    text = claim
    yield text
    while (last := _LAST_MARKER.search(text)) is not None:
        text = text[: last.start()].rstrip()
        yield text


async def _claims(draft: AsyncIterator[str]) -> AsyncIterator[tuple[str, str]]:
    splitter = Splitter()
    async for piece in draft:
        for claim in splitter.feed(piece):
            yield claim
    for claim in splitter.finish():
        yield claim


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
    closing = re.compile(
        rf"\n[ \t]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*(?:\[\d+\])*[ \t]*\n"
    )
    found = closing.search(text)
    return -1 if found is None else found.end() - 1


def _sentences(line: str) -> list[str]:
    """Sentences with the markers that follow them."""
    sentences: list[str] = []
    for start, end in split_sentences(line):
        sentence = line[start:end].strip()
        leading = _MARKERS.match(sentence)
        if sentences and leading:
            sentences[-1] = f"{sentences[-1]} {leading[0].strip()}"
            sentence = sentence[leading.end() :]
        if sentence:
            sentences.append(sentence)
    return sentences


def _verbatim(text: str, hit: Hit) -> str | None:
    """The passage's own words, if they are the sentence's; of a fenced block, what is inside."""
    words = _LIST_MARKER.sub("", text).split()
    if not words or " ".join(words) not in _plain(hit.passage.text):
        return None
    found = re.search(r"\s+".join(map(re.escape, words)), hit.passage.text)
    quote = found[0] if found else " ".join(words)
    return quote.partition("\n")[2].rpartition("\n")[0] if _FENCE.match(quote) else quote


def _plain(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def _paraphrased(text: str, hit: Hit) -> str | None:
    terms = set(terms_of(text))
    if not terms:
        return None
    best = max(
        (hit.passage.unit_text(unit) for unit in hit.passage.units),
        key=lambda unit: len(terms & set(terms_of(unit))),
        default="",
    )
    covered = len(terms & set(terms_of(best))) / len(terms)
    holds = (
        covered >= _ENOUGH_TERMS
        and set(_NUMBER.findall(text)) <= set(_NUMBER.findall(best))
        and _names(text) <= _names(best) | {word.capitalize() for word in _NAME.findall(best)}
        and bool(_NEGATION.search(text)) == bool(_NEGATION.search(best))
    )
    return _plain(best) if holds else None


def _names(text: str) -> set[str]:
    """Capitalised words, leaving out the one that opens the sentence."""
    return {match[0] for match in _NAME.finditer(text) if match.start() > 0}
