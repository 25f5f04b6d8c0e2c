"""Split one page of a source into passages, and count which visible words they keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bythebook.chunking.passages import passages_of
from bythebook.interfaces.source import SourcePage
from bythebook.language.detection import language_of
from bythebook.language.text import words
from bythebook.types import Passage, Place


@dataclass(frozen=True, slots=True)
class ParsedPage:
    file: str
    title: str
    url: str
    passages: tuple[Passage, ...]
    visible_words: int
    covered_words: int
    missing: tuple[str, ...]
    headings: tuple[tuple[str, str | None], ...]  # text and anchor


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
    )


def _kept_words(passages: tuple[Passage, ...], page: SourcePage) -> list[str]:
    """Return the words of the title, the passages and, once, each heading in a passage's path."""
    carried = {heading for passage in passages for heading in passage.place.section}
    headings = [heading.text for heading in page.document.headings if heading.text in carried]
    texts = [page.title, *headings, *(passage.text for passage in passages)]
    return [word for text in texts for word in words(text)]


def compare_words(visible: Sequence[str], kept: Iterable[str]) -> tuple[int, tuple[str, ...]]:
    """Return the number of visible words kept, and the missing ones in reading order."""
    left = Counter(kept)
    if all(left[word] >= count for word, count in Counter(visible).items()):  # the usual case
        return len(visible), ()
    missing: list[str] = []
    for word in visible:
        if left[word] > 0:
            left[word] -= 1
        else:
            missing.append(word)
    return len(visible) - len(missing), tuple(missing)
