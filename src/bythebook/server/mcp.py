"""Serve the book as tools of the Model Context Protocol (MCP), over stdio or at ``/mcp``.

The package ``mcp`` is an optional extra: import this module only if it is installed.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook import __version__, validation
from bythebook.book import Book
from bythebook.contracts.errors import Call, is_ours, sentence_of, status_of
from bythebook.errors import BookError, Stopping
from bythebook.interfaces.conversations import Asker
from bythebook.server.contracts.mcp_tools import TOOLS
from bythebook.server.middleware import ContractRoute
from bythebook.server.requests import asker_of

_log = logging.getLogger(__name__)

PATH = "/mcp"
_INSTRUCTIONS = (
    "A book that answers questions from its own text only. Use ask_book for a question, "
    "search_book to find passages and read_section to read a whole section. Keep the citations: "
    "each sentence of an answer has a link to the passage that supports it. A refusal means that "
    "the book does not contain the answer."
)
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")


def make_server(book: Book) -> Server[Any]:
    async def list_tools(
        _: ServerRequestContext[Any], __: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        read_only = mcp_types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        listed = [
            mcp_types.Tool(
                name=name,
                description=inspect.getdoc(tool),
                input_schema=tool.model_json_schema(),
                output_schema=tool.result.model_json_schema(mode="serialization"),
                annotations=read_only,
            )
            for name, tool in TOOLS.items()
        ]
        return mcp_types.ListToolsResult(tools=listed)

    async def call_tool(
        context: ServerRequestContext[Any], params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        request = context.request
        asker = await asker_of(request) if isinstance(request, Request) else Asker()
        text, result = await _call(book, params.name, params.arguments or {}, asker)
        return mcp_types.CallToolResult(
            content=[mcp_types.TextContent(text=text)],
            structured_content=None if result is None else result.model_dump(mode="json"),
            is_error=result is None,
        )

    return Server(
        "bythebook",
        version=__version__,
        title="By the Book",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _call(
    book: Book, name: str, arguments: dict[str, Any], asker: Asker
) -> tuple[str, BaseModel | None]:
    """Call a tool; return its text and its result, or a readable error message and None."""
    tool = TOOLS.get(name)
    if tool is None:
        return f"There is no such tool. There are {', '.join(TOOLS)}.", None
    try:
        result = await tool.model_validate(arguments).run(book, asker)
    except ValidationError as invalid:
        # "query" alone would be read as the part of a request that holds the fields.
        errors = [{**error, "loc": ("body", *error["loc"])} for error in invalid.errors()]
        message, _ = validation.message_of(errors, arguments)
        return f"{message} Correct the call.", None
    except BookError as error:
        if is_ours(error):
            _log.warning("%s: %s", type(error).__name__, error)
        return sentence_of(error), None
    except Exception:
        _log.exception("a tool failed")  # a stack trace is of no use to an assistant
        return "Something went wrong. Try again.", None
    return result.as_text(), result


# --- over stdio -----------------------------------------------------------------------------------


async def serve_stdio(book: Book) -> None:
    """Serve until the client closes standard input."""
    server = make_server(book)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


# --- over HTTP ------------------------------------------------------------------------------------


class RpcFailure(BaseModel):
    jsonrpc: str = "2.0"
    id: None = None
    error: dict[str, int | str]


def fail(error: BookError, _: Call | None = None, /) -> tuple[int, RpcFailure]:
    """Return a rejected request as a JSON-RPC server error."""
    return status_of(error), RpcFailure(error={"code": -32000, "message": sentence_of(error)})


class McpEndpoint:
    """Stateless endpoint ``POST /mcp``: any worker can answer any request.

    ``private``: only this machine has access, without a key; DNS rebinding protection then keeps
    out web pages that are open in a local browser.
    """

    def __init__(self, book: Book, *, private: bool) -> None:
        self._book = book
        self._private = private
        self._app: ASGIApp | None = None
        self.contract = ContractRoute("MCP", Route(PATH, self, methods=["POST"]), fail)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        hosts = [name for host in _LOCAL_HOSTS for name in (host, f"{host}:*")]
        manager = StreamableHTTPSessionManager(
            make_server(self._book),
            json_response=True,
            stateless=True,
            security_settings=TransportSecuritySettings(
                enable_dns_rebinding_protection=self._private,
                allowed_hosts=hosts,
                allowed_origins=[f"http://{host}" for host in hosts],
            ),
        )
        async with manager.run():
            self._app = manager.asgi_app
            yield
        self._app = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            raise Stopping
        await self._app(scope, receive, send)
