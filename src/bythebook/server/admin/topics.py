"""Cluster questions by their vectors into labelled topics.

The same questions always give the same topics. Since some embedders give any two sentences a high
cosine, the similarity threshold is relative to that of the titles of different pages of the book.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bythebook.interfaces.conversations import Unanswered
from bythebook.language.detection import likeliest
from bythebook.language.terms import terms_of
from bythebook.language.text import words

if TYPE_CHECKING:
    from bythebook.types import Vectors

_NEAR = 0.42  # threshold, from 0 (cosine of unrelated page titles) to 1 (identical text)
_LABEL_WORDS = 3


@dataclass(frozen=True, slots=True)
class TopicGroup:
    label: str
    questions: tuple[Unanswered, ...]  # most frequent first

    @property
    def count(self) -> int:
        return sum(one.count for one in self.questions)

    @property
    def refused(self) -> int:
        return sum(one.refused for one in self.questions)


def topics_of(
    questions: Sequence[Unanswered], vectors: Vectors, *, apart: float, languages: Sequence[str]
) -> list[TopicGroup]:
    """Return topics, largest first. ``apart`` is the cosine of unrelated texts."""
    weights = np.array([one.count for one in questions], dtype=np.float32)
    groups = cluster(vectors, weights, near=apart + _NEAR * (1.0 - apart))
    stems = [_stems(one.text, languages) for one in questions]
    spread = Counter(stem for own in stems for stem in own)
    topics = [
        TopicGroup(
            _label([stems[n] for n in group], spread, questions[group[0]].text),
            tuple(questions[n] for n in group),
        )
        for group in groups
    ]
    return sorted(topics, key=lambda topic: (-topic.count, topic.questions[0].text))


def background(titles: Vectors) -> float:
    """Return the median cosine of different pages' titles, as a baseline for unrelated texts."""
    if len(titles) < 3:
        return 0.0
    pairs = (titles @ titles.T)[np.triu_indices(len(titles), k=1)]
    return float(np.clip(np.median(pairs), 0.0, 0.95))


def cluster(vectors: Vectors, weights: Vectors, *, near: float) -> list[list[int]]:
    """Return groups of row numbers. Each row joins the group with the nearest mean above ``near``.

    Rows are taken in order, so the first rows, the most frequent questions, start the groups.
    """
    groups: list[list[int]] = []
    sums: list[Vectors] = []
    for row, vector in enumerate(vectors):
        best = _nearest(vector, sums, near)
        if best is None:
            groups.append([row])
            sums.append(vector * weights[row])
        else:
            groups[best].append(row)
            sums[best] = sums[best] + vector * weights[row]
    return [sorted(group) for group in _merged(groups, sums, near)]


def _nearest(vector: Vectors, sums: Sequence[Vectors], near: float) -> int | None:
    if not sums:
        return None
    cosines = _means(sums) @ vector
    best = int(np.argmax(cosines))
    return best if cosines[best] >= near else None


def _means(sums: Sequence[Vectors]) -> Vectors:
    means = np.stack(sums)
    return np.asarray(means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9))


def _merged(groups: list[list[int]], sums: list[Vectors], near: float) -> list[list[int]]:
    """Merge groups whose means are at least ``near``, the nearest two first."""
    while len(groups) > 1:
        means = _means(sums)
        cosines = means @ means.T
        np.fill_diagonal(cosines, -1.0)
        one, other = sorted(divmod(int(np.argmax(cosines)), len(groups)))
        if cosines[one, other] < near:
            break
        groups[one] += groups.pop(other)
        sums[one] = sums[one] + sums.pop(other)
    return groups


def _stems(text: str, languages: Sequence[str]) -> dict[str, str]:
    """Map the terms of a question to the words that they come from."""
    spoken = words(text)
    language = likeliest(spoken, languages)
    return {term: word for word in spoken for term in terms_of(word, language)}


def _label(stems: Sequence[dict[str, str]], spread: Counter[str], question: str) -> str:
    """Return the words that most questions share, or if too few, the most frequent question."""
    shared = Counter(stem for own in stems for stem in own)
    # A word that occurs throughout the log does not distinguish a topic.
    worth = {stem: n * n / spread[stem] for stem, n in shared.items() if n > 1}
    best = sorted(worth, key=lambda stem: (-worth[stem], stem))
    written = [Counter(own[stem] for own in stems if stem in own) for stem in best]
    forms = [min(each, key=lambda form: (-each[form], form)) for each in written]
    told = list(dict.fromkeys(form for form in forms if not form.isdecimal()))[:_LABEL_WORDS]
    return " · ".join(told) if len(told) > 1 else question
