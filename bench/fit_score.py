"""Fit the weights that score passages and evidence, and print what they reach on left-out books.

    python -m bench.fit_score signals --home HOME --labels BOOK.jsonl.gz --out BOOK.signals
        [--others OTHER.jsonl.gz …] [--reader MODEL.onnx]
    python -m bench.fit_score fit BOOK.signals … [--write]

``signals`` asks an ingested book each labelled question, and some about other books, and keeps the
signals of what is found. Use a reading model that was not trained on the book. ``fit`` leaves out
each book in turn and prints the figures on it; with ``--write`` it then fits on all of them and
writes ``src/bythebook/retrieval/weights.json``.

A row of labels: ``question`` and ``passages``, each with ``text``, ``units`` (ranges), ``best`` and
``also`` (indices of the units that answer, or may be shown). A question without either is one that
the book does not answer.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from training.metrics import auroc

import bythebook
from bythebook.providers.reader.local import MODELS, LocalReader
from bythebook.retrieval import score, search
from bythebook.retrieval.diversity import without_copies
from bythebook.retrieval.question_analysis import analyze
from bythebook.retrieval.reranking import rerank
from bythebook.types import Hit, Question

Array = NDArray[np.float64]
Row = dict[str, Any]

WEIGHTS = Path(score.__file__).with_name("weights.json")
_KEPT = 20  # hits of a question
_FOREIGN = 30  # questions about other books
_FOREIGN_HITS = 5  # of each that count as nearest
_FOREIGN_WEIGHT = 0.5  # of each: near misses are harder, and what readers ask
_HOLDS = 2 / 3  # share of the runs of words that answer, for a passage to hold the answer
_PARTLY_HOLDS = 0.3  # … for the question to say anything about the order of its passages
_RUN = 4  # words
_ANSWERED = 0.98  # share of the questions that the book answers, at the limit that is written
_RIDGE, _RANKING_RIDGE = 0.01, 0.3
_STEPS = 300  # of Adam, with its usual averages and a rate that falls from 0.3 to zero

ORDER = (
    "passage_cosine",
    "unit_cosine",
    "term_weight",
    "coverage",
    "heading_coverage",
    "best_unit_coverage",
)
WITHOUT_VECTORS = tuple(name for name in ORDER if "cosine" not in name)
READ = ("order", "reading", "relevance")
EVIDENCE = ("answers", "best_unit_coverage", "names", "unknown")
READ_EVIDENCE = (*EVIDENCE, "fact", "relevance", "second_relevance", "fact_reading")


# --- signals --------------------------------------------------------------------------------------


def read_rows(path: Path) -> list[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def runs_of(texts: Iterable[str]) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for text in texts:
        words = re.findall(r"\w+", text.lower())
        found |= {tuple(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))}
    return found


def labelled(row: Row, key: str) -> list[str]:
    return [
        each["text"][each["units"][at][0] : each["units"][at][1]]
        for each in row.get("passages", ())
        for at in each[key]
    ]


async def write_signals(home: Path, rows: Sequence[Row], out: Path, reader: LocalReader) -> None:
    async with bythebook.open_book(home=home, reader=reader) as book, book.reading() as context:
        with gzip.open(out, "wt", encoding="utf-8") as lines:
            for row in rows:
                lines.write(json.dumps(await signals(row, context.index)) + "\n")


async def signals(row: Row, index: search.SearchContext) -> Row:
    asked = analyze(Question(row["question"], top_k=_KEPT, min_score=0.0), index.vocabulary)
    query = await search._embed_question(asked, index)
    candidates = await search._find(query)
    examined = await search._examine([each.passage_id for each in candidates[:_KEPT]], query)
    kept = without_copies(examined, _KEPT)
    hits = await rerank(asked.text, kept, index.reader, vectors=query.has_vectors)
    best, also = runs_of(labelled(row, "best")), runs_of(labelled(row, "also"))
    label = "foreign" if "passages" not in row else "yes" if best else "partly" if also else "no"
    return {
        "question": row["question"],
        "label": label,
        **score.of_question(asked),
        "hits": [
            {
                **asdict(hit.signals),
                "names": score.unmatched(asked, hit.passage),
                **({"reading": None, "relevance": None} | score._read(hit.reading)[1]),
                "holds": _share(best, hit),
                "about": max(_share(best, hit), _share(also, hit)),
            }
            for hit in hits
        ],
    }


def _share(wanted: set[tuple[str, ...]], hit: Hit) -> float:
    return len(wanted & runs_of([hit.passage.text])) / len(wanted) if wanted else 0.0


# --- fitting --------------------------------------------------------------------------------------


def table(hits: Iterable[Row], names: Sequence[str]) -> Array:
    return np.array([[float(hit[name] or 0.0) for name in names] for hit in hits]).reshape(
        -1, len(names)
    )


def logistic(seen: Array, right: Array, weights: Array | None = None) -> Array:
    """Return bias and weights of a logistic regression, by Newton's method."""
    seen = np.c_[np.ones(len(seen)), seen]
    weights = np.ones(len(seen)) if weights is None else weights
    ridge = _RIDGE * np.diag([0.0, *np.ones(seen.shape[1] - 1)])
    fitted = np.zeros(seen.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(seen @ fitted, -30, 30)))
        slope = seen.T @ (weights * (chance - right)) + ridge @ fitted
        curve = (seen.T * (weights * chance * (1 - chance))) @ seen + ridge
        fitted -= np.linalg.solve(curve + 1e-9 * np.eye(len(curve)), slope)
    return fitted


