"""What a contract declares, and what its routes use: the book, the streams, shared fields."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from fastapi import APIRouter, Request
from pydantic import BaseModel

from bythebook.answering.pipeline import Event
from bythebook.book import Book
from bythebook.contracts.errors import Fail
from bythebook.contracts.fields import with_web_address, with_web_addresses, with_web_links
from bythebook.interfaces.conversations import Asker
from bythebook.server import examples
from bythebook.server.sse import Streams
from bythebook.types import Citation, Message, Question, Reply, Sentence

_SHARED_PATH = "/api/query"


@dataclass(frozen=True, slots=True)
class Services:
    """What routes work with. ``api_query`` names the contract that serves ``/api/query``."""

    book: Book
    streams: Streams
    api_query: str = "envelope"

    async def reply(
        self, question: Question, asker: Asker, request: Request, history: Sequence[Message] = ()
    ) -> Reply:
        """Answer; record for the response header whether vector search was available."""
        reply = await self.book.reply(question, asker=asker, history=history)
        request.state.vectors = reply.vectors
        return with_web_addresses(reply, reader_of(request))

    async def ask(
        self, question: Question, asker: Asker, request: Request, history: Sequence[Message] = ()
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of an answer."""
        reader = reader_of(request)
        events = self.book.ask(question, asker=asker, history=history)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Reply):
                    yield with_web_addresses(event, reader)
                elif isinstance(event, Citation):
                    yield with_web_address(event, reader)
                elif isinstance(event, Sentence):
                    yield with_web_links(event, reader)
                else:
                    yield event

    def paths(self, contract: str, own: str) -> tuple[str, ...]:
        """Return the contract's own path and, if it serves that too, the shared one."""
        return (own, _SHARED_PATH) if self.api_query == contract else (own,)


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """Event of a stream, for the OpenAPI document."""

    name: str
    occurs: str
    data: type[BaseModel]


@dataclass(frozen=True, slots=True)
class Contract:
    """An HTTP contract. Its name is the tag of its routes."""

    name: str
    about: str
    error: type[BaseModel]
    fail: Fail
    add_routes: Callable[[APIRouter, Services], None]
    error_code: str = ""  # path of the error code in the error body; empty if there is none
    statuses: tuple[int, ...] = ()  # of errors of all its routes, beyond the usual ones
    events: tuple[StreamEvent, ...] = ()

    def router(self, services: Services) -> APIRouter:
        statuses = (*examples.USUAL_ERRORS, *self.statuses)
        responses = examples.error_responses(self.error, self.fail, statuses)
        router = APIRouter(tags=[self.name], responses=responses)
        self.add_routes(router, services)
        return router


def reader_of(request: Request) -> str:
    """Return the URL under which this server shows the pages of the book."""
    return f"{request.base_url}read/"
