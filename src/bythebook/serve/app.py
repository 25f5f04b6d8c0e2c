"""An open library in, an ASGI application out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel

from bythebook import __version__
from bythebook.assemble import Library
from bythebook.errors import BookError, InvalidInput
from bythebook.serve.contracts import agent, chat

Fail = Callable[[BookError], tuple[int, BaseModel]]

# Everything the page needs comes from here, and nothing else may run on it.
_PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_WEB = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}


def create_app(library: Library) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await library.warm_up()
        library.keep_house()
        try:
            yield
        finally:
            await library.close()

    app = FastAPI(
        title="By the Book", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None
    )
    app.include_router(_agent_routes(library))
    app.include_router(_chat_routes(library))
    app.include_router(_operations(library))
    for path, (name, media_type) in _WEB.items():
        app.add_api_route(path, _page(name, media_type), include_in_schema=False)
    return app


def _agent_routes(library: Library) -> APIRouter:
    failures = _failures(agent.AgentError)
    router = APIRouter(tags=["S1"], route_class=_route(agent.fail), responses=failures)

    @router.post("/ask")
    async def ask(body: agent.AgentQuery) -> agent.AgentResponse:
        return agent.show(await library.reply(agent.read(body)))

    @router.post("/search")
    async def search(body: agent.AgentQuery) -> agent.ResultSet:
        question = agent.read(body)
        return agent.show_results(question, await library.search(question))

    return router


def _chat_routes(library: Library) -> APIRouter:
    failures = _failures(chat.ChatError)
    router = APIRouter(tags=["S4"], route_class=_route(chat.fail), responses=failures)

    @router.post("/chat/run")
    async def run(body: chat.ChatRequest) -> chat.ChatResponse:
        return chat.show(await library.reply(chat.read(body)))

    return router


class Health(BaseModel):
    status: str
    services: dict[str, str]
    version: str


def _operations(library: Library) -> APIRouter:
    router = APIRouter(tags=["operations"])

    @router.get("/health", responses={503: {"model": Health}})
    async def health(response: Response) -> Health:
        services = await library.health()
        well = all(state == "ok" for state in services.values())
        response.status_code = 200 if well else 503
        return Health(status="ok" if well else "failing", services=services, version=__version__)

    return router


def _failures(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    # 422 is FastAPI's own; every contract here says 400 instead.
    return {400: {"model": model}, 503: {"model": model}, 422: {"model": model}}


def _route(fail: Fail) -> type[APIRoute]:
    """Routes whose errors leave in their contract's own shape."""

    class ContractRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def answer(request: Request) -> Response:
                try:
                    return await handle(request)
                except RequestValidationError as error:
                    failure: BookError = _invalid(error)
                except BookError as error:
                    failure = error
                except HTTPException:  # a body that is no text, or no end of brackets
                    failure = InvalidInput("The body is not JSON.", cure="Send UTF-8 JSON.")
                status, body = fail(failure)
                return JSONResponse(body.model_dump(mode="json"), status_code=status)

            return answer

    return ContractRoute


def _invalid(error: RequestValidationError) -> InvalidInput:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return InvalidInput("The body is not JSON.", cure="Send UTF-8 JSON.")
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "body"
    return InvalidInput(f"{where}: {first['msg']}.", cure="Correct the request.")


def _page(name: str, media_type: str) -> Callable[[], Response]:
    content = resources.files("bythebook.serve").joinpath("web", name).read_bytes()

    def page() -> Response:
        return Response(content, media_type=media_type, headers=_PAGE_HEADERS)

    return page
