"""Fits the calibrated score of an embedder on a book with known questions, and prints its weights.

    python bench/fit_calibration.py DOCS QA.jsonl [OFFBOOK.jsonl] --home DIR

Each question's candidates are weighed as a search would weigh them; a candidate is right when it
stands in the question's own section. Cross-validated by page: every figure is of pages that the
weights never saw. The printed row belongs into ``src/bythebook/index/calibrate.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bythebook.assemble import Library, open_library
from bythebook.book.site import read_book
from bythebook.index.calibrate import MOST_BEHIND, Calibration
from bythebook.model import Hit, Question, Signals
from bythebook.retrieve.search import search
from bythebook.settings import load_settings

NAMES = ("passage_cosine", "unit_cosine", "term_weight", "coverage")
CANDIDATES = 20


@dataclass(frozen=True)
class Case:
    kind: str
    page: str  # "" for off-book questions
    features: np.ndarray  # (candidates, signals)
    right: np.ndarray  # (candidates,)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("docs", type=Path)
    parser.add_argument("questions", type=Path, nargs="+")
    parser.add_argument("--home", type=Path, required=True)
    options = parser.parse_args()
    cases = asyncio.run(_collect(options.docs, options.questions, options.home))
    folds = sorted({case.page for case in cases if case.page})
    scored = []
    for number, page in enumerate(folds):
        test = [
            i
            for i, case in enumerate(cases)
            if case.page == page or (not case.page and i % len(folds) == number)
        ]
        fold = _fit([case for i, case in enumerate(cases) if i not in set(test)])
        scored.extend((cases[i], _scores(cases[i].features, fold)) for i in test)
    _report(scored)
    print(_fit(cases))


async def _collect(docs: Path, files: Sequence[Path], home: Path) -> list[Case]:
    library = open_library(load_settings({"home": home}), new=True)
    book = read_book(docs)
    await library.ingest(book, on_progress=lambda done, total: print(f"\r{done}/{total}", end=""))
    cases = []
    for file in files:
        for line in file.read_text("utf-8").splitlines():
            cases.append(await _case(json.loads(line), library))
    return cases


async def _case(row: dict[str, object], library: Library) -> Case:
    question = Question(str(row["question"]), top_k=CANDIDATES)
    index = (await library.desk()).index
    neutral = replace(index, calibration=Calibration(4, 7, 4, 7, 0, 0.1, 0))
    hits = (await search(question, neutral)).hits
    file = str(row.get("file") or "")
    answerable = row.get("kind") == "answerable"
    right = [answerable and _is_right(hit, file, str(row.get("heading"))) for hit in hits]
    features = np.array([_features(hit.signals) for hit in hits])
    return Case(str(row["kind"]), file, features, np.array(right, dtype=float))


def _is_right(hit: Hit, file: str, heading: str) -> bool:
    place = hit.passage.place
    return file.endswith(place.file) and heading in place.section


def _features(signals: Signals) -> list[float]:
    return [getattr(signals, name) for name in NAMES]


def _fit(cases: Sequence[Case]) -> Calibration:
    """Order first, odds second; adversarial questions are left out of both."""
    used = [case for case in cases if case.kind != "adversarial_unanswerable"]
    order = _fit_order(used)
    x = np.vstack([_position(case.features, order) for case in used])
    bias, slope, behind = _fit_odds(x, np.concatenate([case.right for case in used]))
    return Calibration(*(float(w) for w in order), bias, slope, -behind)


def _fit_order(cases: Sequence[Case], ridge: float = 1.0) -> np.ndarray:
    """Conditional logit: the right passage should have the most merit of its question."""
    right = [case for case in cases if case.right.any()]
    weights = np.zeros(len(NAMES))
    for _ in range(100):
        gradient, hessian = -ridge * weights, ridge * np.eye(len(NAMES))
        for case in right:
            p = np.exp(case.features @ weights - (case.features @ weights).max())
            p /= p.sum()
            mean = case.features.T @ p
            gradient = gradient + case.features.T @ (case.right / case.right.sum() - p)
            hessian += (case.features * p[:, None]).T @ case.features - np.outer(mean, mean)
        step = np.linalg.solve(hessian, gradient)
        weights = weights + step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def _position(features: np.ndarray, order: np.ndarray) -> np.ndarray:
    merit = features @ order
    return np.stack([merit, np.minimum(merit.max() - merit, MOST_BEHIND)], axis=1)


def _fit_odds(x: np.ndarray, y: np.ndarray, ridge: float = 1e-2) -> tuple[float, float, float]:
    """Logistic regression by Newton's method."""
    x = np.hstack([np.ones((len(x), 1)), x])
    weights = np.zeros(x.shape[1])
    for _ in range(60):
        p = 1 / (1 + np.exp(-x @ weights))
        gradient = x.T @ (y - p) - ridge * weights
        hessian = (x * (p * (1 - p))[:, None]).T @ x + ridge * np.eye(len(weights))
        step = np.linalg.solve(hessian, gradient)
        weights += step
        if np.abs(step).max() < 1e-9:
            break
    return float(weights[0]), float(weights[1]), float(weights[2])


def _scores(features: np.ndarray, calibration: Calibration) -> np.ndarray:
    return np.array(calibration.scores([Signals(*row) for row in features]))


def _report(scored: list[tuple[Case, np.ndarray]]) -> None:
    answerable = [(case, p) for case, p in scored if case.kind == "answerable"]
    ranks = [_rank(case, p) for case, p in answerable]
    print(f"\nanswerable {len(ranks)}  hit@1 {np.mean([r == 1 for r in ranks]):.3f}", end="  ")
    print(f"hit@5 {np.mean([r <= 5 for r in ranks]):.3f}", end="  ")
    print(f"MRR@10 {np.mean([1 / r if r <= 10 else 0 for r in ranks]):.3f}")
    best = [p.max() for _, p in answerable]
    for kind in ("off_book", "adversarial_unanswerable"):
        others = [p.max() for case, p in scored if case.kind == kind]
        if others:
            print(f"AUROC answerable vs {kind}: {_auroc(best, others):.3f}")
            for floor in (0.4, 0.5, 0.7, 0.75):
                kept, refused = np.mean(np.array(best) >= floor), np.mean(np.array(others) < floor)
                print(f"  floor {floor}: answered {kept:.3f}, {kind} refused {refused:.3f}")
    usual = [(case, p) for case, p in scored if case.kind != "adversarial_unanswerable"]
    print(f"expected calibration error of the best hit: {_calibration_error(usual):.3f}")


def _rank(case: Case, p: np.ndarray) -> float:
    order = np.argsort(-p, kind="stable")
    found = np.flatnonzero(case.right[order])
    return float(found[0] + 1) if len(found) else float("inf")


def _auroc(right: Sequence[float], wrong: Sequence[float]) -> float:
    a, b = np.array(right)[:, None], np.array(wrong)[None, :]
    return float(np.mean((a > b) + 0.5 * (a == b)))


def _calibration_error(scored: list[tuple[Case, np.ndarray]], bins: int = 10) -> float:
    p = np.array([probabilities.max() for _, probabilities in scored])
    y = np.array([case.right[probabilities.argmax()] for case, probabilities in scored])
    which = np.minimum((p * bins).astype(int), bins - 1)
    gaps = [
        abs(p[which == b].mean() - y[which == b].mean()) * (which == b).sum() for b in set(which)
    ]
    return float(sum(gaps) / len(p))


if __name__ == "__main__":
    main()
