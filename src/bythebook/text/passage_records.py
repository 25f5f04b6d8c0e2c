"""Serialise passages for the catalog, and compare two states of a book.

The catalog itself is ``providers/sql/catalog.py``; this module does not depend on SQL.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bythebook.types import Mark, MarkKind, Metadata, Passage, Place, TextKind, Unit, UnitKind

T = TypeVar("T")

LAYOUT = 6  # version of the index content: raise it when terms or store write something else


@dataclass(frozen=True, slots=True)
class Change:
    """Numbers of passages that differ between the committed and the current book."""

    unchanged: int
    changed: int  # new, or with different text
    removed: int


def diff(known: Mapping[str, Passage], passages: Iterable[Passage]) -> Change:
    now = {passage.id for passage in passages}
    return Change(
        unchanged=len(now & known.keys()),
        changed=len(now - known.keys()),
        removed=len(known.keys() - now),
    )


def vector_key(passage: Passage) -> str:
    """Return the key of a passage's vectors: equal for equal text and headings in any file."""
    units = ";".join(f"{unit.start}-{unit.end}" for unit in passage.units)
    return hashlib.sha256(f"{passage.embedded_text}\0{units}".encode()).hexdigest()


def fingerprint(passages: Iterable[Passage], embedder: str, origin: str) -> str:
    """Return a hash of the index content; if it is equal, publishing would change nothing."""
    digest = hashlib.sha256(f"{LAYOUT}\0{embedder}\0{origin}".encode())
    for record in sorted(map(to_json, passages)):
        digest.update(b"\0" + record.encode())
    return digest.hexdigest()


def to_record(passage: Passage) -> dict[str, Any]:
    record = {
        **_fields(passage),
        "place": _fields(passage.place),
        "metadata": _fields(passage.metadata),
        "units": [
            [u.start, u.end, u.kind.value, u.fragment, *_named(u.text_kind)] for u in passage.units
        ],
    }
    if passage.marks is None:
        del record["marks"]
    if passage.continues is None:  # omitted, so that books without such passages keep their hash
        del record["continues"]
    return record


def _named(kind: TextKind) -> list[str]:
    return [] if kind is TextKind.TEXT else [kind.value]


def _fields(value: Passage | Place | Metadata) -> dict[str, Any]:
    # Not asdict: its deep copies took a third of the publishing time.
    return {name: getattr(value, name) for name in value.__slots__}


def to_json(passage: Passage) -> str:
    return json.dumps(to_record(passage), ensure_ascii=False, sort_keys=True)


def from_record(record: Mapping[str, Any]) -> Passage:
    place, metadata = record["place"], record["metadata"]
    return Passage(
        id=record["id"],
        text=record["text"],
        place=Place(**{**place, "section": tuple(place["section"])}),
        position=record["position"],
        content_hash=record["content_hash"],
        metadata=Metadata(**{**metadata, "keywords": tuple(metadata["keywords"])}),
        units=tuple(
            Unit(
                start, end, UnitKind(kind), "".join(rest[:1]), TextKind("".join(rest[1:]) or "text")
            )
            for start, end, kind, *rest in record["units"]
        ),
        source=(record["source"][0], record["source"][1]),
        tokens=record["tokens"],
        neighbours=tuple(record.get("neighbours", ())),
        continues=record.get("continues"),
        text_kind=TextKind(record.get("text_kind", "text")),
        marks=_marks(record["marks"]) if "marks" in record else None,
    )


def _marks(records: Iterable[Sequence[Any]]) -> tuple[Mark, ...]:
    return tuple(Mark(start, end, MarkKind(kind), target) for start, end, kind, target in records)


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
