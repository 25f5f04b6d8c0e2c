"""The way of a book's sources into its stores: read, embed, publish; and checks of the result.

An ingest records its file accesses and its result in the home folder. The next one repeats the
accesses first: if all give the same results and the generation is still served, nothing has to be
read. A lost, damaged or outdated record only means that the sources are read again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bythebook import ingestion, language, sources, text, types
from bythebook.ingestion.indexer import Indexer, IngestProgress, IngestResult
from bythebook.ingestion.integrity import IndexReport, compare
from bythebook.ingestion.read_book import LeftOutTotal, ParsedBook, SiteOptions, read_book
from bythebook.interfaces import blocks
from bythebook.offload import offload, offloaded
from bythebook.sources.files import FileProbe, ProbeKind
from bythebook.sources.inventory import UnreadFile
from bythebook.sources.registry import registered_sources
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


# --- the record of an ingest ---------------------------------------------------------------------


_FILE = "sources.json"
_UNSET = (("format", None), ("sources", ()))  # left out: older books have no such options


@dataclass(frozen=True, slots=True)
class SourceManifest:
    generation: str  # name of the generation that was published
    origin: str  # source folder and options
    seen: Mapping[FileProbe, str]
    result: IngestResult

    def holds(self) -> bool:
        """Return whether the sources are unchanged."""
        return all(look.shows() == shown for look, shown in self.seen.items())

    @property
    def again(self) -> IngestResult:
        """Return the result of an ingest that found no changes."""
        passages = self.result.chunks_created
        return replace(self.result, embedded=0, changed=0, removed=0, unchanged=passages)

    def keep(self, home: Path) -> None:
        """Replace the stored record atomically."""
        document = {
            "reader": _reader(),
            "generation": self.generation,
            "origin": self.origin,
            "seen": [[*_fields(look), shown] for look, shown in self.seen.items()],
            "result": asdict(self.result),
        }
        text = json.dumps({**document, "digest": _digest(document)})
        # Fixed name: the next ingest overwrites the remains of a killed one.
        draft = home / f"{_FILE}.new"
        with suppress(OSError):
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.write_text(text, "ascii")
            draft.replace(home / _FILE)


def _fields(look: FileProbe) -> tuple[str, str, str]:
    return look.act.value, look.root, look.path


def find_manifest(home: Path, origin: str) -> SourceManifest | None:
    """Return the stored record if origin and reader version match, or None."""
    try:
        document = json.loads((home / _FILE).read_text("ascii"))
        if document["reader"] != _reader() or document["origin"] != origin:
            return None
        if document.pop("digest") != _digest(document):  # corrupted on disk
            return None
        return SourceManifest(
            generation=document["generation"],
            origin=origin,
            seen={
                FileProbe(ProbeKind(act), root, path): shown
                for act, root, path, shown in document["seen"]
            },
            result=_result(document["result"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def origin_of(docs: Path, site: SiteOptions) -> str:
    """Return the folder and the site options as one text, recorded in the index."""
    options = {name: value for name, value in asdict(site).items() if (name, value) not in _UNSET}
    origin = {"docs": str(docs.resolve()), "site": options}
    return json.dumps(origin, ensure_ascii=False, sort_keys=True)


async def read_sources(docs: Path, site: SiteOptions, progress: IngestProgress) -> ParsedBook:
    """Read the book on a worker thread, which stops after a page if the caller is cancelled."""
    pages, stopped = count(1), threading.Event()

    def on_page(_: object) -> None:
        if stopped.is_set():
            raise asyncio.CancelledError
        progress.pages_read(next(pages))

    try:
        return await asyncio.to_thread(read_book, docs, site, on_page=on_page)
    finally:
        stopped.set()


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _result(fields: dict[str, Any]) -> IngestResult:
    texts = {name: tuple(fields[name]) for name in ("errors", "notes", "warnings")}
    not_read = tuple(UnreadFile(**file) for file in fields["not_read"])
    left_out = tuple(LeftOutTotal(**total) for total in fields["left_out"])
    return IngestResult(**{**fields, **texts, "not_read": not_read, "left_out": left_out})


@cache
def _reader() -> str:
    """Return a digest of the parsing code: other code may read the same files differently."""
    digest = hashlib.sha256()
    packages = (
        Path(str(package.__file__)).parent for package in (sources, ingestion, text, language)
    )
    files = [file for package in packages for file in sorted(package.rglob("*.*"))]
    for file in (*files, Path(str(types.__file__)), Path(str(blocks.__file__))):
        if file.suffix != ".pyc":
            digest.update(file.read_bytes())
    for entry in registered_sources().values():
        if entry.dist is not None:
            digest.update(f"{entry.name} {entry.value} {entry.dist.version}\n".encode())
    return digest.hexdigest()
