"""A book's passages in; the files that look planted, out: bursts of sentences that are all alike.

Pages that are written to be found for everything say one thing over and over, with other words
put in, or ask and ask, or copy what stands elsewhere. No author writes so; whoever reads the
book in is told, and decides.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bythebook.book.letters import words
from bythebook.model import Passage, UnitKind

_FEWEST = 12  # sentences: fewer are no burst
_MOST = 0.5  # share of a file's sentences that may be like others, questions, or copies
_LIKE = 0.5  # share of a sentence's runs of words by which it is like others
_RUN, _TIMES = 3, 3  # so many words that a file has so often are a pattern
_OPENING, _OPENED = 4, 5  # … and so many that open so many of its sentences
_SHOWN = 60  # characters of an example

_Run = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    words: _Run

    @property
    def asks(self) -> bool:
        return self.text.rstrip("\"'”’)*_ ").endswith("?")

    @property
    def opening(self) -> _Run:
        return self.words[:_OPENING]

    @property
    def runs(self) -> list[_Run]:
        return [self.words[at : at + _RUN] for at in range(len(self.words) - _RUN + 1)]


def bursts(passages: Iterable[Passage]) -> tuple[str, ...]:
    """What to tell of each file that looks planted, in the order of the files."""
    files: defaultdict[str, list[_Sentence]] = defaultdict(list)
    for passage in passages:
        files[passage.place.file].extend(_sentences(passage))
    holders = Counter(said for listed in files.values() for said in {each.words for each in listed})
    found = {file: _burst(sentences, holders) for file, sentences in files.items()}
    return tuple(
        f"{file}: {told} If it does not belong to the book, leave it out: --exclude '{file}'."
        for file, told in sorted(found.items())
        if told
    )


def _sentences(passage: Passage) -> Iterable[_Sentence]:
    for unit in passage.units:
        if unit.kind in (UnitKind.SENTENCE, UnitKind.ITEM):
            text = passage.unit_text(unit)
            said = tuple(words(text.lower()))
            if len(said) >= _RUN:
                yield _Sentence(text, said)


def _burst(sentences: Sequence[_Sentence], holders: Mapping[_Run, int]) -> str:
    if len(sentences) < _FEWEST:
        return ""
    alike = _alike(sentences)
    suspect = [each for each in sentences if each.asks or each in alike]
    if len(suspect) >= _FEWEST and len(suspect) > _MOST * len(sentences):
        example = next(iter(alike), suspect[0]).text
        return (
            f"{len(suspect)} of its {len(sentences)} sentences are alike or only ask, as "
            f"“{_cut(example)}”."
        )
    copies = [each for each in sentences if holders[each.words] > 1]
    if len(copies) >= _FEWEST and len(copies) > _MOST * len(sentences):
        return (
            f"{len(copies)} of its {len(sentences)} sentences stand in other files too, as "
            f"“{_cut(copies[0].text)}”."
        )
    return ""


def _alike(sentences: Sequence[_Sentence]) -> dict[_Sentence, None]:
    """Those that are made of what the file says again and again, or begin as many others do."""
    said = Counter(run for each in sentences for run in each.runs)
    opened = Counter(each.opening for each in sentences)

    def is_alike(each: _Sentence) -> bool:
        patterns = sum(said[run] >= _TIMES for run in each.runs)
        return opened[each.opening] >= _OPENED or patterns >= _LIKE * len(each.runs)

    return {each: None for each in sentences if is_alike(each)}


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[:_SHOWN].rstrip()}…"
