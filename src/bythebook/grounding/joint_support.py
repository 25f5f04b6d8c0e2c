"""Combine the support that two verifiers find for the same sentences."""

from __future__ import annotations

from collections.abc import Sequence

from bythebook.interfaces.reader import SentenceSupport


def joint_support(
    first: Sequence[SentenceSupport], second: Sequence[SentenceSupport]
) -> list[SentenceSupport]:
    """Return the lower probability for each sentence, with the first passage that is named."""
    return [
        SentenceSupport(
            min(one.probability, other.probability),
            other.passage if one.passage is None else one.passage,
        )
        for one, other in zip(first, second, strict=True)
    ]
