"""Fits the score that combines retrieval and the reading model, and reports what it separates.

    python -m bench.fit_reader --book DOCS QA.jsonl [--book …] --homes DIR [--test DOCS QA.jsonl …]

A hit is right if it stands in the question's own section. Every book counts the same. The weights
are fitted on the books given by ``--book``, the figures are of those given by ``--test``. The last
line belongs into ``src/bythebook/retrieval/reranking.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from training.metrics import auroc

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.retrieval.reranking import (
    CALIBRATION,
    CALIBRATION_OF_FACTS,
    READ_HITS,
    ReaderCalibration,
    log_odds,
    penalty_of,
)
from bythebook.retrieval.search import search
from bythebook.types import Hit, Question

# Log odds by which a hit counts as right sooner than the fit says: an answer that is not shown is
# worse than one that only comes close.
LENIENT = 0.8


@dataclass(frozen=True)
class Case:
    book: int
    kind: str
    features: np.ndarray  # (hits, 2): log odds of the retrieval score and of the reading
    right: np.ndarray  # (hits,)
    is_fact: bool = False  # a name, number or date is asked for
    penalty: float = 0.0  # for names and rare words of the question

    @property
    def shipped_odds(self) -> np.ndarray:
        """Return the log odds that the product gives each hit."""
        weights = CALIBRATION_OF_FACTS if self.is_fact else CALIBRATION
        odds: np.ndarray = weights.bias + self.features @ [weights.retrieval, weights.reading]
        return odds - self.penalty


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--book", type=Path, nargs="+", action="append", required=True)
    parser.add_argument("--test", type=Path, nargs="+", action="append", default=[])
    parser.add_argument("--homes", type=Path, required=True)
    parser.add_argument("--adversarial", type=float, default=1.0, help="weight of these questions")
    options = parser.parse_args()
    books = [*options.book, *options.test]
    cases = [
        case
        for at, (docs, *qa) in enumerate(books)
        for case in collect(at, docs, qa, options.homes)
    ]
    fitted = fit([case for case in cases if case.book < len(options.book)], options.adversarial)
    for at, (docs, *_) in enumerate(books):
        print(f"\n{docs}")
        report([case for case in cases if case.book == at], fitted)
    print(f"\n{fitted}")


def collect(number: int, docs: Path, files: list[Path], homes: Path) -> list[Case]:
    home = homes / "-".join(docs.parts[-3:]).strip("/")
    book = Book(load_settings({"home": home}), new=True)
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]

    async def ask() -> list[Case]:
        async with book:
            await book.ingest(docs)
            context = await book.context()
            reader, index = context.index.reader, replace(context.index, reader=None)
            assert reader is not None
            cases = []
            for row in rows:
                if row.get("selected_text"):
                    continue
                findings = await search(Question(str(row["question"])), index)
                hits, question = findings.hits[:READ_HITS], findings.question
                read = await reader.read(str(row["question"]), [hit.passage for hit in hits])
                odds = [
                    (log_odds(hit.score), log_odds(reading.probability))
                    for hit, reading in zip(hits, read, strict=True)
                ]
                answerable = not row.get("is_impossible", not row.get("answerable", True))
                right = [answerable and is_right(hit, row) for hit in hits]
                features = np.array(odds).reshape(-1, 2)
                kind = row["kind"] if not answerable else "answerable"
                case = Case(number, kind, features, np.array(right, dtype=float))
                penalty = penalty_of(question, hits)
                cases.append(replace(case, is_fact=question.type.fact, penalty=penalty))
            return cases

    return asyncio.run(ask())


def is_right(hit: Hit, row: dict[str, Any]) -> bool:
    place = hit.passage.place
    headings = (*place.section, place.title)
    gold = row.get("gold") or [
        {"file": row.get("file"), "heading": row.get("heading", row.get("section"))}
    ]
    return any(str(g["file"]).endswith(place.file) and g["heading"] in headings for g in gold)


def fit(cases: list[Case], adversarial: float) -> ReaderCalibration:
    sizes = np.bincount([case.book for case in cases])
    x = np.concatenate([np.c_[np.ones(len(case.features)), case.features] for case in cases])
    y = np.concatenate([case.right for case in cases])
    weight = np.concatenate(
        [
            np.full(
                len(case.right),
                len(cases) / sizes[case.book] * (adversarial if "adversarial" in case.kind else 1),
            )
            for case in cases
        ]
    )
    weights = np.zeros(3)
    for _ in range(50):
        p = 1 / (1 + np.exp(-(x @ weights)))
        gradient = x.T @ (weight * (y - p)) - 0.01 * weights
        hessian = (x * (weight * p * (1 - p))[:, None]).T @ x + 0.01 * np.eye(3)
        weights += np.linalg.solve(hessian, gradient)
    weights[0] += LENIENT
    return ReaderCalibration(*(round(float(value), 2) for value in weights))


def report(cases: list[Case], fitted: ReaderCalibration) -> None:
    def odds_of(case: Case, weights: ReaderCalibration | None) -> np.ndarray:
        if weights is None:
            return case.shipped_odds
        odds: np.ndarray = weights.bias + case.features @ [weights.retrieval, weights.reading]
        return odds

    answerable = [case for case in cases if case.kind == "answerable" and len(case.right)]
    for name, weights in (
        ("retrieval", ReaderCalibration(0, 1, 0)),
        ("reader", ReaderCalibration(0, 0, 1)),
        ("both", fitted),
        ("product", None),
    ):
        scores = np.array([odds_of(case, weights).max() for case in answerable])
        floor = np.quantile(scores, 0.05)
        top = np.mean([case.right[odds_of(case, weights).argmax()] for case in answerable])
        print(f"{name}: best hit right {top:.3f}, answered at .5 {np.mean(scores > 0):.3f}")
        for kind in sorted({case.kind for case in cases} - {"answerable"}):
            others = [case for case in cases if case.kind == kind]
            other = np.array([odds_of(case, weights).max(initial=-20) for case in others])
            figure = auroc([*scores, *other], [True] * len(scores) + [False] * len(other))
            print(
                f"    {kind}: AUROC {figure:.3f}, refused with 95 % answered "
                f"{np.mean(other < floor):.2f}, refused at .5 {np.mean(other <= 0):.2f}"
            )


if __name__ == "__main__":
    main()
