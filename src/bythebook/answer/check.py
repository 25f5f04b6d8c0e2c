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


@dataclass(frozen=True, slots=True)
class Withheld:
    """A sentence that the evidence does not support."""

    text: str


async def check(
    draft: AsyncIterator[str], evidence: Evidence
) -> AsyncIterator[Supported | Withheld]:
    """Each sentence as soon as it is complete and has been checked."""
    async for claim in _claims(draft):
        cited = [int(number) for number in _MARKER.findall(claim)]
        text = _LINK.sub(r"\1", _MARKER.sub("", claim)).strip()
        if any(char.isalnum() for char in text):
            yield judge(text, cited, evidence)


def judge(text: str, cited: list[int], evidence: Evidence) -> Supported | Withheld:
    named = [evidence.hits[n - 1] for n in cited if 1 <= n <= len(evidence.hits)]
    others = [hit for hit in evidence.hits if hit not in named]
    for hit in (*named, *others):
        quote = _verbatim(text, hit)
        if quote is not None:
            return Supported(text, hit, quote)
    for hit in (*named, *others):
        quote = _paraphrased(text, hit)
        if quote is not None:
            return Supported(text, hit, quote)
    return Withheld(text)


async def _claims(draft: AsyncIterator[str]) -> AsyncIterator[str]:
    """Sentences, list items and fenced blocks, released when the text goes on after them."""
    buffer = ""
    async for piece in draft:
        buffer += piece
        *complete, buffer = _blocks(buffer)
        for block in complete:
            for claim in _sentences(block):
                yield claim
    for claim in _sentences(buffer):
        yield claim


def _blocks(text: str) -> list[str]:
    """Split at blank lines that are not inside a fence; the last block may be unfinished."""
    blocks, lines, fence = [], [], ""
    for line in text.splitlines(keepends=True):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        lines.append(line)
        if not fence and not line.strip():
            blocks.append("".join(lines))
            lines = []
    return [*blocks, "".join(lines)]


def _sentences(block: str) -> Iterator[str]:
    stripped = block.strip()
    if "```" in stripped or "~~~" in stripped or "$$" in stripped:
        yield stripped
        return
    for line in stripped.splitlines():
        yield from _sentences_of_line(line)


def _sentences_of_line(line: str) -> Iterator[str]:
    """Sentences with the markers that follow them."""
    held = ""
    for start, end in split_sentences(line):
        sentence = line[start:end].strip()
        leading = re.match(r"(?:\[\d{1,3}\]\s*)+", sentence)
        if held and leading:
            held = f"{held} {leading[0].strip()}"
            sentence = sentence[leading.end() :]
        if held and sentence:
            yield held
            held = sentence
        elif sentence:
            held = sentence
    if held:
        yield held


def _verbatim(text: str, hit: Hit) -> str | None:
    words = _plain(_LIST_MARKER.sub("", text))
    return words if words and words in _plain(hit.passage.text) else None


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
