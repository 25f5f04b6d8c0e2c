"""Generations of a book on a Qdrant server or cluster, one collection each.

``<collection>-<owner>-<generation>`` is written once and read-only from then on. It has two
aliases: ``…-ready`` is set when the collection is complete and removed when it is discarded, so
that no partial collection is ever opened; ``<collection>`` points other readers to the generation
being served.

The owner is the book's identity, 32 hex digits: books that share a server and a collection name do
not touch each other's generations.
"""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from cachetools import LRUCache
from qdrant_client import models

from bythebook.errors import BookError, IndexDamaged, StoreFailed
from bythebook.interfaces.store import (
    Candidate,
    Filters,
    IndexedPassage,
    check_vectors,
    index_missing,
    to_filterable,
)
from bythebook.providers.qdrant.nodes import Nodes, Server, to_filter
from bythebook.text.passage_records import from_record, to_record

if TYPE_CHECKING:
    from bythebook.types import Passage, Vectors

_log = logging.getLogger(__name__)
_WRITE_S = 30.0  # timeout for one batch, or one change of collections and aliases
_BATCH_NUMBERS = 250_000  # about 5 MB as JSON; the server's default limit is 32 MB
_GENERATION = re.compile(r"[0-9a-f]{32}")
_READY = "-ready"

# The vector of the whole passage is the unnamed one, as in the data models.
_PASSAGE = ""
_KEYWORD_FIELDS = ("module", "chapter", "section", "url", "language", "difficulty", "kind")
_INDEXED = {
    **dict.fromkeys(_KEYWORD_FIELDS, models.PayloadSchemaType.KEYWORD),
    "week": models.PayloadSchemaType.INTEGER,
    "hasCode": models.PayloadSchemaType.BOOL,
}


def payload_indexes(further: Mapping[str, str]) -> dict[str, models.PayloadSchemaType]:
    """Return all indexed payload fields of a collection, with their types."""
    return _INDEXED | {name: models.PayloadSchemaType(kind) for name, kind in further.items()}


# What a response must contain to build candidates.
_CANDIDATE: dict[str, Any] = {"with_payload": ["id", "content_hash"], "with_vector": ["terms"]}


