"""The way of a book's sources into its stores: read, embed, publish; and checks of the result."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bythebook.ingestion.indexer import Indexer, IngestProgress, IngestResult
from bythebook.ingestion.integrity import IndexReport, compare
from bythebook.ingestion.read_book import ParsedBook
from bythebook.ingestion.source_manifest import (
    SourceManifest,
    find_manifest,
    origin_of,
    read_sources,
)
from bythebook.offload import offload, offloaded
from bythebook.types import VectorState

if TYPE_CHECKING:
    from bythebook.generations import Generations
    from bythebook.wiring import Providers


@dataclass(frozen=True, slots=True)
class Ingest:
    """Ingests of one open book, one at a time."""

    providers: Providers
    generations: Generations

    async def ingest(
        self,
        docs: Path | str | ParsedBook,
        *,
        progress: IngestProgress | None = None,
        origin: str | None = None,
        allow_removal: bool = False,
    ) -> IngestResult:
        """Read the sources, embed what changed and serve the result (see ``Book.ingest``)."""
        started = time.perf_counter()
        progress = progress or IngestProgress()
        if isinstance(docs, ParsedBook):
            result = await self._publish(docs, origin or "", progress, allow_removal)
        else:
            result = await self._ingest_folder(Path(docs), origin, progress, allow_removal)
        return replace(result, seconds=time.perf_counter() - started)

    async def _ingest_folder(
        self, docs: Path, origin: str | None, progress: IngestProgress, allow_removal: bool
    ) -> IngestResult:
        home, site = self.providers.home, self.providers.site
        origin = origin or origin_of(docs, site)
        manifest = None if home is None else await offload(lambda: find_manifest(home, origin))
        unchanged = manifest is not None and await offload(manifest.holds)
        if manifest is not None and unchanged and await self.serves(manifest.generation):
            return manifest.again
        parsed = await read_sources(docs, site, progress)
        result = await self._publish(parsed, origin, progress, allow_removal)
        if home is not None and result.published:
            manifest = SourceManifest(result.generation, origin, parsed.seen, result)
            await offload(lambda: manifest.keep(home))
        return result

    async def _publish(
        self, parsed: ParsedBook, origin: str, progress: IngestProgress, allow_removal: bool
    ) -> IngestResult:
        former = self.generations.embedder.name
        if (choose := self.providers.choose_embedder) is not None:
            self.generations.use_embedder(await offload(lambda: choose(parsed.passages)))
        async with offloaded(self.providers.catalog.ingesting()):
            result = await self._indexer().ingest(
                parsed,
                origin=origin,
                progress=progress,
                price_in=self.providers.settings.embedding.price_in,
                allow_removal=allow_removal,
            )
        if not result.published:
            self.generations.use_embedder(former)  # the one of the book that is kept
        return result

    async def serves(self, generation: str) -> bool:
        """Return whether this generation is served whole and with vectors: no ingest needed."""
        async with offloaded(self.providers.catalog.ingesting()):
            return await self._indexer().serves(generation)

    async def check_index(self, sources: ParsedBook | None) -> IndexReport:
        """Report whether catalog, index and sources agree."""
        passages = None if sources is None else sources.passages
        current = await offload(self.generations.current)
        return await compare(self._indexer(), current, passages)

    async def repair_index(self) -> None:
        """Rebuild the index from the catalog, without parsing or embedding.

        If vectors have been lost, the book is searched by keywords until the next ingest.
        """
        catalog = self.providers.catalog
        async with offloaded(catalog.ingesting()):
            indexer, current = self._indexer(), await offload(self.generations.current)
            passages = list((await offload(catalog.passages)).values())
            missing = await offload(lambda: indexer.missing(passages))
            vectors = VectorState.PENDING if missing else VectorState.READY
            await indexer.publish(passages, vectors, origin=current.origin, again=True)

    async def origin(self) -> str:
        """Return the source of the served book, as recorded by its ingest."""
        return (await offload(self.generations.current)).origin

    def _indexer(self) -> Indexer:
        generations = self.generations
        return Indexer(self.providers.catalog, generations.store, generations.embedder)
