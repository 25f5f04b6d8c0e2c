"""Evaluate an exported model on labelled data, with the product's own windows.

    python -m training.evaluate --model reader-v2.onnx
        [--questions QA.jsonl --book DOCS] [--claims CLAIMS.jsonl[.gz]] [--drafts DRAFTS.jsonl]
        [--limit N]

``--questions`` are SQuAD-like rows with ``file`` and ``paragraph`` (the n-th H2 of that page):
is the question answerable from that paragraph? ``--claims`` are rows of ``premise``, ``claim`` and
``label``; ``--drafts`` are rows of ``passages`` and labelled ``sentences``. Prints the AUROC of
each. Needs the product's environment, not the one for training.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bythebook.providers.reader import local
from bythebook.text.selections import passage_of_selection
from bythebook.types import Passage
from training.metrics import auroc

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--book", type=Path)
    parser.add_argument("--claims", type=Path)
    parser.add_argument("--drafts", type=Path)
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    reader = open_model(options.model)
    if options.questions:
        asyncio.run(score_questions(reader, options.questions, options.book, options.limit))
    if options.claims:
        asyncio.run(score_claims(reader, options.claims, options.limit))
    if options.drafts:
        asyncio.run(score_drafts(reader, options.drafts, options.limit))


def open_model(file: Path) -> local.LocalReader:
    """Return a reader with this file instead of the shipped one."""
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    local.MODELS[file.stem] = sha256
    return local.LocalReader(file.stem, folder=file.parent)


def rows_of(path: Path, limit: int | None) -> Iterator[Row]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if limit is not None and number >= limit:
                return
            yield json.loads(line)


def passage_of(text: str, *headings: str) -> Passage:
    passage = passage_of_selection(text, url=None)
    title, *section = headings or ("",)
    return replace(passage, place=replace(passage.place, title=title, section=tuple(section)))


async def score_questions(
    reader: local.LocalReader, questions: Path, book: Path, limit: int | None
) -> None:
    paragraphs: dict[str, list[tuple[str, str]]] = {}
    scores, labels = [], []
    for row in rows_of(questions, limit):
        if row["file"] not in paragraphs:
            parts = re.split(r"(?m)^## (.*)$", (book / row["file"]).read_text("utf-8"))
            paragraphs[row["file"]] = list(zip(parts[1::2], parts[2::2], strict=True))
        heading, text = paragraphs[row["file"]][row["paragraph"]]
        passage = passage_of(text.strip(), row["article"].replace("_", " "), heading)
        (reading,) = await reader.read(row["question"], [passage])
        scores.append(reading.probability)
        labels.append(not row["is_impossible"])
    print(f"answerability: {len(scores)} questions, AUROC {auroc(scores, labels):.4f}", flush=True)


async def score_claims(reader: local.LocalReader, claims: Path, limit: int | None) -> None:
    scores, labels = [], []
    for row in rows_of(claims, limit):
        (support,) = await reader.support([row["claim"]], [passage_of(row["premise"])])
        scores.append(support.probability)
        labels.append(row["label"] == "entail")
    print(f"support: {len(scores)} claims, AUROC {auroc(scores, labels):.4f}", flush=True)


async def score_drafts(reader: local.LocalReader, drafts: Path, limit: int | None) -> None:
    scores, labels = [], []
    for row in rows_of(drafts, limit):
        evidence = [passage_of(p["text"], *p["section"].split(" > ")) for p in row["passages"]]
        found = await reader.support([s["text"] for s in row["sentences"]], evidence)
        scores += [support.probability for support in found]
        labels += [bool(sentence["supported"]) for sentence in row["sentences"]]
    print(f"support: {len(scores)} draft sentences, AUROC {auroc(scores, labels):.4f}", flush=True)


if __name__ == "__main__":
    main()
