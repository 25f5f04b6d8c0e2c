"""Fits the weights and thresholds of the verifier, and counts what it keeps and what it blocks.

    python -m bench.check --book DOCS [--book DOCS …] --claims CLAIMS.jsonl[.gz]
        [--drafts DRAFTS.jsonl] [--each 16] [--ablate]

Run it after every change of the reading model. Every book's sentences are told truly and untruly by
the rules of ``tests/grounding/claim_mutations.py``. ``--claims`` adds labelled sentences that are
no part of the reading model's training (rows of ``premise``, ``claim``, ``label``: "entail" or
another). ``--drafts`` adds labelled sentences as a language model writes them (rows of ``passages``
and ``sentences``); they are only counted, never fitted on.

The weights of words are fitted on the sentences made by rule; each figure is of a book that they
were not fitted on. The kinds in UNSEEN, and the sentences written by hand, are in no fit of them.
The least support by the reading model is the lowest value with which at most FALSE_CLAIMS of the
false claims are shown (READ_REWORDED), and at most MORE_BY_RULE and MORE_BY_HAND more of the lies
by rule and by hand than without the reading model (READ_EDITED). LEAST_RELEVANCE is the relevance
that QUOTED of the true claims reach. "As shipped" are the figures of the values in the code.
``--ablate`` also reports the figures without each feature. The last lines belong into
``src/bythebook/grounding/claim_probability.py`` and ``quotation.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np
from tests.grounding.claim_mutations import Case, cases
from tests.grounding.handwritten import handwritten
from training.metrics import auroc

from bythebook.grounding.claim_parser import TermKind, parse_claim
from bythebook.grounding.claim_probability import (
    NAMES,
    ClaimFeatures,
    Weights,
    is_readable,
    is_reworded,
    is_vetoed,
)
from bythebook.grounding.entailment import WordSimilarity, compare_claim
from bythebook.grounding.framing import without_connective
from bythebook.grounding.quotation import find_quotations
from bythebook.grounding.sentence_judge import keys_of_evidence, missing_terms
from bythebook.ingestion.read_book import read_book
from bythebook.providers.embeddings.local import LocalEmbedder
from bythebook.providers.reader import LocalReader
from bythebook.retrieval.score import log_odds
from bythebook.text.selections import passage_of_selection
from bythebook.types import Hit, Passage

UNSEEN = {"synonym, unseen", "by hand"}
LIE_COSTS = 1.4  # times as much to show a lie as to withhold a truth
DRAFTS = "drafts"
CLAIMS = "claims"
MOST_CLAIMS = 800
FALSE_CLAIMS = 0.05
MORE_BY_RULE = 0.02
MORE_BY_HAND = 0.03
QUOTED = 0.96
RIDGE = 0.5


@dataclass(frozen=True)
class Row:
    fold: str  # rows of one fold are fitted or tested together
    kind: str
    true: bool
    signals: ClaimFeatures | None  # None: no passage has any of its words
    support: float  # log odds of the reading model's probability
    is_refuted: bool = False  # its names or numbers are in no passage
    relevance: float = 0.0  # of the quotation that would take its place
    shipped: float = 0.0  # log odds by the values in the code

    @property
    def is_readable(self) -> bool:
        """Return whether the reading model has a say."""
        return self.signals is not None and is_readable(self.signals) and not self.is_refuted

    @property
    def group(self) -> str:
        if self.fold in (DRAFTS, CLAIMS):
            return self.fold
        return "by hand" if self.kind.startswith("by hand") else "by rule"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--book", type=Path, action="append", required=True)
    parser.add_argument("--claims", type=Path, required=True)
    parser.add_argument("--drafts", type=Path)
    parser.add_argument("--each", type=int, default=16)
    parser.add_argument("--ablate", action="store_true")
    options = parser.parse_args()
    sets = [*told(options.book, options.each), (CLAIMS, read_claims(options.claims))]
    if options.drafts:
        sets.append((DRAFTS, read_drafts(options.drafts)))
    rows = asyncio.run(collect(sets))
    print("\nreading model alone")
    report(rows, np.array([row.support for row in rows]))
    print("\nas shipped")
    report(rows, np.array([-9.0 if row.is_refuted else row.shipped for row in rows]))
    print("\nwords alone")
    words = cross_validate(rows, NAMES)
    report(rows, words)
    print("\nboth")
    reworded, edited = fit_support(rows, words)
    scores = with_support(rows, words, reworded, edited)
    report(rows, scores)
    report_kinds(rows, scores)
    if options.ablate:
        for name in NAMES:
            print(f"\nwithout {name}")
            report(rows, cross_validate(rows, [other for other in NAMES if other != name]))
    relevance = [row.relevance for row in rows if row.group == CLAIMS and row.true]
    print(f"\nWEIGHTS = {weights_of(fit_words(rows, NAMES), NAMES)}")
    print(f"READ_REWORDED = {probability(reworded):.3f}\nREAD_EDITED = {probability(edited):.3f}")
    print(f"LEAST_RELEVANCE = {np.quantile(relevance, 1 - QUOTED):.2f}")


def told(books: Iterable[Path], each: int) -> Iterator[tuple[str, list[Case]]]:
    for docs in books:
        passages = read_book(docs).passages
        yield str(docs), [*cases(passages, each=each), *handwritten(passages)]


async def collect(sets: Iterable[tuple[str, Iterable[Case]]]) -> list[Row]:
    similarity, reader = WordSimilarity(LocalEmbedder("minilm")), LocalReader()

    async def row(fold: str, case: Case) -> Row:
        hits = [Hit(passage, 1, 0.5, 0.9) for passage in case.passages]
        text = without_connective(case.claim)
        claim = parse_claim(text)
        (support,) = await reader.support([text], case.passages)
        weighed = await compare_claim(claim, hits, similarity, support.probability)
        quotations = []
        if fold == CLAIMS:
            quotations = await find_quotations(text, hits, similarity, reader)
        signals = weighed[0].signals if weighed else None
        return Row(
            fold,
            case.kind,
            case.true,
            signals,
            log_odds(support.probability),
            bool(missing_terms(claim, keys_of_evidence(hits), (TermKind.NUMBER, TermKind.NAME))),
            quotations[0].relevance if quotations else 0.0,
            log_odds(weighed[1]) if weighed else -9.0,
        )

    return [await row(fold, case) for fold, told_cases in sets for case in told_cases]


def read_drafts(path: Path) -> Iterator[Case]:
    for line in path.read_text("utf-8").splitlines():
        draft = json.loads(line)
        passages = tuple(_passage(p["text"], p["section"].split(" > ")) for p in draft["passages"])
        for sentence in draft["sentences"]:
            yield Case(sentence["kind"], sentence["supported"], sentence["text"], passages)


def read_claims(path: Path) -> Iterator[Case]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    rows = [json.loads(line) for line in text.splitlines()]
    random.Random(3).shuffle(rows)
    for row in rows[:MOST_CLAIMS]:
        passage = passage_of_selection(row["premise"], url=None)
        yield Case(CLAIMS, row["label"] == "entail", row["claim"], (passage,))


def _passage(text: str, headings: Sequence[str]) -> Passage:
    passage = passage_of_selection(text, url=None)
    place = replace(passage.place, title=headings[0], section=tuple(headings[1:]))
    return replace(passage, place=place)


def matrix(rows: Sequence[Row], names: Sequence[str]) -> np.ndarray:
    nothing = ClaimFeatures(strange=5, uncovered=1)
    table = [astuple(row.signals or nothing) for row in rows]
    columns = [NAMES.index(name) for name in names]
    chosen: np.ndarray = np.c_[np.ones(len(rows)), np.array(table)[:, columns]]
    return chosen


def fit_words(rows: Sequence[Row], names: Sequence[str]) -> np.ndarray:
    """Fit on the sentences made by rule; every kind counts the same."""
    used = [r for r in rows if r.signals and r.kind not in UNSEEN and r.group == "by rule"]
    sizes = Counter((row.true, row.kind) for row in used)
    kinds = Counter(true for true, _ in sizes)
    shares = [len(used) / kinds[row.true] / sizes[row.true, row.kind] for row in used]
    return fit(used, names, shares, LIE_COSTS)


def fit_support(rows: Sequence[Row], words: np.ndarray) -> tuple[float, float]:
    """Return the least log odds of support, of reworded sentences and of those nearly repeated."""
    grid = np.arange(-1.5, 5.01, 0.05)

    def shown(group: str, reworded: float, edited: float) -> float:
        mine = np.array([row.group == group and not row.true for row in rows])
        scores = with_support(rows, words, reworded, edited)
        return float((scores[mine] > 0).mean()) if mine.any() else 0.0

    reworded = next((float(a) for a in grid if shown(CLAIMS, float(a), 9.0) <= FALSE_CLAIMS), 9.0)
    most = {
        "by rule": shown("by rule", 9.0, 9.0) + MORE_BY_RULE,
        "by hand": shown("by hand", 9.0, 9.0) + MORE_BY_HAND,
    }
    for edited in map(float, grid):
        if all(shown(group, reworded, edited) <= limit for group, limit in most.items()):
            return reworded, edited
    return reworded, 9.0


def with_support(
    rows: Sequence[Row], words: np.ndarray, reworded: float, edited: float
) -> np.ndarray:
    """Return the scores, with the reading model where it has a say; above 0 is shown."""
    scores = []
    for row, score in zip(rows, words, strict=True):
        if row.is_refuted:
            scores.append(-9.0)
            continue
        by_words = float(score)
        if row.signals and is_vetoed(row.signals, probability(row.support)):
            by_words = min(by_words, row.support)
        if row.signals and row.is_readable:
            least = reworded if is_reworded(row.signals) else edited
            by_words = max(by_words, row.support - least)
        scores.append(by_words)
    return np.array(scores)


def probability(odds: float) -> float:
    return float(1 / (1 + np.exp(-odds)))


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
    return Weights(bias, ClaimFeatures(**dict(zip(names, each, strict=True))))


def cross_validate(rows: Sequence[Row], names: Sequence[str]) -> np.ndarray:
    scores, folds = np.zeros(len(rows)), np.array([row.fold for row in rows])
    table = matrix(rows, names)
    for fold in set(folds):
        mine = folds == fold
        scores[mine] = table[mine] @ fit_words([row for row in rows if row.fold != fold], names)
    return scores


def report(rows: Sequence[Row], scores: np.ndarray) -> None:
    true = np.array([row.true for row in rows])
    for fold in dict.fromkeys(row.fold for row in rows):
        for group in ("by rule", "by hand", CLAIMS, DRAFTS):
            mine = np.array([row.group == group and row.fold == fold for row in rows])
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
