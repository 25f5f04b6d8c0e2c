"""Readings of whole passages with a label for each unit, for the relevance head.

The file of a labelled book has a question in each line, with the passages that a search found
for it. A passage has ``head`` (its heading path), ``text`` and ``units`` (character ranges of
its sentences, items, rows and code). ``best`` are the units that together answer, ``also`` other
units that are fine to show; ``complete`` is 0 where only part of the answer is there: the answers
head then learns nothing from the passage.

A reading is ``[CLS] question [SEP] heading path . passage [SEP]``, as the product reads it.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from training.prepare import read

Row = dict[str, Any]

CLS, SEP, FULL_STOP = 101, 102, 1012
QUESTION_TOKENS = 64  # from its beginning
HEADING_TOKENS = 24  # up to its end
READING_TOKENS = 384  # of all together
WRONG_PASSAGES = 2  # beside one that answers
PAIRS = 40  # that a batch of paragraphs is chosen from, by length
TWIN_SHARE = 0.75  # of the pairs, where the paragraph has a question that it does not answer
ALSO_TARGET, ALSO_WEIGHT = 0.5, 0.7


@dataclass(frozen=True, slots=True)
class Marks:
    """What the heads should say about one reading."""

    answers: bool
    units: list[int]  # the unit of each word piece, -1 where there is none
    best: frozenset[int]
    also: frozenset[int] = frozenset()
    weight: float = 1.0  # of ``answers``
    # First and last word piece: 0 where nothing answers, -1 where unknown. None: has no label.
    span: tuple[int, int] | None = None

    def target(self, unit: int) -> tuple[float, float]:
        """Return the probability that a unit should get, and the weight of its loss."""
        if unit in self.best:
            return 1.0, 1.0
        return (ALSO_TARGET, ALSO_WEIGHT) if unit in self.also else (0.0, 1.0)


Marked = tuple[list[int], list[int], Marks]  # ids, segments, labels


@dataclass(frozen=True, slots=True)
class Pieces:
    """One reading in word pieces."""

    ids: list[int]
    segments: list[int]
    first: int  # index of the passage's first word piece
    offsets: list[tuple[int, int]]  # the passage's word pieces in its text

    def units(self, spans: Sequence[Sequence[int]]) -> list[int]:
        """Return the index of the unit that each word piece is in, or -1."""
        found, unit = [-1] * len(self.ids), 0
        for piece, (start, end) in enumerate(self.offsets, self.first):
            while unit < len(spans) and spans[unit][1] <= start:
                unit += 1
            if unit < len(spans) and end > spans[unit][0]:
                found[piece] = unit
        return found

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the first and last word piece of a range of the text; -1 if it was cut off."""
        inside = [i for i, (a, b) in enumerate(self.offsets, self.first) if b > start and a < end]
        return (inside[0], inside[-1]) if inside else (-1, -1)


def pieces_of(tokenizer: Tokenizer, question: str, head: str, text: str) -> Pieces:
    """Return question, end of the heading path and passage, cut off at READING_TOKENS."""
    asked, heading, passage = tokenizer.encode_batch(
        [question, head, text], add_special_tokens=False
    )
    before = [CLS, *asked.ids[:QUESTION_TOKENS], SEP]
    above = [*heading.ids[-HEADING_TOKENS:], FULL_STOP]
    room = READING_TOKENS - len(before) - len(above) - 1
    own = [*above, *passage.ids[:room], SEP]
    return Pieces(
        ids=before + own,
        segments=[0] * len(before) + [1] * len(own),
        first=len(before) + len(above),
        offsets=passage.offsets[:room],
    )


def encode_labelled(tokenizer: Tokenizer, question: str, passage: Row) -> Marked:
    """Encode a question with a passage of a labelled book."""
    pieces = pieces_of(tokenizer, question, passage["head"], passage["text"])
    marks = Marks(
        answers=bool(passage["best"]),
        units=pieces.units(passage["units"]),
        best=frozenset(passage["best"]),
        also=frozenset(passage["also"]),
        weight=float(passage["complete"]),
    )
    return pieces.ids, pieces.segments, marks