class ServerGenerationStore:
    """Generations under one collection name. Generations are named by 32 hex digits.

    For each opened generation, up to ``cached`` passages are kept in memory. ``indexes`` names
    further payload fields to index, with their types.
    """

    def __init__(
        self,
        server: Server,
        collection: str,
        *,
        dimension: int,
        owner: str = "",
        cached: int = 0,
        indexes: Mapping[str, str] | None = None,
    ) -> None:
        self._server = server
        self.collection = collection
        self.indexes = payload_indexes(indexes or {})
        self._head = f"{collection}-{owner}" if owner else collection
        self._dimension = dimension
        self._cached = cached
        self._nodes = Nodes(server)

    async def publish(self, generation: str, entries: Iterable[IndexedPassage]) -> int:
        # On a thread with its own event loop: reading the entries from the catalog and encoding
        # them would block every request that this process is answering.
        work = self._publish(self._name(generation), entries)
        return await asyncio.to_thread(asyncio.run, work)

    async def open(self, generation: str) -> ServerStore:
        name = self._name(generation)
        own = await self._nodes.call(lambda client: client.get_collection_aliases(name))
        if name + _READY not in {alias.alias_name for alias in own.aliases}:
            raise index_missing()
        collection = await self._nodes.call(lambda client: client.get_collection(name))
        self._check_dimension(collection.config.params)
        shards = collection.config.params.shard_number or 1
        return ServerStore(self._nodes, name, shards=shards, cached=self._cached)

    async def discard(self, *, keep: Sequence[str]) -> None:
        """Discard generations in two steps: open ones stay readable until the next discard."""
        names, aliases = await self._inventory()
        kept = [self._name(generation) for generation in keep]
        ours = {name for name in names if self._is_ours(name)}
        ready = {name for name in ours if name + _READY in aliases}
        for name in ours - ready - set(kept):
            await _delete(self._nodes, name)
        changes = [
            *(_remove_alias(name + _READY) for name in sorted(ready - set(kept))),
            *self._set_served(kept[0] if kept else None, names, aliases),
        ]
        if changes:
            await self._nodes.call(
                lambda client: client.update_collection_aliases(changes), seconds=_WRITE_S
            )

    async def close(self) -> None:
        await self._nodes.close()

    def _name(self, generation: str) -> str:
        return f"{self._head}-{generation}"

    def _is_ours(self, name: str) -> bool:
        # Not by prefix alone: "handbook-v1" is not a generation of "handbook".
        head, _, generation = name.rpartition("-")
        return head == self._head and _GENERATION.fullmatch(generation) is not None

    def _check_dimension(self, params: models.CollectionParams) -> None:
        vectors = params.vectors
        size = vectors[_PASSAGE].size if isinstance(vectors, dict) and _PASSAGE in vectors else None
        if size != self._dimension:
            raise IndexDamaged(
                f"The index holds vectors of dimension {size}, the embedder makes "
                f"{self._dimension}.",
                hint="Run the ingest again.",
            )

    async def _publish(self, name: str, entries: Iterable[IndexedPassage]) -> int:
        nodes = Nodes(replace(self._server, timeout_s=_WRITE_S))
        try:
            await self._create(nodes, name)
            return await self._fill(nodes, name, entries)
        finally:
            await nodes.close()

    async def _create(self, nodes: Nodes, name: str) -> None:
        terms = models.SparseVectorParams(modifier=models.Modifier.IDF)
        try:
            await nodes.call(
                lambda client: client.create_collection(
                    name,
                    vectors_config=_vectors(self._dimension),
                    sparse_vectors_config={"terms": terms},
                    replication_factor=self._server.replication,
                    shard_number=self._server.shards,
                    timeout=int(_WRITE_S),
                )
            )
        except StoreFailed:
            # A cluster with a dead node creates the collection but never confirms it.
            if not await nodes.call(lambda client: client.collection_exists(name)):
                raise
        await asyncio.gather(*(_index(nodes, name, *field) for field in self.indexes.items()))

    async def _fill(self, nodes: Nodes, name: str, entries: Iterable[IndexedPassage]) -> int:
        try:
            for batch in _batches(entries):
                points = [_to_point(entry, self._dimension) for entry in batch]
                await _upsert(nodes, name, points)
            count = await ServerStore(nodes, name).count()
            ready = [_set_alias(name + _READY, name)]
            await nodes.call(lambda client: client.update_collection_aliases(ready))
        except BaseException:
            with suppress(BookError):
                await _delete(nodes, name)
            raise
        return count

    async def _inventory(self) -> tuple[set[str], dict[str, str]]:
        """Return the names of all collections, and all aliases with their collections."""
        listed = await self._nodes.call(lambda client: client.get_collections(), seconds=_WRITE_S)
        names = {collection.name for collection in listed.collections}
        found = await self._nodes.call(lambda client: client.get_aliases(), seconds=_WRITE_S)
        return names, {alias.alias_name: alias.collection_name for alias in found.aliases}

    def _set_served(
        self, served: str | None, names: set[str], aliases: Mapping[str, str]
    ) -> list[models.AliasOperations]:
        """Return the changes that point the alias ``<collection>`` to the served generation."""
        if self.collection in names:
            _log.warning("no alias %s is set: a collection has this name", self.collection)
            return []
        if aliases.get(self.collection) == served:
            return []
        changes: list[models.AliasOperations] = []
        if self.collection in aliases:
            changes.append(_remove_alias(self.collection))
        if served in names:
            changes.append(_set_alias(self.collection, served))
        return changes


