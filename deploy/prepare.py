"""Makes the embedding models ready for use, in the cache: part of building an image."""

import asyncio

from bythebook.providers.embeddings.local import LocalEmbedder
from bythebook.providers.embeddings.local.models import MODELS


async def main() -> None:
    for name in MODELS:
        await LocalEmbedder(name).prepare()


if __name__ == "__main__":
    asyncio.run(main())
