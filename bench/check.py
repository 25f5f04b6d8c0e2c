"""Fits the weights of the verifier, and counts what it keeps and what it blocks.

    python -m bench.check --book DOCS [--book DOCS …] [--drafts DRAFTS.jsonl] [--each 16] [--ablate]

Every book's sentences are told truly and untruly by the rules of
``tests/grounding/claim_mutations.py``; ``--drafts`` adds labelled sentences as a language model
writes them (rows of ``passages`` and ``sentences``). Each figure is of a book, or of a fifth of
the drafts' questions, that the weights were not fitted on. The kinds in UNSEEN, and the sentences
written by hand, are in no fit. ``--ablate`` also reports the figures without each feature. The
last lines belong into ``src/bythebook/grounding/entailment.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np
from tests.grounding.claim_mutations import Case, cases
from tests.grounding.handwritten import handwritten
from training.metrics import auroc

from bythebook.chunking.passages import passage_of_selection
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
from bythebook.providers.reader import LocalReader
from bythebook.retrieval.reranking import log_odds
from bythebook.types import Hit, Passage

UNSEEN = {"synonym, unseen", "by hand"}
LIE_COSTS = 1.4  # times as much to show a lie as to withhold a truth
DRAFTS = "drafts"
FOLDS = 5
READ_NAMES = ("uncovered", "names", "numbers", "flips", "clashes", "exchanged", "support")
READ_LIE_COSTS = 2.0
READ_SHIFT = -1.2  # log odds: chosen so that the lies about the sample book stay blocked
RIDGE = 0.5


@dataclass(frozen=True)
class Row:
    fold: str  # rows of one fold are fitted or tested together
    kind: str
    true: bool
    signals: ClaimFeatures | None  # None: no passage has any of its words
    support: float  # log odds of the reading model's probability

    @property
    def group(self) -> str:
        if self.fold.startswith(DRAFTS):
            return DRAFTS
        return "by hand" if self.kind.startswith("by hand") else "by rule"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--book", type=Path, action="append", required=True)
    parser.add_argument("--drafts", type=Path)
    parser.add_argument("--each", type=int, default=16)
    parser.add_argument("--ablate", action="store_true")
    options = parser.parse_args()
    rows = asyncio.run(collect(options.book, options.drafts, options.each))
    print("\nreading model alone")
    report(rows, np.array([row.support for row in rows]))
    print("\nwords alone")
    report(rows, cross_validate(rows, NAMES, ()))
    print("\nboth")
    scores = cross_validate(rows, NAMES, READ_NAMES)
    report(rows, scores)
    report_kinds(rows, scores)
    if options.ablate:
        for name in NAMES:
            print(f"\nwithout {name}")
            names = [other for other in NAMES if other != name]
            report(rows, cross_validate(rows, names, [n for n in READ_NAMES if n != name]))
    print(f"\nWEIGHTS = {weights_of(fit_words(rows, NAMES), NAMES)}")
    print(f"READ_WEIGHTS = {weights_of(fit_reading(rows, READ_NAMES), READ_NAMES)}")


async def collect(books: Sequence[Path], drafts: Path | None, each: int) -> list[Row]:
    similarity, reader = WordSimilarity(LocalEmbedder("minilm")), LocalReader()

    async def row(fold: str, case: Case) -> Row:
        hits = [Hit(passage, 1, 0.5, 0.9) for passage in case.passages]
        claim = parse_claim(without_line_mark(case.claim))
        weighed = await compare_claim(claim, hits, similarity)
        (support,) = await reader.support([case.claim], case.passages)
        signals = weighed[0].signals if weighed else None
        return Row(fold, case.kind, case.true, signals, log_odds(support.probability))

    rows = []
    for docs in books:
        passages = read_book(docs).passages
        told: Iterable[Case] = (*cases(passages, each=each), *handwritten(passages))
        rows += [await row(str(docs), case) for case in told]
    for number, case in read_drafts(drafts) if drafts else ():
        rows.append(await row(f"{DRAFTS} {number % FOLDS}", case))
    return rows


def read_drafts(path: Path) -> Iterator[tuple[int, Case]]:
    for number, line in enumerate(path.read_text("utf-8").splitlines()):
        draft = json.loads(line)
        passages = tuple(_passage(p["text"], p["section"].split(" > ")) for p in draft["passages"])
        for sentence in draft["sentences"]:
            yield number, Case(sentence["kind"], sentence["supported"], sentence["text"], passages)


def _passage(text: str, headings: Sequence[str]) -> Passage:
    passage = passage_of_selection(text, url=None)
    place = replace(passage.place, title=headings[0], section=tuple(headings[1:]))
    return replace(passage, place=place)


def matrix(rows: Sequence[Row], names: Sequence[str]) -> np.ndarray:
    nothing = ClaimFeatures(strange=5, uncovered=1)
    table = [[*astuple(row.signals or nothing), row.support] for row in rows]
    columns = [[*NAMES, "support"].index(name) for name in names]
    chosen: np.ndarray = np.c_[np.ones(len(rows)), np.array(table)[:, columns]]
    return chosen


def fit_words(rows: Sequence[Row], names: Sequence[str]) -> np.ndarray:
    """Fit on the sentences made by rule; every kind counts the same."""
    used = [r for r in rows if r.signals and r.kind not in UNSEEN and r.group == "by rule"]
    sizes = Counter((row.true, row.kind) for row in used)
    kinds = Counter(true for true, _ in sizes)
    shares = [len(used) / kinds[row.true] / sizes[row.true, row.kind] for row in used]
    return fit(used, names, shares, LIE_COSTS)


def fit_reading(rows: Sequence[Row], names: Sequence[str]) -> np.ndarray:
    """Fit on sentences with words that the passage lacks; rules and drafts count the same."""
    used = [row for row in rows if is_reworded(row) and row.group != "by hand"]
    sizes = Counter((row.group, row.true) for row in used)
    shares = [len(used) / len(sizes) / sizes[row.group, row.true] for row in used]
    fitted = fit(used, names, shares, READ_LIE_COSTS)
    fitted[0] += READ_SHIFT
    return fitted


def is_reworded(row: Row) -> bool:
    return row.signals is None or row.signals.uncovered > 0


def fit(
    rows: Sequence[Row], names: Sequence[str], shares: Sequence[float], lie_costs: float
) -> np.ndarray:
    x, y = matrix(rows, names), np.array([row.true for row in rows], dtype=float)
    share = np.array(shares) * np.where(y == 1, 1, lie_costs) / (1 + lie_costs)
    weights = np.zeros(x.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(-(x @ weights).clip(-30, 30)))
        gradient = x.T @ (share * (y - p)) - RIDGE * weights
        hessian = (x * (share * p * (1 - p))[:, None]).T @ x + RIDGE * np.eye(len(weights))
        step = np.linalg.solve(hessian, gradient)
        weights += step
        if np.abs(step).max() < 1e-9:
            break
    return weights


def weights_of(fitted: np.ndarray, names: Sequence[str]) -> Weights:
    bias, *each = (round(float(weight), 2) for weight in fitted)
    found = dict(zip(names, each, strict=True))
    support = found.pop("support", 0.0)
    return Weights(bias, ClaimFeatures(**found), support)


def cross_validate(
    rows: Sequence[Row], names: Sequence[str], read_names: Sequence[str]
) -> np.ndarray:
    scores, folds = np.zeros(len(rows)), np.array([row.fold for row in rows])
    reworded = np.array([is_reworded(row) for row in rows])
    for fold in set(folds):
        seen = [row for row in rows if row.fold != fold]
        mine = folds == fold
        scores[mine] = matrix(rows, names)[mine] @ fit_words(seen, names)
        if read_names:
            read = matrix(rows, read_names)[mine] @ fit_reading(seen, read_names)
            scores[mine] = np.where(reworded[mine], np.maximum(scores[mine], read), scores[mine])
    return scores


def report(rows: Sequence[Row], scores: np.ndarray) -> None:
    true = np.array([row.true for row in rows])
    for fold in [*dict.fromkeys(row.fold for row in rows if row.group != DRAFTS), DRAFTS]:
        for group in ("by rule", "by hand", DRAFTS):
            mine = np.array([row.group == group and row.fold.startswith(fold) for row in rows])
            if not mine.any():
                continue
            kept, blocked = scores[mine & true] > 0, scores[mine & ~true] <= 0
            figure = auroc(scores[mine].tolist(), true[mine].tolist())
            print(
                f"{fold} {group}: {mine.sum()} sentences, AUROC {figure:.3f}, "
                f"true kept {kept.mean():.3f}, false blocked {blocked.mean():.3f}"
            )


def report_kinds(rows: Sequence[Row], scores: np.ndarray) -> None:
    for true, title in ((True, "true"), (False, "lies")):
        print(f"\n| {title} | sentences | {'kept' if true else 'blocked'} |\n|---|---|---|")
        for kind in sorted({row.kind for row in rows if row.true is true}):
            mine = np.array([row.true is true and row.kind == kind for row in rows])
            print(f"| {kind} | {mine.sum()} | {((scores[mine] > 0) == true).mean():.3f} |")


if __name__ == "__main__":
    main()
