"""Finds the answers of one FAQ in several languages, with several embedders, in one run.

    apt-get download debian-faq-de debian-faq-ru …; dpkg-deb -x each.deb FAQ
    python bench/languages.py FAQ --languages de ru --embedders local:minilm local:e5-small

The Debian FAQ is a book in ten languages whose section titles are questions. Here its sections
have numbers for titles, each title is asked, and its own section should be found: ``own`` in the
language of the book, ``en`` with the English title of the same section.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.ingestion.read_book import read_book
from bythebook.types import Question

CHAPTER = re.compile(r'<div class="section"><div class="titlepage">')
TITLE = re.compile(r'<h2 class="title"[^>]*><a id="([^"]+)"></a>(.*?)</h2>', re.DOTALL)
BLOCK = re.compile(r"<(p|pre|li|dt|h3)\b[^>]*>(.*?)</\1>", re.DOTALL)
TAG = re.compile(r"<[^>]+>")
NUMBER = re.compile(r"^[\d.]+\s*")


@dataclass(frozen=True)
class Section:
    id: str
    question: str
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faq", type=Path)
    parser.add_argument("--languages", nargs="+", required=True)
    parser.add_argument("--embedders", nargs="+", required=True)
    options = parser.parse_args()
    english = {section.id: section.question for section in read_faq(options.faq, "en")}
    for language in options.languages:
        sections = read_faq(options.faq, language)
        for embedder in options.embedders:
            asyncio.run(measure(language, sections, english, embedder))


def read_faq(folder: Path, language: str) -> list[Section]:
    pages = sorted(folder.rglob("*.html"))
    own = "FAQ" if language == "en" else language
    found = [part for page in pages if page.parent.name == own for part in _parts(page)]
    # The English pages come twice; a section without words of its own has nothing to find.
    return list({part.id: part for part in found if len(part.text) > 40}.values())


def _parts(page: Path) -> list[Section]:
    sections = []
    for part in CHAPTER.split(page.read_text("utf-8"))[1:]:
        title = TITLE.search(part)
        if title is None:
            continue
        blocks = (_plain(block[2]) for block in BLOCK.finditer(part[title.end() :]))
        text = "\n\n".join(block for block in blocks if block)
        sections.append(Section(title[1], NUMBER.sub("", _plain(title[2])), text))
    return sections


def _plain(markup: str) -> str:
    text = " ".join(html.unescape(TAG.sub("", markup)).split())
    return re.sub(r"([\\`*_{}<>\[\]$#|~])", r"\\\1", text)


async def measure(
    language: str, sections: Sequence[Section], english: dict[str, str], embedder: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        docs, home = Path(folder) / "docs", Path(folder) / "home"
        docs.mkdir()
        text = "\n\n".join(f"## {n}\n\n{part.text}" for n, part in enumerate(sections))
        (docs / "faq.md").write_text(f"# FAQ\n\n{text}\n", "utf-8")
        library = Book(load_settings({"home": home, "embedder": embedder}), new=True)
        began = time.process_time()
        result = await library.ingest(read_book(docs))
        seconds = time.process_time() - began
        own = [await _rank(library, part.question, n) for n, part in enumerate(sections)]
        asked = [(n, english[part.id]) for n, part in enumerate(sections) if part.id in english]
        other = [await _rank(library, question, n) for n, question in asked]
    print(
        f"{language} {embedder}: {result.chunks_created} passages, {seconds:.0f} s of CPU; "
        f"own {_figures(own)}; en {_figures(other)}",
        flush=True,
    )


async def _rank(library: Book, question: str, section: int) -> float:
    hits = (await library.search(Question(question, top_k=10))).hits
    ranks = [hit.rank for hit in hits if hit.passage.place.heading == str(section)]
    return float(min(ranks, default=np.inf))


def _figures(ranks: Sequence[float]) -> str:
    found = np.array(ranks)
    return (
        f"hit@1 {np.mean(found <= 1):.3f} hit@5 {np.mean(found <= 5):.3f} "
        f"MRR@10 {np.mean(1 / found):.3f} of {len(found)}"
    )


if __name__ == "__main__":
    main()