def ranking(
    rows: Sequence[Row], names: Sequence[str], *, is_read: bool = False
) -> dict[str, float]:
    """Return weights that put the passages holding the answer first: a softmax over the hits."""
    groups = []
    for row in rows:
        hits = [hit for hit in row["hits"] if hit["reading"] is not None or not is_read]
        held = np.array([hit["holds"] for hit in hits])
        if len(held) and held.max() > _PARTLY_HOLDS:
            groups.append((table(hits, names), held / held.sum()))
    seen = np.concatenate([own for own, _ in groups])
    target = np.concatenate([held for _, held in groups])
    sizes = np.array([len(held) for _, held in groups])
    starts, group = np.cumsum(sizes) - sizes, np.repeat(np.arange(len(sizes)), sizes)
    fitted, first, second = np.zeros(len(names)), np.zeros(len(names)), np.zeros(len(names))
    for step in range(1, _STEPS + 1):
        given = seen @ fitted
        chance = np.exp(given - np.maximum.reduceat(given, starts)[group])
        chance /= np.add.reduceat(chance, starts)[group]
        slope = (seen.T @ (chance - target) + _RANKING_RIDGE * fitted) / len(groups)
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
        change = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
        fitted -= 0.3 * (1 - step / _STEPS) * change
    return named(names, fitted)


def named(names: Sequence[str], fitted: Array) -> dict[str, float]:
    keys = ("bias", *names) if len(fitted) > len(names) else names
    return {key: round(float(value), 3) for key, value in zip(keys, fitted, strict=True)}


def odds(weights: dict[str, float], row: Row) -> float:
    return sum(
        (1.0 if key == "bias" else row[key] or 0.0) * value for key, value in weights.items()
    )


def fit(rows: Sequence[Row]) -> dict[str, Any]:
    """Fit all functions, each on what the one before it gives."""
    fitted: dict[str, Any] = {"order": {}, "similarity": {}, "answers": {}, "answerability": {}}
    for kind, names in (("words", WITHOUT_VECTORS), ("read", ORDER)):
        unread = "unread" if kind == "read" else "unread words"
        fitted["order"][kind] = ranking(rows, names)
        fitted["similarity"][unread] = _similarity(rows, names, is_read=False)
        fitted["similarity"][kind] = _similarity(rows, (*names, *READ[1:]), is_read=True)
        place(rows, fitted, kind=kind)
        fitted["answers"][unread] = _scaled(rows, {"order": 1.0}, is_read=False)
        fitted["answers"][kind] = _scaled(rows, ranking(rows, READ, is_read=True), is_read=True)
        place(rows, fitted, kind=kind)
        judged = [row for row in rows if row["label"] != "partly" and row["hits"]]
        right = np.array([float(row["label"] == "yes") for row in judged])
        weights = np.array([_FOREIGN_WEIGHT if r["label"] == "foreign" else 1.0 for r in judged])
        for name, seen in (
            (unread, EVIDENCE),
            (kind, READ_EVIDENCE),
        ):
            place(rows, fitted, kind=kind, is_read=name == kind)
            found = logistic(table([row["evidence"] for row in judged], seen), right, weights)
            fitted["answerability"][name] = named(seen, found)
    return fitted


