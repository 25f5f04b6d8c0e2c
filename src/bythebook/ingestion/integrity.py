"""Checks of an ingested book: catalog, index and sources agree, and stored URLs resolve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import numpy as np

from bythebook.errors import IndexDamaged, SourceError, StoreFailed
from bythebook.ingestion.pages import ParsedPage
from bythebook.offload import offload
from bythebook.text.passage_records import batches, vector_key
from bythebook.types import Passage, VectorState

if TYPE_CHECKING:
    from bythebook.ingestion.indexer import Indexer
    from bythebook.interfaces.store import Generation, IndexedPassage, StoredVectors


_BATCH = 256
_CLOSE = 1e-3  # tolerance: stores may keep vectors with less precision than the catalog


@dataclass(frozen=True, slots=True)
class IndexReport:
    """Differences by passage id; all empty if catalog, index and sources agree."""

    passages: int
    vectors: VectorState
    unreadable: str = ""  # why the index could not be read
    missing: tuple[str, ...] = ()  # in the catalog, not in the index
    different: tuple[str, ...] = ()  # other text or vectors in the index than in the catalog
    surplus: int = 0  # in the index, not in the catalog
    without_vectors: tuple[str, ...] = ()  # never embedded, or lost: an ingest creates them
    not_ingested: tuple[str, ...] = ()  # in the sources, not in the catalog
    gone: tuple[str, ...] = ()  # in the catalog, no longer in the sources

    @property
    def index_is_right(self) -> bool:
        """Return whether the index matches the catalog."""
        return not (self.unreadable or self.missing or self.different or self.surplus)

    @property
    def is_current(self) -> bool:
        """Return whether the catalog matches the sources and has all vectors."""
        return not (self.without_vectors or self.not_ingested or self.gone)


async def compare(
    indexer: Indexer, generation: Generation, sources: Iterable[Passage] | None
) -> IndexReport:
    """Compare the three. ``sources`` is None if they can no longer be read."""
    known = await offload(indexer.catalog.passages)
    now = known.keys() if sources is None else {passage.id for passage in sources}
    embedded = await offload(lambda: indexer.catalog.known_vectors(generation.embedder))
    wanted = generation.vectors is VectorState.READY
    unreadable, missing, different, surplus = "", [], [], 0
    try:
        store = await indexer.store.open(generation.name)
        surplus = max(0, await store.count() - len(known))
        for ids in batches(list(known), _BATCH):
            entries = {entry.passage.id: entry for entry in await store.fetch(ids)}
            missing += [passage_id for passage_id in ids if passage_id not in entries]
            keys = {passage_id: vector_key(known[passage_id]) for passage_id in ids if wanted}
            read = partial(indexer.catalog.vectors, generation.embedder, list(keys.values()))
            vectors = await offload(read) if keys else {}
            different += [
                passage_id
                for passage_id, entry in entries.items()
                if not _is_same(entry, known[passage_id], vectors.get(keys.get(passage_id, "")))
            ]
    except (IndexDamaged, StoreFailed) as error:
        unreadable = error.message
    return IndexReport(
        passages=len(known),
        vectors=generation.vectors,
        unreadable=unreadable,
        missing=tuple(missing),
        different=tuple(different),
        surplus=surplus,
        without_vectors=tuple(i for i, p in known.items() if vector_key(p) not in embedded),
        not_ingested=tuple(sorted(now - known.keys())),
        gone=tuple(sorted(known.keys() - now)),
    )


def _is_same(entry: IndexedPassage, passage: Passage, stored: StoredVectors | None) -> bool:
    if entry.passage != passage:
        return False
    if stored is None or entry.vector is None:
        return stored is None  # no vector in the catalog to compare with
    return bool(np.allclose(entry.vector, stored.vector, atol=_CLOSE))


# --- links ---------------------------------------------------------------------------------------


def lost_in_sources(urls: Iterable[str], pages: Iterable[ParsedPage]) -> list[str]:
    """Return the URLs that match no page or heading of the sources."""
    valid: set[str] = set()
    for page in pages:
        valid.add(page.url)
        valid.update(f"{page.url}#{anchor}" for _, anchor in page.headings if anchor)
    return sorted(set(urls) - valid)


def lost_in_build(urls: Iterable[str], build: Path) -> list[str]:
    """Return the URLs that match no page or element id of a built site."""
    if not build.is_dir() or not any(build.rglob("*.html")):
        raise SourceError(
            f"{build} is not a built site.", hint="Name the folder that `docusaurus build` wrote."
        )
    ids: dict[Path, frozenset[str]] = {}
    return sorted(url for url in set(urls) if not _is_built(url, build, ids))


def _is_built(url: str, build: Path, ids: dict[Path, frozenset[str]]) -> bool:
    parts = urlsplit(url)
    file = _file_of(unquote(parts.path), build)
    if file is None:
        return False
    if file not in ids:
        ids[file] = _ids_of(file)
    return not parts.fragment or unquote(parts.fragment) in ids[file]


def _file_of(path: str, build: Path) -> Path | None:
    """Return the page's file. Leading segments of the base URL are not part of the build folder."""
    segments = [segment for segment in path.split("/") if segment]
    for start in range(len(segments) + 1):
        below = build.joinpath(*segments[start:])
        for file in (below, below / "index.html", below.with_name(f"{below.name}.html")):
            if file.is_file():
                return file
    return None


def _ids_of(file: Path) -> frozenset[str]:
    collector = _Ids()
    collector.feed(file.read_text("utf-8", errors="replace"))
    return frozenset(collector.ids)


class _Ids(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes: Mapping[str, str | None] = dict(attrs)
        if attributes.get("id"):
            self.ids.add(str(attributes["id"]))