class ServerStore:
    """One generation, opened for reading. It keeps up to ``cached`` passages in memory.

    A generation never changes, and readers request the same passages repeatedly. Each consists of
    some thousands of numbers: parsing them takes a third or more of a request's time.
    """

    def __init__(self, nodes: Nodes, collection: str, *, shards: int = 1, cached: int = 0) -> None:
        self._nodes = nodes
        self._collection = collection
        self._shards = shards
        self._fetched: LRUCache[str, IndexedPassage] = LRUCache(cached)

    async def find(
        self, vector: Vectors | None, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Candidate]:
        """Search in one round trip: the server scores all results both by passage and by unit."""
        condition = to_filter(filters)
        if vector is None:
            return await self._find_by_terms(list(terms), limit, condition)
        requests = self._requests(vector.tolist(), list(terms), limit, condition)
        by_passage, by_unit = await self._query(requests)
        unit_cosines = {point.id: point.score for point in by_unit.points}
        return [
            _to_candidate(point, point.score, unit_cosines[point.id])
            for point in by_passage.points
            if point.id in unit_cosines
        ]

    async def fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        entries = {one: self._fetched.get(one) for one in passage_ids}
        if missing := [one for one, entry in entries.items() if entry is None]:
            for fetched in await self._retrieve(missing):
                entries[fetched.passage.id] = fetched
                if self._fetched.maxsize:
                    self._fetched[fetched.passage.id] = fetched
        return [entry for one in passage_ids if (entry := entries[one]) is not None]

    async def _retrieve(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        points = [_point_id(passage_id) for passage_id in passage_ids]
        records = await self._nodes.call(
            lambda client: client.retrieve(self._collection, points, with_vectors=True)
        )
        # Converting some ten thousand numbers to arrays would block the event loop.
        return await asyncio.to_thread(lambda: list(map(_to_entry, records)))

    async def count(self) -> int:
        response = await self._nodes.call(lambda client: client.count(self._collection, exact=True))
        return response.count

    async def close(self) -> None:
        """Do nothing: the connections belong to the generation store and are shared."""

    async def _query(self, requests: list[models.QueryRequest]) -> list[models.QueryResponse]:
        batch = models.QueryRequestBatch(searches=requests)
        # Bypasses the client's own method, which copies every request to look for texts to embed.
        response = await self._nodes.call(
            lambda client: client.http.search_api.query_batch_points(
                self._collection, query_request_batch=batch
            )
        )
        return response.result or []

    async def _find_by_terms(
        self, terms: list[int], limit: int, condition: models.Filter | None
    ) -> list[Candidate]:
        if not terms:
            return []
        request = models.QueryRequest(
            query=_sparse(terms), using="terms", limit=limit, filter=condition, **_CANDIDATE
        )
        [response] = await self._query([request])
        return [_to_candidate(point, 0.0, 0.0) for point in response.points]

    def _requests(
        self, vector: list[float], terms: list[int], limit: int, condition: models.Filter | None
    ) -> list[models.QueryRequest]:
        prefetch = partial(models.Prefetch, limit=limit, filter=condition)
        searches = [prefetch(query=vector, using=using) for using in (_PASSAGE, "units")]
        if terms:
            searches.append(prefetch(query=_sparse(terms), using="terms"))
        # Each shard searches separately: no result of any shard may be cut off.
        all_results = limit * len(searches) * self._shards
        scored = partial(models.QueryRequest, prefetch=searches, query=vector, limit=all_results)
        return [scored(using=_PASSAGE, **_CANDIDATE), scored(using="units")]


def _sparse(terms: list[int]) -> models.SparseVector:
    return models.SparseVector(indices=terms, values=[1.0] * len(terms))


def _vectors(dimension: int) -> dict[str, models.VectorParams]:
    best_unit = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    cosine = models.Distance.COSINE
    return {
        _PASSAGE: models.VectorParams(size=dimension, distance=cosine),
        "units": models.VectorParams(size=dimension, distance=cosine, multivector_config=best_unit),
    }


async def _index(nodes: Nodes, name: str, field: str, kind: models.PayloadSchemaType) -> None:
    await nodes.call(lambda client: client.create_payload_index(name, field, kind, wait=True))


async def _upsert(nodes: Nodes, name: str, points: list[models.PointStruct]) -> None:
    await nodes.call(lambda client: client.upsert(name, points, wait=True))


async def _delete(nodes: Nodes, name: str) -> None:
    await nodes.call(lambda client: client.delete_collection(name), seconds=_WRITE_S)


def _set_alias(alias: str, name: str) -> models.CreateAliasOperation:
    return models.CreateAliasOperation(
        create_alias=models.CreateAlias(alias_name=alias, collection_name=name)
    )


def _remove_alias(alias: str) -> models.DeleteAliasOperation:
    return models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))


