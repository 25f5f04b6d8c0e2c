"""Detect files that look like search spam: many sentences that are nearly alike.

Pages written to match every query repeat one sentence pattern with other words, consist of
questions, or copy other files. Such files are only reported; the person who runs the ingest
decides.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bythebook.language.text import words
from bythebook.types import Passage, UnitKind

_FEWEST = 12  # sentences: with fewer, nothing is reported
_MOST = 0.5  # share of a file's sentences that may be alike, questions, or copies
_LIKE = 0.5  # share of repeated word runs from which a sentence counts as alike
_RUN, _TIMES = 3, 3  # a run of 3 words that occurs 3 times in a file is a pattern
_OPENING, _OPENED = 4, 5  # … and so are 4 words that start 5 of its sentences
_SHOWN = 60  # characters of an example in the message

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


def find_spam(passages: Iterable[Passage]) -> tuple[str, ...]:
    """Return a warning for each file that looks like spam, sorted by file."""
    files: defaultdict[str, list[_Sentence]] = defaultdict(list)
    for passage in passages:
        files[passage.place.file].extend(_sentences(passage))
    holders = Counter(
        words for sentences in files.values() for words in {one.words for one in sentences}
    )
    found = {file: _burst(sentences, holders) for file, sentences in files.items()}
    return tuple(
        f"{file}: {reason} If it does not belong to the book, leave it out: --exclude '{file}'."
        for file, reason in sorted(found.items())
        if reason
    )


def _sentences(passage: Passage) -> Iterable[_Sentence]:
    for unit in passage.units:
        if unit.kind in (UnitKind.SENTENCE, UnitKind.ITEM):
            text = passage.unit_text(unit)
            sentence_words = tuple(words(text.lower()))
            if len(sentence_words) >= _RUN:
                yield _Sentence(text, sentence_words)


def _burst(sentences: Sequence[_Sentence], holders: Mapping[_Run, int]) -> str:
    if len(sentences) < _FEWEST:
        return ""
    alike = _alike(sentences)
    suspect = [sentence for sentence in sentences if sentence.asks or sentence in alike]
    if len(suspect) >= _FEWEST and len(suspect) > _MOST * len(sentences):
        example = next(iter(alike), suspect[0]).text
        return (
            f"{len(suspect)} of its {len(sentences)} sentences are alike or only ask, as "
            f"“{_cut(example)}”."
        )
    copies = [sentence for sentence in sentences if holders[sentence.words] > 1]
    if len(copies) >= _FEWEST and len(copies) > _MOST * len(sentences):
        return (
            f"{len(copies)} of its {len(sentences)} sentences stand in other files too, as "
            f"“{_cut(copies[0].text)}”."
        )
    return ""


def _alike(sentences: Sequence[_Sentence]) -> dict[_Sentence, None]:
    """Return sentences made mostly of repeated word runs, or with a frequent opening."""
    frequency = Counter(run for sentence in sentences for run in sentence.runs)
    opened = Counter(sentence.opening for sentence in sentences)

    def is_alike(sentence: _Sentence) -> bool:
        patterns = sum(frequency[run] >= _TIMES for run in sentence.runs)
        return opened[sentence.opening] >= _OPENED or patterns >= _LIKE * len(sentence.runs)

    return {sentence: None for sentence in sentences if is_alike(sentence)}


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[:_SHOWN].rstrip()}…"
