"""Find the passages that the written examples are about, and edit sentences of books by rule.

    python -m training.textbooks --book d2l=FOLDER [--book …] --data RAW

``written.jsonl.gz`` beside this file has questions and sentences that were written about short
passages of textbooks and of SQuAD. It has no text of the books: a passage is named by the SHA-256
of its text, and found again in the books' sources (README.md lists them). Writes
``written_passages.jsonl.gz`` and ``edited_sentences.jsonl.gz`` into RAW, the folder that
``training.prepare`` reads. Needs the product's environment, not the one for training.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lxml import etree
from tests.grounding.claim_mutations import cases

from bythebook.ingestion.read_book import read_book
from bythebook.providers.embeddings.onnx_files import word_pieces
from bythebook.providers.reader.windows import (
    TermWeights,
    TokenizedPassage,
    best_windows,
    windows_of,
)
from bythebook.types import Passage
from training.prepare import read, sentences

WRITTEN = Path(__file__).with_name("written.jsonl.gz")
SQUAD_WORDS = 110  # of a passage of SQuAD, at most
EDITED_PASSAGES = 1400  # of each book
EDITED_EACH = 130  # sentences of each kind and book
UNSEEN = "unseen"  # kinds of edits that are kept for tests
Row = dict[str, Any]


class Windows:
    """The windows of passages as the reader cuts them."""

    def __init__(self) -> None:
        self._tokenizer = word_pieces()

    def of(self, passage: Passage) -> list[str]:
        source = self._tokenize(passage)
        return [
            passage.text[source.offsets[w.first][0] : source.offsets[w.last - 1][1]]
            for w in windows_of(source, 0)
        ]

    def best(self, claim: str, passage: Passage) -> str:
        """Return the window that the reader would read for this claim."""
        source = self._tokenize(passage)
        own = list(windows_of(source, 0))
        pieces = self._tokenizer.encode(claim, add_special_tokens=False).ids
        (window,) = best_windows(pieces, own, 1, TermWeights(own))
        start, end = source.offsets[window.first][0], source.offsets[window.last - 1][1]
        return passage.text[start:end]

    def _tokenize(self, passage: Passage) -> TokenizedPassage:
        body = self._tokenizer.encode(passage.text, add_special_tokens=False)
        return TokenizedPassage(passage, [], body.ids, body.offsets)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def book_passages(folder: Path) -> Sequence[Passage]:
    """Return the passages of a book: a folder of pages, or of OpenStax modules (CNXML)."""
    modules = sorted(folder.glob("modules/*/index.cnxml"))
    if not modules:
        return read_book(folder).passages
    with tempfile.TemporaryDirectory() as pages:
        for module in modules:
            (Path(pages) / f"{module.parent.name}.md").write_text(markdown_of(module), "utf-8")
        return read_book(Path(pages)).passages


def markdown_of(module: Path) -> str:
    root = etree.parse(str(module)).getroot()
    lines: list[str] = []
    for part in root:
        if _name(part) == "title":
            lines += [f"# {_text(part)}", ""]
        elif _name(part) == "content":
            _write(part, 1, lines)
    return "\n".join(lines)


def _write(parent: Any, level: int, lines: list[str]) -> None:
    for part in parent:
        match _name(part):
            case "para":
                lines += [_text(part), ""]
            case "title":
                lines += [f"{'#' * min(level, 6)} {_text(part)}", ""]
            case "list":
                lines += [f"- {_text(item)}" for item in part if _name(item) == "item"] + [""]
            case "table":
                rows = [[_text(cell) for cell in row] for row in part.iter("{*}row")]
                if rows:
                    rows.insert(1, ["---"] * len(rows[0]))
                    lines += [f"| {' | '.join(row)} |" for row in rows] + [""]
            case "section" | "note" | "example":
                _write(part, level + 1, lines)


def _name(element: Any) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _text(element: Any) -> str:
    return re.sub(r"\s+", " ", "".join(element.itertext())).strip()


def squad_passages(data: Path) -> Iterator[tuple[str, str]]:
    """Yield title and text of all runs of whole sentences that are short enough."""
    for row in read(data / "squad2_train_contexts.jsonl.gz"):
        text, spans = row["text"], sentences(row["text"])
        for first in range(len(spans)):
            for last in range(first, len(spans)):
                run = text[spans[first][0] : spans[last][1]]
                if len(run.split()) > SQUAD_WORDS:
                    break
                yield row["title"].replace("_", " "), run


def find(
    wanted: dict[tuple[str, str], list[str]], book: str, found: Iterable[tuple[str, str]]
) -> Iterator[Row]:
    """Yield the wanted passages of a book, each once for every example about it."""
    for path, text in found:
        for name in wanted.pop((book, sha256(text)), ()):
            yield {"id": name, "book": book, "path": path, "text": text}


def edited(passages: Sequence[Passage], windows: Windows) -> Iterator[Row]:
    some = random.Random(3).sample(passages, min(EDITED_PASSAGES, len(passages)))
    for case in cases(some, each=EDITED_EACH, seed=3):
        if UNSEEN not in case.kind:
            passage = case.passages[0]
            premise = f"{passage.place.path}\n{windows.best(case.claim, passage)}"
            label = "entail" if case.true else "unsupported"
            yield {"premise": premise, "claim": case.claim, "label": label}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--book", action="append", default=[], help="NAME=FOLDER")
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    windows = Windows()
    wanted: dict[tuple[str, str], list[str]] = {}
    for row in read(WRITTEN):
        wanted.setdefault((row["book"], row["passage"]), []).append(row["id"])
    rows: list[Row] = []
    changed: list[Row] = []
    for given in options.book:
        name, _, folder = given.partition("=")
        passages = book_passages(Path(folder))
        cut = ((p.place.path, text) for p in passages for text in windows.of(p))
        rows += find(wanted, name, cut)
        if name != "webdev":  # held out
            changed += edited(passages, windows)
        print(f"{name}: {len(passages)} passages, {len(rows)} found so far", flush=True)
    rows += find(wanted, "squad", squad_passages(options.data))
    for file, made in (("written_passages", rows), ("edited_sentences", changed)):
        with gzip.open(options.data / f"{file}.jsonl.gz", "wt", encoding="utf-8") as out:
            out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in made)
    print(f"{len(rows)} passages found, {len(wanted)} not found; {len(changed)} edited sentences")


if __name__ == "__main__":
    main()