def _batches(entries: Iterable[IndexedPassage]) -> Iterator[list[IndexedPassage]]:
    """Yield as many passages as fit into one request: vectors are nearly all of its size."""
    batch: list[IndexedPassage] = []
    numbers = 0
    for entry in entries:
        size = 0 if entry.vector is None else entry.vector.size + entry.unit_vectors.size
        if batch and numbers + size > _BATCH_NUMBERS:
            yield batch
            batch, numbers = [], 0
        batch.append(entry)
        numbers += size
    if batch:
        yield batch


# --- points ---------------------------------------------------------------------------------------


def _point_id(passage_id: str) -> str:
    """Return a UUID (version 8) of the first 122 bits of the hash: Qdrant takes no longer ids."""
    bits = int(passage_id[:32], 16)
    bits = (bits & ~(0xF << 76) & ~(0x3 << 62)) | (0x8 << 76) | (0x2 << 62)
    return str(uuid.UUID(int=bits))


def _to_point(entry: IndexedPassage, dimension: int) -> models.PointStruct:
    terms = models.SparseVector(indices=list(entry.terms), values=list(entry.terms.values()))
    return models.PointStruct(
        id=_point_id(entry.passage.id),
        vector={**_dense_vectors(entry, dimension), "terms": terms},
        payload=to_payload(entry.passage),
    )


def to_payload(passage: Passage) -> dict[str, Any]:
    """Return the record of a passage, and the payload fields of the data models."""
    return {
        **to_record(passage),
        **to_filterable(passage),
        "keywords": list(passage.metadata.keywords),
        "filename": passage.place.file,
        "chunk_index": passage.position,
    }


def _dense_vectors(entry: IndexedPassage, dimension: int) -> dict[str, Any]:
    """Return the vectors of the passage and of its units; without units, the passage's for both."""
    if entry.vector is None:
        return {}
    check_vectors(entry, dimension)
    units = entry.unit_vectors if len(entry.unit_vectors) else entry.vector[None, :]
    return {_PASSAGE: entry.vector.tolist(), "units": units.tolist()}


def _to_candidate(point: Any, cosine: float, unit_cosine: float) -> Candidate:
    """Build a candidate from a point with its terms, id and content hash."""
    return Candidate(
        passage_id=point.payload["id"],
        content_hash=point.payload["content_hash"],
        cosine=cosine,
        unit_cosine=unit_cosine,
        terms=_terms(point.vector["terms"]),
    )


def _to_entry(point: Any) -> IndexedPassage:
    """Build an entry from a point with its payload and all its vectors."""
    vectors = point.vector
    pending = _PASSAGE not in vectors
    return IndexedPassage(
        from_record(point.payload),
        None if pending else _floats(vectors[_PASSAGE]),
        _floats([] if pending else vectors["units"]),
        _terms(vectors["terms"]),
    )


def _terms(sparse: Any) -> dict[int, float]:
    return dict(zip(sparse.indices, sparse.values, strict=True))


def _floats(values: object) -> Vectors:
    return np.asarray(values, dtype=np.float32)
