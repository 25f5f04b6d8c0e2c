"""Fetches the public data that the benchmarks read and builds two books from it.

    python bench/fetch_data.py [--from DIR] [--into DIR]

Without ``--from`` the files are downloaded from GitHub. With it they are taken from a folder that
holds them by the names below; nothing is downloaded. A file or a book whose SHA-256 is not the one
below is an error, and nothing is written. ``--into`` is ``bench/data`` (ignored by git) by default.

| file | source, at a fixed commit | licence |
|---|---|---|
| ``dev-v2.0.json``, ``test-v2.0.json`` | SQuAD 2.0 in chrischute/squad | CC BY-SA 4.0 |
| ``xquad.en.json`` | google-deepmind/xquad | CC BY-SA 4.0 |
| ``Hackathon1.tar.gz`` | Muhammad-Junaid-Sajjad/Hackathon1 | Apache 2.0 |

What is written:

- ``squad-minibook/docs``: twelve Wikipedia articles of SQuAD 2.0 in four modules, a section for
  each paragraph.
- ``squad-minibook/qa.jsonl``: of each of eight articles 63 answerable questions and 50 that the
  article does not answer; of the other four articles all questions of XQuAD. The questions of an
  article are ordered by the SHA-256 of their ids, and the first ones are taken.
- ``squad-minibook/qa_offbook.jsonl``: 150 questions of XQuAD about six articles that are not in the
  book, the first ones in the same order.
- ``physical-ai-book/docs``: a Docusaurus textbook of 106 pages, as its author published it.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import shutil
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "data"

_SQUAD = "https://raw.githubusercontent.com/chrischute/squad/85623adeb9e6639f145081fea9cae2d8f3a26379/data"
_XQUAD = "https://raw.githubusercontent.com/google-deepmind/xquad/7d30520c717524000f0d9d2f9c10a069acd9d285"
_BOOK = "https://codeload.github.com/Muhammad-Junaid-Sajjad/Hackathon1/tar.gz"
FILES = {
    "dev-v2.0.json": (
        f"{_SQUAD}/dev-v2.0.json",
        "e67e5969b6dc6c1642154740806b79263b77fc048c7c11ee60d534eb48ef81e8",
    ),
    "test-v2.0.json": (
        f"{_SQUAD}/test-v2.0.json",
        "236eb1109ecfa6196db7e9a5a7cfb6011e54548fd3e68be4fb298895f33ce898",
    ),
    "xquad.en.json": (
        f"{_XQUAD}/xquad.en.json",
        "e4c57d1c9143aaa1c5d265ba5987a65f4e69528d2a98f29d6e75019b10344f29",
    ),
    # GitHub may pack the same files differently another day: the pages are checked instead.
    "Hackathon1.tar.gz": (f"{_BOOK}/0e0a820f7c15ae308025eda6d219ecca75895610", None),
}
TREES = {
    "squad-minibook": "b1337cf3f5abcd2e49394e8e8fa590ba312876c0ebf9550b2fd999ca23f25040",
    "physical-ai-book": "0eca8d74b9dc854b3eff341c8d023833679141f99c71d90055cad2a6e00e0f32",
}

_MODULES = {
    "module-1-history-and-places": (
        "Module 1: History and Places",
        ("Normans", "Warsaw", "Southern_California", "Black_Death"),
    ),
    "module-2-science": (
        "Module 2: Science",
        ("Immune_system", "Computational_complexity_theory", "Oxygen"),
    ),
    "module-3-technology": ("Module 3: Technology", ("Steam_engine", "Packet_switching")),
    "module-4-institutions": (
        "Module 4: Institutions",
        ("Harvard_University", "Scottish_Parliament", "Pharmacy"),
    ),
}
_ELSEWHERE = (
    "Super_Bowl_50", "Nikola_Tesla", "Teacher", "Martin_Luther", "Apollo_program", "Genghis_Khan",
)  # fmt: skip
_ANSWERABLE, _ADVERSARIAL = 63, 50  # questions of an article
_OFF_BOOK = 150

Article = dict[str, Any]


class WrongData(Exception):
    """A file is not the one that the benchmarks were measured with."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--from", dest="source", type=Path, help="a folder with the raw files")
    parser.add_argument("--into", type=Path, default=TARGET)
    options = parser.parse_args()
    try:
        fetch(options.source, options.into)
    except (WrongData, OSError) as error:
        print(f"fetch_data.py: {error}", file=sys.stderr)
        return 1
    print(f"The data is in {options.into}.")
    return 0


def fetch(source: Path | None, target: Path) -> None:
    """Build both books next to their place, check them, and put them there."""
    raw = {name: _read(name, source) for name in FILES}
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target) as name:
        draft = Path(name)
        articles = {
            file: {article["title"]: article for article in json.loads(raw[file])["data"]}
            for file in ("dev-v2.0.json", "test-v2.0.json", "xquad.en.json")
        }
        write_minibook(
            draft / "squad-minibook",
            articles["dev-v2.0.json"],
            articles["test-v2.0.json"],
            articles["xquad.en.json"],
        )
        unpack_book(raw["Hackathon1.tar.gz"], draft / "physical-ai-book")
        for tree, expected in TREES.items():
            if (found := digest_of(draft / tree)) != expected:
                raise WrongData(f"{tree} is not the book that was measured ({found}).")
        for tree in TREES:
            shutil.rmtree(target / tree, ignore_errors=True)
            (draft / tree).rename(target / tree)


