"""Small things that several tests are about."""

from __future__ import annotations

from pathlib import Path

from bythebook.ingestion.read_book import ParsedBook, read_book
from bythebook.text.selections import content_hash, estimate_tokens
from bythebook.text.text_kinds import with_text_kinds
from bythebook.text.units import split_units
from bythebook.types import Evidence, Hit, Metadata, Passage, Place

ROOT = Path(__file__).parents[2]
SAMPLE_BOOK = ROOT / "examples" / "physical-ai-book"
WORKSHOP = ROOT / "tests" / "sources" / "books" / "workshop" / "docs"  # plain Markdown
RULES = ROOT / "tests" / "sources" / "books" / "rules" / "docs"  # every rule of Docusaurus at once
ORDERED = ROOT / "tests" / "sources" / "books" / "ordered"  # a site with sidebars
IN_ORDER = [  # its pages; the last is in no sidebar
    "zebra.md",
    "01-parts/02-second.md",
    "01-parts/03-intro.md",
    "01-parts/04-other.md",
    "01-parts/01-first.md",
    "alpha.md",
    "03-made/b.md",
    "03-made/a.md",
    "03-made/deep/c.md",
    "lonely.md",
]
FEATURES = ROOT / "tests" / "sources" / "books" / "features" / "docs"  # what MDX adds

PAGES = {
    "intro.md": """---
title: Welcome
---
This little book is about kites and kettles.

## Kites {#kites}

A kite flies because the wind pushes it upwards. The string keeps it from drifting away.
Most kites need a wind of at least 12 kilometres per hour.

## Kettles

A kettle boils water at 100 degrees Celsius. It switches itself off by means of a bimetal strip.
""",
    "workshop/building.md": """# Building a kite

How a kite is made.

## Steps

To build a kite:

1. Cut two sticks of spruce.
2. Tie them into a cross.
3. Stretch paper over the frame.

## Sailcloth

| cloth | weight |
|---|---|
| ripstop nylon | 40 grams |
| paper | 60 grams |
""",
}


def small_book(folder: Path) -> Path:
    for name, text in PAGES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def read(folder: Path) -> ParsedBook:
    return read_book(folder)


def passage(
    text: str, *, file: str = "a.md", section: str = "Section", **metadata: object
) -> Passage:
    place = Place(
        file=file,
        title="Title",
        url=f"/docs/{file.removesuffix('.md')}#{section.lower()}",
        module="Module",
        chapter="Chapter",
        section=(section,),
    )
    made = Passage(
        id=content_hash(f"{file}{section}{text}"),
        text=text,
        place=place,
        position=0,
        content_hash=content_hash(text),
        metadata=Metadata(**metadata),  # type: ignore[arg-type]
        units=split_units(text),
        tokens=estimate_tokens(text),
    )
    return with_text_kinds(made)


def hit(text: str, *, score: float = 0.9, rank: int = 1, **where: str) -> Hit:
    found = passage(text, **where)  # type: ignore[arg-type]
    count = len(found.units)
    return Hit(found, rank, 0.6, score, answers=score, unit_cosines=(0.5,) * count)


def evidence(*texts: str) -> Evidence:
    hits = tuple(hit(text, rank=n, section=f"S{n}") for n, text in enumerate(texts, 1))
    return Evidence(hits=hits, considered=hits)