def _scaled(rows: Sequence[Row], weights: dict[str, float], *, is_read: bool) -> dict[str, float]:
    """Return the weights as log odds that a passage holds the answer."""
    own = [
        hit
        for row in rows
        for hit in row["hits"]
        if row["label"] in ("yes", "no") and (hit["reading"] is not None or not is_read)
    ]
    placed = np.array([[odds(weights, hit)] for hit in own])
    bias, slope = logistic(placed, np.array([float(hit["holds"] >= _HOLDS) for hit in own]))
    scaled = {name: round(float(slope * weight), 3) for name, weight in weights.items()}
    return {"bias": round(float(bias), 3), **scaled}


def place(
    rows: Sequence[Row], fitted: dict[str, Any], *, kind: str = "read", is_read: bool = True
) -> None:
    """Set order and probability of each hit, and the signals of each question's evidence."""
    unread = "unread" if kind == "read" else "unread words"
    for row in rows:
        for hit in row["hits"]:
            hit["order"] = odds(fitted["order"][kind], hit)
            name = kind if is_read and hit["reading"] is not None else unread
            hit["answers"] = odds(fitted["answers"].get(name, {}), hit)
        read = [hit for hit in row["hits"] if hit["reading"] is not None] if is_read else []
        known = read or row["hits"][: search.READ_HITS]
        relevance = sorted((hit["relevance"] for hit in read), reverse=True)
        best, second = [*relevance, score._NOTHING, score._NOTHING][:2]
        row["evidence"] = {
            "answers": max((hit["answers"] for hit in known), default=score._NOTHING),
            "best_unit_coverage": max((h["best_unit_coverage"] for h in known), default=0.0),
            "names": min((hit["names"] for hit in known), default=0),
            "unknown": row["unknown"],
            "fact": row["fact"],
            "fact_reading": row["fact"] * max((h["reading"] for h in read), default=0.0),
            "relevance": best,
            "second_relevance": second,
        }


def _similarity(rows: Sequence[Row], names: Sequence[str], *, is_read: bool) -> dict[str, float]:
    """Tell passages about the question from the nearest ones of books on something else."""
    usable = [
        (row, hit)
        for row in rows
        for hit in (row["hits"][:_FOREIGN_HITS] if row["label"] == "foreign" else row["hits"])
        if hit["reading"] is not None or not is_read
    ]
    near = [hit for row, hit in usable if _is_about(row, hit)]
    far = [hit for row, hit in usable if row["label"] == "foreign"]
    is_near = np.r_[np.ones(len(near)), np.zeros(len(far))]
    share = np.r_[np.full(len(near), 1 / len(near)), np.full(len(far), 1 / len(far))]
    return named(names, logistic(table([*near, *far], names), is_near, share * len(rows)))


def _is_about(row: Row, hit: Row) -> bool:
    return bool(row["label"] in ("yes", "partly") and hit["about"] >= _HOLDS)


# --- figures --------------------------------------------------------------------------------------


def refused_at(chances: Array, right: Array, answered: float) -> tuple[float, float]:
    """Return the share refused of what the book does not answer, and the limit."""
    limit = float(np.sort(chances[right])[int((1 - answered) * right.sum())])
    return float((chances[~right] < limit).mean()), limit