def _read(name: str, source: Path | None) -> bytes:
    address, expected = FILES[name]
    if source is not None:
        found = (source / name).read_bytes()
    else:
        print(f"Downloading {address} …", file=sys.stderr)
        with urllib.request.urlopen(address, timeout=60) as answer:
            found = answer.read()
    if expected and hashlib.sha256(found).hexdigest() != expected:
        raise WrongData(f"{name} has another SHA-256 than {expected}.")
    return found


def digest_of(folder: Path) -> str:
    """The SHA-256 over the names and contents of all files below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    whole = hashlib.sha256()
    for path in files:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{content}  {path.relative_to(folder).as_posix()}\n".encode())
    return whole.hexdigest()


def unpack_book(archive: bytes, target: Path) -> None:
    """Write the pages below ``docs`` and the licence of the archive's one folder."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        for member in packed:
            name = member.name.partition("/")[2]
            is_page = name.startswith("docs/") and name.endswith(".md") and ".." not in name
            if member.isfile() and (is_page or name == "LICENSE"):
                content = packed.extractfile(member)
                assert content is not None
                path = target / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())


def write_minibook(
    target: Path,
    labelled: dict[str, Article],
    unlabelled: dict[str, Article],
    xquad: dict[str, Article],
) -> None:
    """Write the pages and the questions; ``unlabelled`` articles have their questions in XQuAD."""
    rows: list[dict[str, Any]] = []
    contents: list[str] = []
    for position, (module, (label, titles)) in enumerate(_MODULES.items(), 2):
        folder = target / "docs" / module
        folder.mkdir(parents=True)
        category = json.dumps({"label": label, "position": position}, indent=2)
        (folder / "_category_.json").write_text(category, "utf-8")
        for number, title in enumerate(titles, 1):
            shown = title.replace("_", " ")
            name = f"{number:02}-{shown.lower().replace(' ', '-')}.md"
            texts = [
                paragraph["context"].strip()
                for paragraph in (labelled.get(title) or unlabelled[title])["paragraphs"]
            ]
            (folder / name).write_text(_page(shown, number, texts), "utf-8")
            contents.append(f"- [{shown.lower()}](./{module}/{name})\n")
            place = {"file": f"docs/{module}/{name}", "article": title, "shown": shown}
            if title in labelled:
                rows += _chosen(list(_questions(labelled[title], texts, place)))
            else:
                rows += _questions(xquad[title], texts, place)
    (target / "docs" / "intro.md").write_text(_INTRO + "".join(contents), "utf-8")
    _write_rows(target / "qa.jsonl", rows)
    off_book = [row for title in _ELSEWHERE for row in _off_book(xquad[title])]
    _write_rows(target / "qa_offbook.jsonl", sorted(off_book, key=_order)[:_OFF_BOOK])


_INTRO = """---
title: "Twelve Encyclopedia Articles"
sidebar_position: 1
slug: /
---

# Twelve Encyclopedia Articles

A small reader made of twelve Wikipedia articles from the SQuAD 2.0 data set. Chapters:

"""


def _page(shown: str, number: int, texts: list[str]) -> str:
    head = (
        f'---\ntitle: "{shown}"\nsidebar_position: {number}\n'
        f'description: "Wikipedia article {shown} as used in SQuAD"\n---\n\n# {shown}\n'
    )
    return head + "".join(
        f"\n## {shown}: part {part}\n\n{text}\n" for part, text in enumerate(texts, 1)
    )


def _questions(
    article: Article, texts: list[str], place: dict[str, str]
) -> Iterator[dict[str, Any]]:
    for paragraph in article["paragraphs"]:
        number = texts.index(paragraph["context"].strip())
        for asked in paragraph["qas"]:
            answers = list(dict.fromkeys(answer["text"] for answer in asked["answers"]))
            impossible = bool(asked.get("is_impossible"))
            yield {
                "id": asked["id"],
                "question": " ".join(asked["question"].split()),
                "answers": [] if impossible else answers,
                "is_impossible": impossible,
                "file": place["file"],
                "paragraph": number,
                "heading": f"{place['shown']}: part {number + 1}",
                "article": place["article"],
                "kind": "adversarial_unanswerable" if impossible else "answerable",
            }


def _chosen(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ordered = sorted(rows, key=_order)
    answerable = [row for row in ordered if not row["is_impossible"]]
    adversarial = [row for row in ordered if row["is_impossible"]]
    return answerable[:_ANSWERABLE] + adversarial[:_ADVERSARIAL]


def _order(row: dict[str, Any]) -> str:
    return hashlib.sha256(row["id"].encode()).hexdigest()


def _off_book(article: Article) -> Iterator[dict[str, Any]]:
    for paragraph in article["paragraphs"]:
        for asked in paragraph["qas"]:
            yield {
                "id": asked["id"],
                "question": " ".join(asked["question"].split()),
                "answers": [],
                "is_impossible": True,
                "file": None,
                "paragraph": None,
                "article": article["title"],
                "kind": "off_book",
                "answer_elsewhere": asked["answers"][0]["text"],
            }


def _write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in sorted(rows, key=_order))
    path.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
