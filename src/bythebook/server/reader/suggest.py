"""Suggest first questions, derived from headings, that the book can answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import chain, islice, zip_longest

from bythebook.book import Book
from bythebook.chunking.outline import Contents, OutlineEntry
from bythebook.chunking.text_fragments import folded
from bythebook.language.text import word_set
from bythebook.types import Answer, Question

_MOST_TRIED = 16
_QUESTION_MARKS = ("?", "؟", "？")
_LONGEST = 90  # characters of a heading
_ASKING = word_set("what how why when where which who")
_NAMING = word_set("the a an to you we it they this these your our")
_FEWEST_WORDS = 3  # of a question: "Which one?" needs the context of its page
# A heading alone would do as a search query, but readers prefer a sentence.
_ASKED = {"en": "What does the book say about {}?"}

Answered = Callable[[str], Awaitable[bool]]


class Suggestions:
    """Suggested questions of the current generation, made once for all clients."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._generation = ""
        self._task: asyncio.Task[list[str]] | None = None

    async def of(self, contents: Contents) -> list[str]:
        """Return the questions; one shared task, as it asks the book each candidate."""
        if self._task is None or self._generation != contents.generation or _has_failed(self._task):
            self._task = asyncio.create_task(suggestions(contents.pages, self._is_answered))
            self._generation = contents.generation
        return await asyncio.shield(self._task)

    async def _is_answered(self, question: str) -> bool:
        reply = await self._book.reply(Question(question))
        return isinstance(reply.outcome, Answer)


def _has_failed(task: asyncio.Task[list[str]]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


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
    names = Counter(folded(name) for page in pages for name in {s.path[-1] for s in page.sections})
    modules: dict[str, list[str]] = {}
    for page in pages:
        if page.language == language:
            own = modules.setdefault(page.module, [])
            own += [
                name
                for name in dict.fromkeys(section.path[-1] for section in page.sections)
                if names[folded(name)] == 1 and _is_fit(name)
            ]
    for own in modules.values():
        own.sort(key=lambda name: not _is_question(name))
    turns = chain.from_iterable(zip_longest(*modules.values()))
    return (_as_question(name, language) for name in turns if name is not None)


def _is_fit(heading: str) -> bool:
    fewest = _FEWEST_WORDS if _is_question(heading) else 1
    return bool(folded(heading)) and len(heading) <= _LONGEST and len(heading.split()) >= fewest


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