def figures(rows: Sequence[Row], fitted: dict[str, Any], *, kind: str = "read") -> dict[str, float]:
    place(rows, fitted, kind=kind)
    own = [row for row in rows if row["label"] in ("yes", "no") and row["hits"]]
    right = np.array([row["label"] == "yes" for row in own])
    chances = np.array([odds(fitted["answerability"][kind], row["evidence"]) for row in own])
    foreign = np.array(
        [
            odds(fitted["answerability"][kind], row["evidence"])
            for row in rows
            if row["label"] == "foreign" and row["hits"]
        ]
    )
    found = {"auroc": auroc(chances.tolist(), right.tolist())}
    for answered in (0.95, 0.9):
        refused, limit = refused_at(chances, right, answered)
        found[f"refused at {answered}"] = refused
        found[f"foreign at {answered}"] = float((foreign < limit).mean())
    answerable = [row for row in own if row["label"] == "yes"]
    for name, key in (("order", _by_order), ("answers", _by_answers)):
        ranks = [_rank(row["hits"], key) for row in answerable]
        found[f"first by {name}"] = float(np.mean([rank < 1 for rank in ranks]))
        found[f"five by {name}"] = float(np.mean([rank < 5 for rank in ranks]))
    return found


def _by_order(hit: Row) -> float:
    return -float(hit["order"])


def _by_answers(hit: Row) -> tuple[bool, float]:
    return hit["reading"] is None, -float(hit.get("answers", hit["order"]))


def _rank(hits: Sequence[Row], key: Callable[[Row], Any]) -> int:
    ordered = sorted(hits, key=key)
    return next((at for at, hit in enumerate(ordered) if hit["holds"] >= _HOLDS), len(ordered))


def report(books: dict[str, list[Row]], *, kind: str = "read") -> list[Row]:
    """Print the figures of each book, left out of the fit, and return all rows."""
    found = {}
    for name, rows in books.items():
        others = [row for other, each in books.items() if other != name for row in each]
        found[name] = figures(rows, fit(others), kind=kind)
    names = list(next(iter(found.values())))
    print(" ".join(["book".ljust(14), *(name.rjust(16) for name in names)]))
    means = {name: float(np.mean([each[name] for each in found.values()])) for name in names}
    for book, each in (*found.items(), ("mean", means)):
        print(" ".join([book.ljust(14), *(f"{each[name]:16.3f}" for name in names)]))
    return [row for rows in books.values() for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    ask = commands.add_parser("signals")
    ask.add_argument("--home", type=Path, required=True)
    ask.add_argument("--labels", type=Path, required=True)
    ask.add_argument("--others", type=Path, nargs="*", default=())
    ask.add_argument("--reader", type=Path, help="file of a reading model")
    ask.add_argument("--out", type=Path, required=True)
    fitting = commands.add_parser("fit")
    fitting.add_argument("signals", type=Path, nargs="+")
    fitting.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.command == "signals":
        foreign = [row["question"] for path in options.others for row in read_rows(path)]
        chance = random.Random(options.labels.name)
        asked = chance.sample(foreign, min(_FOREIGN, len(foreign)))
        rows = [*read_rows(options.labels), *({"question": each} for each in asked)]
        reader = LocalReader()
        if options.reader:
            MODELS[options.reader.stem] = hashlib.sha256(options.reader.read_bytes()).hexdigest()
            reader = LocalReader(options.reader.stem, folder=options.reader.parent)
        asyncio.run(write_signals(options.home, rows, options.out, reader))
        return
    books = {path.stem: read_rows(path) for path in options.signals}
    rows = report(books)
    fitted = fit(rows)
    place(rows, fitted)
    own = [row for row in rows if row["label"] in ("yes", "no")]
    right = np.array([row["label"] == "yes" for row in own])
    chances = np.array([odds(fitted["answerability"]["read"], row["evidence"]) for row in own])
    limit = score.probability(refused_at(chances, right, _ANSWERED)[1])
    holds = [hit["holds"] >= _HOLDS for row in own for hit in row["hits"] if hit["reading"]]
    prior = -score.log_odds(float(np.mean(holds)))
    fitted["selection"] = {"answers": {"bias": round(prior, 3)}}
    fitted["limit"] = {"answerability": {"default": round(limit, 3)}}
    fitted["marks"] = {name: asdict(marks) for name, marks in score.MEASURED.items()}
    print(json.dumps(fitted, indent=2))
    if options.write:
        WEIGHTS.write_text(json.dumps(fitted, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
