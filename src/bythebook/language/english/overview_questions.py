"""Recognise questions about the book itself: "Summarize module 2", "What is chapter 3 about?"."""

from __future__ import annotations

import re

from bythebook.language.text import word_set, words

_PART = r"(?:module|chapter|part|section|unit|lesson|page|appendix)"
_WHOLE = r"(?:book|textbook|course|tutorial|manual|guide)"
_POLITE = (
    r"(?:please |can you |could you |would you |give me |tell me |i want |i need |show me |"
    r"write |make )*(?:an? |the )?(?:quick |short |brief )?"
)
_ABOUT = re.compile(
    rf"{_POLITE}(?:"
    r"(?:summari[sz]e|recap|outline) (?P<a>.+)"
    r"|(?:summary|overview|outline|recap|table of contents|contents) (?:of|for|to) (?P<b>.+)"
    r"|what(?: is|['’]?s) (?P<c>.+?) (?:all )?about"
    r"|what(?: is|['’]?s| can be found)(?: covered| taught| explained)? in (?P<d>.+)"
    r"|what (?:topics |subjects |things )?(?:does|do|will|would) (?P<e>.+?) (?:cover|contain|teach)"
    r"(?: me| us)?"
    r"|what (?:topics |subjects |things )?(?:does|do|will|would|can|am|are) "
    r"(?:i|we|you|one|students)"
    r"(?: going to)? (?:learn|study|cover) (?:in|from|with) (?P<f>.+)"
    r")",
    re.IGNORECASE,
)
_SAID = re.compile(
    rf"{_POLITE}what (?:does|do) (?:the|this) {_WHOLE} (?:say|explain|tell us) (?:about|on) (.+)",
    re.IGNORECASE,
)
_PART_WORD = re.compile(rf"\b{_PART}s?\b", re.IGNORECASE)
_WHOLE_WORD = re.compile(rf"\b{_WHOLE}\b", re.IGNORECASE)
_NUMBER = re.compile(r"\b\d{1,3}\b")
_LONGEST = 200  # characters
_ASKS_ALL = word_set(
    "what explain explanation describe clarify simplify paraphrase summarise summarize summary "
    "recap outline tl tldr mean means meaning elaborate"
)
_OF_ALL = _ASKS_ALL | word_set(
    "is s does do say says tell about this that it these the a an of in to for me us i you can "
    "could would please give want need text passage paragraph selection sentence sentences section "
    "excerpt selected highlighted simple simpler plain easy own words terms english short brief "
    "briefly quick detail details more main key point points idea ideas dr here and"
)


def overview_topic(question: str) -> str | None:
    """Return what an overview is asked of, such as "module 2" or "this book", or None."""
    asked = " ".join(question[: _LONGEST + 1].split()).rstrip("?.! ")
    found = _ABOUT.fullmatch(asked) if len(asked) <= _LONGEST else None
    topic = next(filter(None, found.groups()), "") if found else ""
    return topic if _PART_WORD.search(topic) or _WHOLE_WORD.search(topic) else None


def asks_about_all(question: str) -> bool:
    """Return whether the question is about a whole selection: "Explain this", "Summarise"."""
    asked = set(words(question[: _LONGEST + 1].lower()))
    return not asked.isdisjoint(_ASKS_ALL) and asked <= _OF_ALL


def subject_of_book(question: str) -> str | None:
    """Return X of "What does the book say about X?", or None."""
    asked = " ".join(question[: _LONGEST + 1].split()).rstrip("?.! ")
    found = _SAID.fullmatch(asked) if len(asked) <= _LONGEST else None
    return found[1] if found else None


def is_whole_book(topic: str) -> bool:
    return bool(_WHOLE_WORD.search(topic)) and not _PART_WORD.search(topic)


def numbered_part(topic: str) -> re.Pattern[str] | None:
    """Return a pattern of labels such as "Module 2: Simulation", or None without a number."""
    part, number = _PART_WORD.search(topic), _NUMBER.search(topic)
    if part is None or number is None:
        return None
    name = re.escape(part[0].lower().removesuffix("s"))
    return re.compile(rf"\b{name}\s{{0,2}}0{{0,2}}{int(number[0])}\b", re.IGNORECASE)


def numbered_path(topic: str) -> re.Pattern[str] | None:
    """Return a pattern of URLs such as "…/ch02-00-types" for "chapter 2", or None without a number.

    Many generators number the chapters of a book, but only their file names have the number.
    """
    part, number = _PART_WORD.search(topic), _NUMBER.search(topic)
    if part is None or number is None:
        return None
    name = part[0].lower().removesuffix("s")
    short = {"chapter": "ch|chap", "module": "mod|m", "appendix": "app"}.get(name, name)
    return re.compile(rf"(?:\A|/)(?:(?:{name}|{short})[-_]?)?0{{0,2}}{int(number[0])}(?=[-_./]|\Z)")


def name_of_part(topic: str) -> str:
    """Return the words that name the part: "launch files" of "the section on launch files"."""
    return _PART_WORD.sub(" ", topic)
