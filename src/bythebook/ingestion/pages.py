"""Split one page of a source into passages, and count which visible words they keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bythebook.ingestion.passages import passages_of
from bythebook.interfaces.blocks import LeftOut
from bythebook.interfaces.source import SourcePage
from bythebook.language.detection import language_of
from bythebook.language.text import words
from bythebook.types import Passage, Place

_LONGEST = 100  # letters of a word that is looked for in parts: the work is their square
_MOST_COMPARED = 10**10  # letters: about ten seconds; beyond, a word counts only if it is whole


@dataclass(frozen=True, slots=True)
class ParsedPage:
    file: str
    title: str
    url: str
    passages: tuple[Passage, ...]
    visible_words: int  # without those that are left out on purpose
    covered_words: int
    missing: tuple[str, ...]
    headings: tuple[tuple[str, str | None], ...]  # text and anchor
    left_out: tuple[LeftOut, ...] = ()
    base: str = ""


def split_page(page: SourcePage) -> ParsedPage:
    document = page.document
    place = Place(
        file=page.file,
        title=page.title,
        url=page.url,
        module=page.module or page.title,
        chapter=page.chapter or page.title,
        section=(),
    )
    language = page.metadata.language or language_of(document.words)
    metadata = replace(page.metadata, language=language)
    passages = passages_of(document, place, metadata, fragments=page.text_fragments)
    covered, missing = compare_words(document.words, _kept_words(passages, page))
    return ParsedPage(
        file=page.file,
        title=page.title,
        url=page.url,
        passages=passages,
        visible_words=len(document.words),
        covered_words=covered,
        missing=missing,
        headings=tuple((heading.text, heading.anchor) for heading in document.headings),
        left_out=document.left_out,
        base=page.base,
    )


def _kept_words(passages: tuple[Passage, ...], page: SourcePage) -> list[str]:
    """Return the words of the title, the passages and, once, each heading in a passage's path."""
    carried = {heading for passage in passages for heading in passage.place.section}
    headings = [heading.text for heading in page.document.headings if heading.text in carried]
    texts = [page.title, *headings, *(passage.text for passage in passages)]
    return [word for text in texts for word in words(text)]


def compare_words(visible: Sequence[str], kept: Iterable[str]) -> tuple[int, tuple[str, ...]]:
    """Return the number of visible words kept, and the missing ones in reading order.

    The source and the passages may cut the same text into different words: a word is not missing
    if it is a part of, or made of, words that the passages have more often than the source. Each
    of these letters stands for one word only.
    """
    left = Counter(kept)
    unmatched: list[tuple[int, str]] = []
    for at, word in enumerate(visible):
        if left[word] > 0:
            left[word] -= 1
        else:
            unmatched.append((at, word))
    unmatched.sort(key=lambda each: -len(each[1]))  # a short word may be in many others
    apart = [each for each in unmatched if not _take_parts(each[1], left)]
    surplus = "\n".join(left.elements()) if apart else ""
    missing: list[tuple[int, str]] = []
    for at, word in apart:
        found = surplus.find(word) if len(apart) * len(surplus) < _MOST_COMPARED else -1
        if found < 0:
            missing.append((at, word))
        else:
            surplus = f"{surplus[:found]}\n{surplus[found + len(word) :]}"
    return len(visible) - len(missing), tuple(word for _, word in sorted(missing))


def _take_parts(word: str, left: Counter[str]) -> bool:
    """Return whether a word is made of others that are left, and take these away."""
    parts: list[str] = []
    start = 0
    while start < len(word) <= _LONGEST:
        ends = range(len(word), start, -1)
        part = next((word[start:end] for end in ends if left[word[start:end]] > 0), "")
        if not part:
            break
        parts.append(part)
        left[part] -= 1
        start += len(part)
    if start < len(word):
        left.update(parts)
    return start == len(word)
