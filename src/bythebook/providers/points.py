"""A passage as Qdrant takes it, embedded or on a server, and back."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bythebook.errors import StoreFailed
from bythebook.index.catalog import from_record, to_record
from bythebook.ports import Candidate, Entry

if TYPE_CHECKING:
    from bythebook.model import Passage, Vectors

WEIGHED_BY = ["id", "content_hash"]  # what of its payload a candidate needs


def point_id(passage_id: str) -> str:
    """A UUID (version 8) of the first 122 bits of the hash: Qdrant takes no longer ids."""
    bits = int(passage_id[:32], 16)
    bits = (bits & ~(0xF << 76) & ~(0x3 << 62)) | (0x8 << 76) | (0x2 << 62)
    return str(uuid.UUID(int=bits))


def to_payload(passage: Passage) -> dict[str, Any]:
    return {**to_record(passage), **to_filterable(passage)}


def to_filterable(passage: Passage) -> dict[str, Any]:
    """The names that S0–S4 filter by."""
    return {
        "module": passage.place.module,
        "chapter": passage.place.chapter,
        "section": passage.place.heading,
        "url": passage.place.url,
        "language": passage.metadata.language,
        "difficulty": passage.metadata.difficulty,
        "week": passage.metadata.week,
        "hasCode": passage.metadata.has_code,
    }


def check_vectors(entry: Entry, dimension: int) -> None:
    """StoreFailed if Qdrant should not get the vectors of this entry."""
    if entry.vector is None:
        return
    for some in (entry.vector[None, :], entry.unit_vectors):
        if len(some) and (some.shape[1] != dimension or not np.isfinite(some).all()):
            raise StoreFailed(
                "A vector has the wrong dimension or is not finite.",
                cure="Check the embedder; nothing was published.",
            )


def dense_vectors(entry: Entry, dimension: int) -> dict[str, Any]:
    """The vectors of the passage and of its units, of which there is at least one."""
    if entry.vector is None:
        return {}
    check_vectors(entry, dimension)
    units = entry.unit_vectors if len(entry.unit_vectors) else entry.vector[None, :]
    return {"passage": entry.vector.tolist(), "units": units.tolist()}


def to_candidate(point: Any, cosine: float, unit_cosine: float) -> Candidate:
    """From a point with its terms and what of its payload it is weighed by."""
    return Candidate(
        passage_id=point.payload["id"],
        content_hash=point.payload["content_hash"],
        cosine=cosine,
        unit_cosine=unit_cosine,
        terms=_terms(point.vector["terms"]),
    )


def to_entry(payload: Mapping[str, Any], vectors: Mapping[str, Any]) -> Entry:
    pending = "passage" not in vectors
    return Entry(
        from_record(payload),
        None if pending else _floats(vectors["passage"]),
        _floats([] if pending else vectors["units"]),
        _terms(vectors["terms"]),
    )


def in_order(entries: Iterable[Entry], passage_ids: Sequence[str]) -> list[Entry]:
    found = {entry.passage.id: entry for entry in entries}
    return [found[passage_id] for passage_id in passage_ids if passage_id in found]


def _terms(sparse: Any) -> dict[int, float]:
    return dict(zip(sparse.indices, sparse.values, strict=True))


def _floats(values: object) -> Vectors:
    return np.asarray(values, dtype=np.float32)
