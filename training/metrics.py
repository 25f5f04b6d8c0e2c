"""Figures of merit, without dependencies."""

from __future__ import annotations

from collections.abc import Sequence


def auroc(scores: Sequence[float], labels: Sequence[bool]) -> float:
    """Return the probability that a positive outranks a negative; ties count half."""
    order = sorted(range(len(scores)), key=scores.__getitem__)
    rank_sum, start = 0.0, 0
    while start < len(order):
        end = start
        while end < len(order) and scores[order[end]] == scores[order[start]]:
            end += 1
        middle = (start + end + 1) / 2  # mean rank of the tied ones
        rank_sum += middle * sum(bool(labels[i]) for i in order[start:end])
        start = end
    positives = sum(map(bool, labels))
    negatives = len(labels) - positives
    if not positives or not negatives:
        return float("nan")
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)
