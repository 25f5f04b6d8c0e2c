"""The parts that a ``Book`` is made of; ``wiring`` chooses them, tests pass fakes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bythebook.answering.extractive import ExtractiveWriter
from bythebook.interfaces.source import SiteOptions
from bythebook.retrieval.search import SearchContext

if TYPE_CHECKING:
    from pathlib import Path

    from bythebook.answering.answer_cache import AnswerCache
    from bythebook.conversations.query_log import LogQueue
    from bythebook.conversations.retention import Archiver
    from bythebook.errors import BookError
    from bythebook.grounding.verifier import SupportModel
    from bythebook.interfaces.conversations import FeedbackStore, ThreadStore
    from bythebook.interfaces.embedding import Embedder
    from bythebook.interfaces.reader import Reader
    from bythebook.interfaces.store import Catalog, GenerationStore, PassageStore
    from bythebook.interfaces.writer import Writer
    from bythebook.language.terms import Vocabulary
    from bythebook.types import Passage

MakeWriter = Callable[[SearchContext], "Writer | ExtractiveWriter"]
MakeKeywordStore = Callable[[Iterable["Passage"], "Vocabulary"], "PassageStore"]


def extractive(index: SearchContext) -> ExtractiveWriter:
    """Return the writer that needs no language model."""
    del index
    return ExtractiveWriter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    embedder: Embedder
    store: GenerationStore
    catalog: Catalog
    threads: ThreadStore
    log: LogQueue | None = None
    archiver: Archiver | None = None
    feedback: FeedbackStore | None = None
    reader: Reader | None = None  # None: the retrieval signals decide what is answered
    # Writing
    make_writer: MakeWriter = extractive
    make_fallback: MakeWriter | None = None  # None: a failing writer is an error
    support_model: SupportModel | None = None  # language model that verifies sentences
    model_only: bool = False  # … instead of the reader, not as well
    writer_failure: Callable[[], BookError | None] | None = None  # of a model's last call
    context_tokens: int = 4000
    answer_cache: AnswerCache | None = None
    # Another embedder by name, with its store. None: a book made with another one is an error.
    switch_embedder: Callable[[str], tuple[Embedder, GenerationStore]] | None = None
    choose_embedder: Callable[[Iterable[Passage]], str] | None = None  # for the book to ingest
    # Answers while the index or the embedder is down. None: that is an error.
    make_keyword_store: MakeKeywordStore | None = None
    retry_s: float = 5.0  # until an index that failed is tried again
    deadline_s: float = 1.0  # of a catalog call before a question
    # Ingest
    home: Path | None = None  # folder of the source manifest; None: sources are always read
    site: SiteOptions = field(default_factory=SiteOptions)
    price_in: float | None = None  # of a million tokens sent to the embedder, in US dollars
    on_close: Callable[[], Awaitable[None]] | None = None
