"""Fits the weights of the check, and counts by kind what it keeps and what it blocks.

    python -m bench.check --book DOCS [--book DOCS …] [--each 16]

Every book's sentences are told truly and untruly by the rules of
``tests/grounding/claim_mutations.py``. Each figure is of a book
whose sentences the weights never saw. The kinds in UNSEEN, and the sentences
written by hand, are in no fit at all. The last lines belong into
``src/bythebook/grounding/entailment.py``.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from tests.grounding.claim_mutations import Case, cases
from tests.grounding.handwritten import handwritten

from bythebook.chunking.read_book import read_book
from bythebook.grounding.claim_parser import parse_claim
from bythebook.grounding.entailment import (
    NAMES,
    ClaimFeatures,
    Weights,
    WordSimilarity,
    compare_claim,
)
from bythebook.grounding.stream_splitter import without_line_mark
from bythebook.providers.embeddings.local import LocalEmbedder
from bythebook.types import Hit

UNSEEN = {"synonym, unseen", "by hand"}
LIE_COSTS = 1.4  # times as much to show a lie as to withhold a truth
RIDGE = 0.5


@dataclass(frozen=True)
class Row:
    book: int
    case: Case
    signals: ClaimFeatures | None  # None: no passage has any of its words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--book", type=Path, action="append", required=True)
    parser.add_argument("--each", type=int, default=16)
    options = parser.parse_args()
    rows = asyncio.run(collect(options.book, options.each))
    weights = fit(rows)
    odds = np.zeros(len(rows))
    for book in range(len(options.book)):
        others = fit([row for row in rows if row.book != book])
        for place, row in enumerate(rows):
            if row.book == book:
                odds[place] = odds_of(row, others)
    report(rows, odds)
    print(f"\nbias={weights.bias}")
    for name, weight in zip(NAMES, astuple(weights.features), strict=True):
        print(f"{name}={weight}")


async def collect(books: Sequence[Path], each: int) -> list[Row]:
    similarity = WordSimilarity(LocalEmbedder("minilm"))
    rows = []
    for number, docs in enumerate(books):
        passages = read_book(docs).passages
        told = [*cases(passages, each=each), *handwritten(passages)]
        rows += [Row(number, case, await _signals(case, similarity)) for case in told]
    return rows


async def _signals(case: Case, similarity: WordSimilarity) -> ClaimFeatures | None:
    hits = [Hit(passage, 1, 0.5, 0.9) for passage in case.passages]
    weighed = await compare_claim(parse_claim(without_line_mark(case.claim)), hits, similarity)
    return weighed[0].signals if weighed else None


def fit(rows: Sequence[Row]) -> Weights:
    """Every kind counts the same, however many sentences it has."""
    used = [row for row in rows if row.signals and row.case.kind not in UNSEEN]
    x = np.array([[1.0, *astuple(row.signals)] for row in used])
    y = np.array([row.case.true for row in used], dtype=float)
    sizes = Counter((row.case.true, row.case.kind) for row in used)
    kinds = Counter(true for true, _ in sizes)
    share = np.array(
        [
            len(used)
            / kinds[row.case.true]
            / sizes[row.case.true, row.case.kind]
            * (1 if row.case.true else LIE_COSTS)
            for row in used
        ]
    ) / (1 + LIE_COSTS)
    weights = np.zeros(x.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(-(x @ weights)))
        gradient = x.T @ (share * (y - p)) - RIDGE * weights
        hessian = (x * (share * p * (1 - p))[:, None]).T @ x + RIDGE * np.eye(len(weights))
        step = np.linalg.solve(hessian, gradient)
        weights += step
        if np.abs(step).max() < 1e-9:
            break
    bias, *each = (round(float(weight), 2) for weight in weights)
    return Weights(bias, ClaimFeatures(*each))


def odds_of(row: Row, weights: Weights) -> float:
    return weights.odds(row.signals) if row.signals else 0.0


def report(rows: Sequence[Row], odds: np.ndarray) -> None:
    shown = odds >= 0.5
    for true, title in ((True, "true"), (False, "lies")):
        print(f"\n| {title} | sentences | {'kept' if true else 'blocked'} |\n|---|---|---|")
        kinds = dict.fromkeys(row.case.kind for row in rows if row.case.true is true)
        for kind in [*kinds, None]:
            mine = np.array(
                [row.case.true is true and kind in (None, row.case.kind) for row in rows]
            )
            right = shown[mine] == true
            print(f"| {kind or '**all**'} | {mine.sum()} | {right.mean():.3f} |")
    by_hand = np.array([row.case.kind.startswith("by hand") for row in rows])
    true = np.array([row.case.true for row in rows])
    for name, some in (("by rule", ~by_hand), ("by hand", by_hand)):
        wins = odds[some & true][:, None] > odds[some & ~true][None, :]
        print(f"AUROC {name}: {wins.mean():.3f}")


if __name__ == "__main__":
    main()
