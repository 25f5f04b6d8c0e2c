"""A chat with a slow writer, to test interruption."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from bythebook.book import Book
from bythebook.cli.chat import converse
from bythebook.config.settings import load_settings
from bythebook.errors import WriterFailed
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.types import Evidence, Message, Question
from tests.support.samples import read


class SlowWriter:
    """A sentence at once, and the next one never; without a kite in the question, an error."""

    name = "fake:slow"

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[str]:
        del evidence, history
        if "kite" not in question.text:
            raise WriterFailed("The model did not answer.", hint="Ask again in a minute.")
        yield "A kite flies because the wind pushes it upwards. [1] The string keeps it "
        await asyncio.sleep(3600)


def main() -> None:
    library = Book(
        embedder=FakeEmbedder(),
        store=MemoryGenerationStore(),
        catalog=MemoryCatalog(),
        threads=MemoryThreads(),
        make_writer=lambda index: SlowWriter(),
    )
    asyncio.run(library.ingest(read(Path(sys.argv[1]))))
    settings = load_settings({"limits": {"min_score": 0.0}}, environ={})
    sys.exit(converse(library, settings.limits.question))


if __name__ == "__main__":
    main()
