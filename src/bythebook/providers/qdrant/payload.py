"""Conversion between passages and Qdrant points."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bythebook.interfaces.store import Candidate, IndexedPassage, check_vectors, to_filterable
from bythebook.text.passage_records import from_record, to_record

if TYPE_CHECKING:
    from bythebook.types import Passage, Vectors

CANDIDATE_FIELDS = ["id", "content_hash"]  # the payload fields that a candidate needs
KEYWORD_FIELDS = ("module", "chapter", "section", "url", "language", "difficulty", "kind")


def point_id(passage_id: str) -> str:
    """Return a UUID (version 8) of the first 122 bits of the hash: Qdrant takes no longer ids."""
    bits = int(passage_id[:32], 16)
    bits = (bits & ~(0xF << 76) & ~(0x3 << 62)) | (0x8 << 76) | (0x2 << 62)
    return str(uuid.UUID(int=bits))


def to_payload(passage: Passage) -> dict[str, Any]:
    return {**to_record(passage), **to_filterable(passage)}


def dense_vectors(entry: IndexedPassage, dimension: int) -> dict[str, Any]:
    """Return the vectors of the passage and of its units; without units, the passage's for both."""
    if entry.vector is None:
        return {}
    check_vectors(entry, dimension)
    units = entry.unit_vectors if len(entry.unit_vectors) else entry.vector[None, :]
    return {"passage": entry.vector.tolist(), "units": units.tolist()}


def to_candidate(point: Any, cosine: float, unit_cosine: float) -> Candidate:
    """Build a candidate from a point with its terms and the payload fields ``CANDIDATE_FIELDS``."""
    return Candidate(
        passage_id=point.payload["id"],
        content_hash=point.payload["content_hash"],
        cosine=cosine,
        unit_cosine=unit_cosine,
        terms=_terms(point.vector["terms"]),
    )


def to_entry(point: Any) -> IndexedPassage:
    """Build an entry from a point with its payload and all its vectors."""
    vectors = point.vector
    pending = "passage" not in vectors
    return IndexedPassage(
        from_record(point.payload),
        None if pending else _floats(vectors["passage"]),
        _floats([] if pending else vectors["units"]),
        _terms(vectors["terms"]),
    )


def in_order(entries: Iterable[IndexedPassage], passage_ids: Sequence[str]) -> list[IndexedPassage]:
    by_id = {entry.passage.id: entry for entry in entries}
    return [by_id[passage_id] for passage_id in passage_ids if passage_id in by_id]


def _terms(sparse: Any) -> dict[int, float]:
    return dict(zip(sparse.indices, sparse.values, strict=True))


def _floats(values: object) -> Vectors:
    return np.asarray(values, dtype=np.float32)
