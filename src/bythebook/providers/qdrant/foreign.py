"""Read-only access to a Qdrant collection that another system fills.

The collection has one dense vector per passage and a flat payload, nothing else: passages are found
by vector and then also scored by keywords. The payload's field names are configured
(``collection.fields``); document frequencies come from one scan over all passages.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from qdrant_client import AsyncQdrantClient, models

from bythebook.errors import ConfigurationError, EmbedderMismatch
from bythebook.interfaces.models import Embedder
from bythebook.interfaces.store import Candidate, Filters, Generation, IndexedPassage
from bythebook.language.terms import Vocabulary
from bythebook.language.text import well_formed
from bythebook.language.tokens import estimate_tokens
from bythebook.providers.qdrant.nodes import Nodes, Server, to_filter
from bythebook.text.selections import content_hash
from bythebook.text.text_kinds import with_text_kinds
from bythebook.text.units import split_units
from bythebook.types import Metadata, Passage, Place

if TYPE_CHECKING:
    from bythebook.types import Vectors

_SCAN_S = 30.0  # timeout for one page of the scan over all passages
_PAGE = 256
_WAYS = 3  # retrieval methods of other stores; the only one here returns as many as all three


def refuse(*_: object, **__: object) -> NoReturn:
    """Refuse to write; the methods of a catalog and of a generation store that would."""
    raise ConfigurationError(
        "A collection of another system is read-only.",
        hint="Unset collection.existing to ingest a book.",
    )


class ForeignCollection:
    """The collection as a catalog with one generation and as its generation store."""

    publish = discard = ingesting = known_vectors = add_vectors = vectors = commit = refuse

    def __init__(
        self,
        server: Server,
        collection: str,
        *,
        embedder: Embedder,
        fields: Mapping[str, str],
        vector: str | None = None,
    ) -> None:
        self._server = server
        self._collection = collection
        self._embedder = embedder
        self._fields = fields
        self._vector = vector
        self._nodes = Nodes(server)
        self._generation: Generation | None = None
        self._scanning = threading.Lock()

    async def open(self, generation: str) -> ForeignStore:
        del generation  # there is only one
        scanned = await asyncio.to_thread(self.current)
        return ForeignStore(
            self._nodes,
            self._collection,
            using=self._vector_name(await self._params(self._nodes)),
            fields=self._fields,
            vocabulary=Vocabulary.from_bytes(scanned.vocabulary),
        )

    async def close(self) -> None:
        await self._nodes.close()

    def current(self) -> Generation:
        """Return the generation as of the first scan; searches always see the current data."""
        with self._scanning:
            if self._generation is None:
                passages = list(self.passages().values())
                self._generation = Generation(
                    name=self._collection,
                    embedder=self._embedder.name,
                    dimension=self._embedder.dimension,
                    passages=len(passages),
                    fingerprint="",
                    vocabulary=Vocabulary.of(passages).to_bytes(),
                )
            return self._generation

    def served(self) -> str:
        return self.current().name

    def passages(self) -> dict[str, Passage]:
        return {passage.id: passage for passage in asyncio.run(self._scan())}

    async def _scan(self) -> list[Passage]:
        nodes = Nodes(replace(self._server, timeout_s=_SCAN_S))
        passages: list[Passage] = []
        offset: Any = None  # of the next page
        scroll = partial(AsyncQdrantClient.scroll, collection_name=self._collection, limit=_PAGE)
        try:
            self._check(await self._params(nodes))
            while True:
                records, offset = await nodes.call(partial(scroll, offset=offset))
                passages += [to_passage(point.id, point.payload, self._fields) for point in records]
                if offset is None:
                    return self._with_text(passages)
        finally:
            await nodes.close()

    def _with_text(self, passages: Sequence[Passage]) -> list[Passage]:
        readable = [passage for passage in passages if passage.text]
        if passages and not readable:
            raise ConfigurationError(
                f"No point of {self._collection} has its text in the field "
                f"{self._fields.get('text', 'text')}.",
                hint="Choose the preset that fits, or set collection.fields.",
            )
        return readable

    async def _params(self, nodes: Nodes) -> models.CollectionParams:
        name = self._collection
        if not await nodes.call(lambda client: client.collection_exists(name), seconds=_SCAN_S):
            raise ConfigurationError(
                f"The server has no collection {name}.", hint="Check collection.name."
            )
        collection = await nodes.call(lambda client: client.get_collection(name), seconds=_SCAN_S)
        return collection.config.params

    def _check(self, params: models.CollectionParams) -> None:
        vectors, name = params.vectors, self._vector_name(params)
        chosen = vectors[name or ""] if isinstance(vectors, dict) else vectors
        assert isinstance(chosen, models.VectorParams)
        if chosen.distance is not models.Distance.COSINE:
            raise ConfigurationError(
                f"The collection {self._collection} uses {chosen.distance.value} distance.",
                hint="Only cosine distance is supported.",
            )
        if chosen.size != self._embedder.dimension:
            raise EmbedderMismatch(
                f"The collection {self._collection} holds vectors of dimension {chosen.size}, but "
                f"{self._embedder.name} makes {self._embedder.dimension}.",
                hint="Set embedder to the one that filled the collection.",
            )

    def _vector_name(self, params: models.CollectionParams) -> str | None:
        vectors = params.vectors
        if not isinstance(vectors, dict):
            return None
        unnamed = [""] if "" in vectors else list(vectors)
        names = [self._vector] if self._vector else unnamed
        if len(names) != 1 or names[0] not in vectors:
            raise ConfigurationError(
                f"The collection {self._collection} has the vectors {', '.join(vectors)}.",
                hint="Name one of them in collection.vector.",
            )
        return names[0]


@dataclass(frozen=True)
class ForeignStore:
    """The collection, opened for reading."""

    nodes: Nodes
    collection: str
    using: str | None  # the vector's name
    fields: Mapping[str, str]
    vocabulary: Vocabulary

    async def find(
        self, vector: Vectors | None, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Candidate]:
        """Search by vector only, the collection has no keyword index; keyword weights are added."""
        if vector is None:
            return []
        response = await self.nodes.call(
            lambda client: client.query_points(
                self.collection,
                query=vector.tolist(),
                using=self.using,
                query_filter=to_filter(filters, self.fields),
                limit=limit * _WAYS,
            )
        )
        candidates = await asyncio.to_thread(lambda: list(map(self._candidate, response.points)))
        return [candidate for candidate in candidates if candidate.terms]

    async def fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        points = [int(one) if one.isdecimal() else one for one in passage_ids]
        vectors = True if self.using is None else [self.using]
        records = await self.nodes.call(
            lambda client: client.retrieve(self.collection, points, with_vectors=vectors)
        )
        entries = await asyncio.to_thread(lambda: list(map(self._entry, records)))
        by_id = {entry.passage.id: entry for entry in entries}
        return [by_id[one] for one in passage_ids if one in by_id]

    async def count(self) -> int:
        """Return the number of scanned passages; the call only checks that the server answers."""
        await self.nodes.call(lambda client: client.count(self.collection, exact=False))
        return self.vocabulary.passages

    async def close(self) -> None:
        """Do nothing: the connections belong to the generation store and are shared."""

    def _candidate(self, point: models.ScoredPoint) -> Candidate:
        passage = to_passage(point.id, point.payload, self.fields)
        terms = self.vocabulary.weigh(passage)
        return Candidate(passage.id, passage.content_hash, point.score, point.score, terms)

    def _entry(self, record: models.Record) -> IndexedPassage:
        passage = to_passage(record.id, record.payload, self.fields)
        stored: object = record.vector
        if isinstance(record.vector, dict) and self.using is not None:
            stored = record.vector[self.using]
        vector = np.asarray(stored, dtype=np.float32)
        # Only whole passages were embedded, so each unit gets the passage's vector.
        units = np.broadcast_to(vector, (max(1, len(passage.units)), len(vector)))
        return IndexedPassage(passage, vector, units, self.vocabulary.weigh(passage))


def to_passage(
    point_id: object, payload: Mapping[str, Any] | None, fields: Mapping[str, str]
) -> Passage:
    """Convert a point's payload to a passage; missing fields stay empty."""
    values = payload or {}

    def read(name: str) -> Any:
        return values.get(fields.get(name, name))

    def read_text(name: str) -> str:
        return well_formed(str(read(name) or ""))

    text, section, chapter, file = map(read_text, ("text", "section", "chapter", "file"))
    passage = Passage(
        id=str(point_id),
        text=text,
        place=Place(
            file=file,
            title=read_text("title") or chapter or file,
            url=read_text("url"),
            module=read_text("module"),
            chapter=chapter,
            section=(section,) if section else (),
        ),
        position=_number(read("position")) or 0,
        content_hash=content_hash(text),
        metadata=Metadata(
            language=read_text("language") or "en",
            week=_number(read("week")),
            difficulty=read("difficulty"),
            keywords=tuple(map(str, read("keywords") or ())),
            has_code=bool(read("hasCode")),
        ),
        units=split_units(text),
        tokens=estimate_tokens(text),
    )
    return with_text_kinds(passage)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
