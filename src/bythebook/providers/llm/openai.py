"""Writer for OpenAI-compatible endpoints."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from bythebook.errors import Truncated
from bythebook.interfaces.writer import Prompt
from bythebook.providers.llm.chat import ChatModel
from bythebook.types import Role

if TYPE_CHECKING:
    from bythebook.interfaces.writer import Compose, DraftPiece
    from bythebook.providers.llm.service import ModelService
    from bythebook.types import Evidence, Message, Question

_PROBE_TOKENS = 16


class OpenAIWriter:
    """Writer that uses a language model at ``/chat/completions``."""

    def __init__(self, service: ModelService, *, compose: Compose) -> None:
        self.name = service.account.service.name
        self._service = service
        self._chat = ChatModel(service)
        self._compose = compose

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncGenerator[DraftPiece, None]:
        prompt = self._compose(question, evidence, history)
        async with aclosing(self._chat.generate(prompt, self._service.draft(prompt))) as pieces:
            async for piece in pieces:
                yield piece

    async def probe(self) -> None:
        """Check endpoint, key and model with a request of a few tokens."""
        prompt = Prompt("Answer with one word.", ((Role.USER, "Are you there?"),))
        draft = self._service.draft(prompt, max_tokens=_PROBE_TOKENS)
        try:
            async with aclosing(self._chat.generate(prompt, draft)) as pieces:
                async for _ in pieces:
                    pass
        except Truncated:
            return
