"""Fits the calibrated score of an embedder on books with known questions.

    python bench/fit_calibration.py --book DOCS QA.jsonl [QA2.jsonl …] --book … --homes DIR

Each question's candidates are weighed as a search would weigh them; a candidate is right when it
stands in the question's own section. Every book counts the same, however many questions it has.
The figures are cross-validated by page: of pages whose questions the weights never saw. The last
line belongs into ``src/bythebook/retrieval/calibration.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.ingestion.read_book import read_book
from bythebook.retrieval.calibration import MOST_GAP, MOST_STRANGERS, Calibration, Reading
from bythebook.retrieval.search import SearchContext, search
from bythebook.types import Hit, Question, Signals, VectorState

FOR = ("passage_cosine", "unit_cosine", "term_weight", "coverage")  # the fusion score
AGAINST = ("missing_rare_term", "negation_mismatch", "unmatched_entities")
CANDIDATES = 20
FOLDS = 10
USUAL = {"answerable", "off_book"}  # what is expected of readers, and what calibration is judged on
FOOLING = 0.05  # the share of questions written to fool that readers are expected to ask
# Log odds by which a place counts as found sooner than the fit says: an answer that is not shown
# is a greater pity than one that leads astray. Not where the words alone are asked.
LENIENT = 0.7
CAPS = [np.inf] * (len(FOR) + len(AGAINST) - 1) + [MOST_STRANGERS]


@dataclass(frozen=True)
class Case:
    book: int
    kind: str
    page: str
    features: np.ndarray  # (candidates, signals)
    right: np.ndarray  # (candidates,)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--book", type=Path, nargs="+", action="append", required=True)
    parser.add_argument("--homes", type=Path, required=True)
    parser.add_argument("--embedder", default="local:minilm")
    parser.add_argument("--words", action="store_true", help="search by words alone")
    options = parser.parse_args()
    cases: list[Case] = []
    for number, (docs, *questions) in enumerate(options.book):
        home = options.homes / str(number)
        library = Book(load_settings({"home": home, "embedder": options.embedder}), new=True)
        vectors = VectorState.PENDING if options.words else VectorState.READY
        cases += asyncio.run(collect(number, docs, questions, library, vectors))
    lenient = 0.0 if options.words else LENIENT
    scored = cross_validate(cases, lenient)
    for number, (docs, *_) in enumerate(options.book):
        print(f"\n{docs}")
        report([(case, scores) for case, scores in scored if case.book == number])
    print(fit(cases, lenient))


async def collect(
    number: int, docs: Path, files: Sequence[Path], library: Book, vectors: VectorState
) -> list[Case]:
    await library.ingest(read_book(docs))
    index = (await library.context()).index
    neutral = Calibration(4, 7, 4, 7, 0, 0.1, 0, Reading(0, 0, 0, 0, 0, 0, 0, 0))
    index = replace(index, calibration=neutral, vectors=vectors)
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    return [await _case(number, row, index) for row in rows]


async def _case(number: int, row: dict[str, Any], index: SearchContext) -> Case:
    question = Question(str(row["question"]), top_k=CANDIDATES)
    hits = (await search(question, index)).hits
    answerable = row["kind"] == "answerable"
    right = [answerable and _is_right(hit, row) for hit in hits]
    signals = [[getattr(hit.signals, name) for name in (*FOR, *AGAINST)] for hit in hits]
    features = np.array(signals).reshape(-1, len(FOR) + len(AGAINST))
    page = str(row.get("file") or f"none {len(row['question']) % FOLDS}")
    return Case(number, str(row["kind"]), page, features, np.array(right, dtype=float))


def _is_right(hit: Hit, row: dict[str, Any]) -> bool:
    place = hit.passage.place
    heading = row.get("heading") or row.get("section")
    return str(row["file"]).endswith(place.file) and heading in (*place.section, place.heading)


def cross_validate(cases: Sequence[Case], lenient: float) -> list[tuple[Case, np.ndarray]]:
    pages = sorted({(case.book, case.page) for case in cases})
    fold_of = {page: number % FOLDS for number, page in enumerate(pages)}
    scored = []
    for fold in range(FOLDS):
        seen = [case for case in cases if fold_of[case.book, case.page] != fold]
        test = [case for case in cases if fold_of[case.book, case.page] == fold]
        calibration = fit(seen, lenient)
        scored += [(case, scores_of(case.features, calibration)) for case in test]
    return scored


def fit(cases: Sequence[Case], lenient: float) -> Calibration:
    """Order first, then the odds of having found the place, then those of its answering."""
    usual = [case for case in cases if case.kind in USUAL and len(case.features)]
    sizes = Counter(case.book for case in usual)
    weights = [len(usual) / len(sizes) / sizes[case.book] for case in usual]
    order = _fit_order(usual, weights)
    fusion_scores = [_fusion_scores(case, order) for case in usual]
    best = np.array([scores.max() for scores in fusion_scores])
    right = np.array([case.right[m.argmax()] for case, m in zip(usual, fusion_scores, strict=True)])
    odds = _logistic(np.c_[np.ones_like(best), best], right, np.array(weights))
    odds[0] += lenient
    behind = _fit_behind(usual, fusion_scores, weights, odds)
    return Calibration(*map(_rounded, (*order, *odds, behind)), _fit_reading(cases, order))


def _fit_reading(cases: Sequence[Case], order: np.ndarray) -> Reading:
    """Right passages against those of questions written to fool, as many of either."""
    top, right = [], []
    for case in cases:
        if len(case.features) and case.kind in ("answerable", "adversarial_unanswerable"):
            best = _fusion_scores(case, order).argmax()
            if case.right[best] or case.kind != "answerable":
                top.append(np.minimum(case.features[best], CAPS))
                right.append(case.right[best])
    x, y = np.array(top), np.array(right)
    scale = x.std(axis=0) + 1e-9
    sample = np.where(y == 1, len(y) / 2 / y.sum(), len(y) / 2 / max(1.0, (1 - y).sum()))
    bias, *weights = _logistic(np.c_[np.ones(len(y)), x / scale], y, sample, ridge=2.0)
    bias += np.log((1 - FOOLING) / FOOLING)
    return Reading(_rounded(bias), *map(_rounded, np.array(weights) / scale))


def _rounded(weight: float) -> float:
    return round(float(weight), 2)


def _fusion_scores(case: Case, order: np.ndarray) -> np.ndarray:
    return case.features[:, : len(FOR)] @ order


def _fit_order(cases: Sequence[Case], weights: Sequence[float], ridge: float = 10.0) -> np.ndarray:
    """Conditional logit: the right passage should have the highest fusion score of its question.

    The ridge is one of standardised signals: where cosines lie close together, small differences
    count, and the weights they need must not be taken for wild ones.
    """
    spread = np.concatenate([case.features for case in cases]).std(axis=0) + 1e-9
    cases = [replace(case, features=case.features / spread) for case in cases]
    order = np.zeros(len(FOR))
    for _ in range(100):
        gradient, hessian = -ridge * order, ridge * np.eye(len(FOR))
        for case, weight in zip(cases, weights, strict=True):
            if not case.right.any():
                continue
            features, scores = case.features[:, : len(FOR)], _fusion_scores(case, order)
            p = np.exp(scores - scores.max())
            p /= p.sum()
            mean = features.T @ p
            gradient = gradient + weight * features.T @ (case.right / case.right.sum() - p)
            covariance = (features * p[:, None]).T @ features - np.outer(mean, mean)
            hessian = hessian + weight * covariance
        step = np.linalg.solve(hessian, gradient)
        order = order + step
        if np.abs(step).max() < 1e-8:
            break
    return order / spread[: len(FOR)]


def _fit_behind(
    cases: Sequence[Case],
    fusion_scores: Sequence[np.ndarray],
    weights: Sequence[float],
    odds: np.ndarray,
) -> float:
    """What falling behind the best costs, with all else as the best hits have it."""
    offset, gap, right, weight = [], [], [], []
    for case, scores, each in zip(cases, fusion_scores, weights, strict=True):
        for i in np.argsort(-scores)[1:]:
            offset.append(odds[0] + odds[1] * scores[i])
            gap.append(min(scores.max() - scores[i], MOST_GAP))
            right.append(case.right[i])
            weight.append(each)
    fitted = _logistic(
        np.array(gap)[:, None], np.array(right), np.array(weight), offset=np.array(offset)
    )
    return -float(fitted[0])


def _logistic(
    x: np.ndarray,
    y: np.ndarray,
    sample: np.ndarray,
    *,
    offset: np.ndarray | float = 0.0,
    ridge: float = 1e-2,
) -> np.ndarray:
    weights = np.zeros(x.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(-(x @ weights + offset)))
        gradient = x.T @ (sample * (y - p)) - ridge * weights
        hessian = (x * (sample * p * (1 - p))[:, None]).T @ x + ridge * np.eye(len(weights))
        step = np.linalg.solve(hessian, gradient)
        weights = weights + step
        if np.abs(step).max() < 1e-9:
            break
    return weights


def scores_of(features: np.ndarray, calibration: Calibration) -> np.ndarray:
    return np.array(calibration.scores([Signals(*row) for row in features]))


def report(scored: Sequence[tuple[Case, np.ndarray]]) -> None:
    answerable = [(case, p) for case, p in scored if case.kind == "answerable"]
    ranks = [_rank(case, p) for case, p in answerable]
    print(
        f"{len(ranks)} answerable: hit@1 {np.mean([r == 1 for r in ranks]):.3f}, "
        f"hit@5 {np.mean([r <= 5 for r in ranks]):.3f}, "
        f"MRR@10 {np.mean([1 / r if r <= 10 else 0 for r in ranks]):.3f}"
    )
    best = np.array([p.max(initial=0.0) for _, p in answerable])
    for kind in ("off_book", "adversarial_unanswerable"):
        others = np.array([p.max(initial=0.0) for case, p in scored if case.kind == kind])
        if len(others):
            print(f"{len(others)} {kind}: AUROC {_auroc(best, others):.3f}", end="; ")
            for floor in (0.4, 0.5, 0.7, 0.75):
                print(
                    f"at {floor}: {np.mean(best >= floor):.3f} answered, "
                    f"{np.mean(others < floor):.3f} refused",
                    end="; ",
                )
            print()
    usual = [(case, p) for case, p in scored if case.kind in USUAL]
    print(f"expected calibration error of the best hit {_calibration_error(usual):.3f}")


def _rank(case: Case, p: np.ndarray) -> float:
    found = np.flatnonzero(case.right[np.argsort(-p, kind="stable")])
    return float(found[0] + 1) if len(found) else float("inf")


def _auroc(right: np.ndarray, wrong: np.ndarray) -> float:
    above, equal = right[:, None] > wrong[None, :], right[:, None] == wrong[None, :]
    return float(np.mean(above + 0.5 * equal))


def _calibration_error(scored: Sequence[tuple[Case, np.ndarray]], bins: int = 10) -> float:
    p = np.array([scores.max(initial=0.0) for _, scores in scored])
    y = np.array([case.right[scores.argmax()] if len(scores) else 0 for case, scores in scored])
    which = np.minimum((p * bins).astype(int), bins - 1)
    gap = sum(
        abs(p[which == b].mean() - y[which == b].mean()) * (which == b).sum() for b in set(which)
    )
    return float(gap / len(p))


if __name__ == "__main__":
    main()