def encode_paragraph(
    tokenizer: Tokenizer, question: str, paragraph: Row, span: Sequence[int] | None
) -> Marked:
    """Encode a question with a whole paragraph; the sentences of the answer's span are best."""
    pieces = pieces_of(tokenizer, question, paragraph["head"], paragraph["text"])
    units = pieces.units(paragraph["units"])
    if span is None:
        return pieces.ids, pieces.segments, Marks(False, units, frozenset(), span=(0, 0))
    start, end = span
    best = frozenset(i for i, (a, b) in enumerate(paragraph["units"]) if a < end and b > start)
    marks = Marks(True, units, best, span=pieces.span(start, end))
    return pieces.ids, pieces.segments, marks


class Labelled:
    """Batches of labelled passages and of whole paragraphs; each depends on seed and step alone."""

    def __init__(
        self, files: Iterable[Path], paragraphs: Path, tokenizer: Tokenizer, seed: int, tokens: int
    ) -> None:
        self._tokenizer, self._seed, self._tokens = tokenizer, seed, tokens
        self.questions = [row for file in sorted(files) for row in read(file)]
        with paragraphs.open(encoding="utf-8") as lines:
            self.paragraphs: list[Row] = [json.loads(line) for line in lines]
        self._by_head: defaultdict[str, list[Row]] = defaultdict(list)
        for paragraph in self.paragraphs:
            self._by_head[paragraph["head"]].append(paragraph)

    def passages(self, step: int) -> list[Marked]:
        """Return questions, each with a passage that answers (if there is one) and two others."""
        chance = random.Random(f"{self._seed} {step} passages")
        batch: list[Marked] = []
        longest = 0
        while longest * (len(batch) + 1 + WRONG_PASSAGES) <= self._tokens:
            row = chance.choice(self.questions)
            shuffled = chance.sample(row["passages"], len(row["passages"]))
            right = [passage for passage in shuffled if passage["best"]][:1]
            wrong = [passage for passage in shuffled if not passage["best"]][:WRONG_PASSAGES]
            for passage in right + wrong:
                batch.append(encode_labelled(self._tokenizer, row["question"], passage))
                longest = max(longest, len(batch[-1][0]))
        return batch

    def pairs(self, step: int) -> list[Marked]:
        """Return pairs of similar length: a reading that does not answer, and one that does."""
        chance = random.Random(f"{self._seed} {step} paragraphs")
        pairs = sorted(self._pairs(chance), key=_length)
        batch: list[Marked] = []
        longest = 0
        for pair in pairs[chance.randrange(max(1, len(pairs) - 8)) :]:
            longest = max(longest, _length(pair))
            if batch and longest * (len(batch) + 2) > self._tokens:
                break
            batch += pair
        return batch

    def _pairs(self, chance: random.Random) -> Iterator[tuple[Marked, Marked]]:
        for _ in range(PAIRS):
            paragraph = chance.choice(self.paragraphs)
            answered = [each for each in paragraph["questions"] if each["span"]]
            others = [each for each in paragraph["questions"] if not each["span"]]
            if not answered:
                continue
            asked = chance.choice(answered)
            question, wrong = asked["question"], paragraph
            if others and chance.random() < TWIN_SHARE:
                question = chance.choice(others)["question"]
            else:
                wrong = chance.choice(self._by_head[paragraph["head"]])
                if wrong is paragraph:
                    continue
            yield (
                encode_paragraph(self._tokenizer, question, wrong, None),
                encode_paragraph(self._tokenizer, asked["question"], paragraph, asked["span"]),
            )


def _length(pair: tuple[Marked, Marked]) -> int:
    return max(len(ids) for ids, *_ in pair)
