"""Suggest questions, derived from headings, that the book can answer.

First questions are asked of the book before they are suggested. The questions after an answer are
not: "What does the book say about X?" is answered by the section with the heading X.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence, Set
from itertools import chain, islice, zip_longest

from bythebook.book import Book
from bythebook.errors import BookError
from bythebook.language.text import word_set
from bythebook.text.outline import OutlineEntry
from bythebook.text.text_fragments import folded
from bythebook.text.text_kinds import kind_of_heading
from bythebook.types import Answer, Place, Reply, TextKind

_MOST_TRIED = 16
_QUESTION_MARKS = ("?", "؟", "？")
_LONGEST = 90  # characters of a heading
_ASKING = word_set("what how why when where which who")
_NAMING = word_set("the a an to you we it they this these your our")
_UNSPECIFIC = re.compile(  # headings that do not say what their section is about
    r"(?:key )?(?:summary|takeaways?|conclusions?|review|practice|overview|introduction)"
    r"(?: (?:and|&) .*)?",
    re.IGNORECASE,
)
_MOST_NEXT = 3
_FEWEST_WORDS = 3  # of a question: "Which one?" needs the context of its page
# A heading alone would do as a search query, but readers prefer a sentence.
_ASKED = {"en": "What does the book say about {}?"}

Answered = Callable[[str], Awaitable[bool]]


class NextQuestions:
    """Questions to ask after an answer, about other sections of the pages that it cites."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._generation = ""
        self._unique: Set[str] = frozenset()

    async def after(self, reply: Reply) -> list[str]:
        """Return the questions; none after a refusal, or while the contents cannot be read."""
        if not isinstance(reply.outcome, Answer):
            return []
        try:
            contents = await self._book.contents()
        except BookError:
            return []
        if self._generation != contents.generation:
            self._unique = unique_headings(contents.pages)
            self._generation = contents.generation
        places = [citation.place for citation in reply.outcome.citations]
        asked = next_candidates(contents.pages, places, self._unique)
        other = (name for name in asked if folded(name) != folded(reply.question.text))
        return list(islice(other, _MOST_NEXT))


def next_candidates(
    pages: Sequence[OutlineEntry], places: Sequence[Place], unique: Set[str]
) -> Iterator[str]:
    """Yield questions about sections that are not cited.

    First those of the cited pages, starting after the cited section, then those of the page after
    the last cited one.
    """
    cited = {(place.page_url or place.file, place.section) for place in places}
    numbers = {page.url: number for number, page in enumerate(pages)}
    keys = dict.fromkeys(place.page_url or place.file for place in places)
    chosen = [numbers[key] for key in keys if key in numbers]
    if chosen and chosen[-1] + 1 < len(pages):
        chosen.append(chosen[-1] + 1)
    language = pages[chosen[0]].language if chosen else ""
    shown: set[str] = set()
    for page in (pages[number] for number in dict.fromkeys(chosen)):
        sections = [section.path for section in page.sections]
        at = [number for number, path in enumerate(sections) if (page.url, path) in cited]
        start = at[0] + 1 if at else 0
        for path in (*sections[start:], *sections[:start]):
            name = folded(path[-1])
            is_new = (page.url, path) not in cited and name not in shown
            if page.language == language and is_new and name in unique and _is_fit(path):
                shown.add(name)
                yield _as_question(path[-1], language)


def unique_headings(pages: Sequence[OutlineEntry]) -> Set[str]:
    """Return the headings, folded, of one section each: others are too unspecific to ask about."""
    names = Counter(folded(section.path[-1]) for page in pages for section in page.sections)
    return frozenset(name for name, count in names.items() if count == 1)


async def suggestions(
    pages: Sequence[OutlineEntry], answered: Answered, *, limit: int = 4
) -> list[str]:
    """Return questions that the book does not refuse, from as many modules as possible."""
    language = pages[0].language if pages else "en"
    found: list[str] = []
    for question in islice(candidates(pages, language), _MOST_TRIED):
        if len(found) < limit and await answered(question):
            found.append(question)
    return found


def candidates(pages: Sequence[OutlineEntry], language: str) -> Iterator[str]:
    """Yield headings as questions, in turn from each module, those that are questions first.

    Headings that occur on several pages are too unspecific and left out.
    """
    unique = unique_headings(pages)
    modules: dict[str, list[str]] = {}
    for page in pages:
        if page.language == language:
            own = modules.setdefault(page.module, [])
            own += [
                name
                for name in dict.fromkeys(s.path[-1] for s in page.sections if _is_fit(s.path))
                if folded(name) in unique
            ]
    for own in modules.values():
        own.sort(key=lambda name: not _is_question(name))
    turns = chain.from_iterable(zip_longest(*modules.values()))
    return (_as_question(name, language) for name in turns if name is not None)


def _is_fit(path: tuple[str, ...]) -> bool:
    heading = path[-1]
    fewest = _FEWEST_WORDS if _is_question(heading) else 1
    is_named = any(len(word) > 1 for word in folded(heading).split())  # "A–C" is not
    fits = len(heading) <= _LONGEST and len(heading.split()) >= fewest
    is_lesson = all(kind_of_heading(each) is TextKind.TEXT for each in path)
    return is_named and fits and is_lesson and not _UNSPECIFIC.fullmatch(heading)


def _as_question(heading: str, language: str) -> str:
    sentence = _ASKED.get(language.partition("-")[0].lower())
    if heading.endswith(_QUESTION_MARKS) or sentence is None:
        return heading
    if _is_question(heading):
        return f"{heading}?"
    return sentence.format(_within_a_sentence(heading))


def _is_question(heading: str) -> bool:
    first, second = [*heading.lower().split(), "", ""][:2]
    asks = first in _ASKING and second not in _NAMING  # "how the parts fit" is no question
    return asks or heading.endswith(_QUESTION_MARKS)


def _within_a_sentence(heading: str) -> str:
    """Lowercase the first letter of "Message types", but not that of "DDS and discovery"."""
    first = heading.split(maxsplit=1)[0]
    is_word = first[:1].isupper() and first[1:].islower()
    return heading[:1].lower() + heading[1:] if is_word else heading
