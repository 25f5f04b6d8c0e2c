"""Write the generated pages of docs/reference: api.md, cli.md, settings.md, errors.md.

Also the examples and error tables in contracts.md, after their markers.

python tools/make_docs.py           write them
python tools/make_docs.py --check   exit 1 if one is out of date
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from bythebook import errors
from bythebook.book import Book
from bythebook.cli.main import app
from bythebook.components import Components
from bythebook.config import settings
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.server.api_docs import fields, headers
from bythebook.server.app import create_app
from bythebook.server.contracts.registry import CONTRACTS

DOCS = Path(__file__).parents[1] / "docs" / "reference"
_WIDTH = 100
_WHERE = {"Idempotency-Key": "every `POST`", "Last-Event-ID": "streams of chat"}


def cli_page() -> str:
    group: Any = typer.main.get_command(app)
    parts = [
        "# The command line\n",
        "Exit codes: 0 answered or done · 1 refused, or some files failed · 2 bad input or "
        "configuration · 3 a service or the index cannot be used · 4 an evaluation missed its "
        "bar.\n",
        _help(group, "bythebook"),
    ]
    parts += _sections(group, "bythebook")
    return "\n".join(parts)


def _sections(group: Any, path: str) -> list[str]:
    parts = []
    for name, command in sorted(group.commands.items()):
        here = f"{path} {name}"
        parts += [f"## {here}\n", _help(command, here)]
        parts += _sections(command, here) if hasattr(command, "commands") else []
    return parts


def _help(command: Any, path: str) -> str:
    with command.make_context(path, ["--help"], resilient_parsing=True) as context:
        context.max_content_width = context.terminal_width = _WIDTH
        text = command.get_help(context)
    return f"```text\n{text.rstrip()}\n```\n"


def settings_page() -> str:
    variables: dict[tuple[str, ...], str] = {}
    for name, path in settings.ENVIRONMENT.items():  # of two names, the stronger stands last
        weaker = f" over {variables[path]}" if path in variables else ""
        variables[path] = f"`{name}`{weaker}"
    rows = ["| setting | default | environment | what it is |", "|---|---|---|---|"]
    rows += _rows(settings.Settings, (), variables)
    return "\n".join(
        [
            "# Settings\n",
            (inspect.getdoc(settings) or "").replace("``", "`") + "\n",
            "Nested settings are tables in `bythebook.toml`:\n",
            '```toml\nembedder = "local:e5-small"\n\n[limits]\ntop_k = 8\n```\n',
            *rows,
            "\n`limits.*` hold for the command line and Python; over HTTP each contract has its "
            "own ([why](../decisions/0010-limits-per-contract.md)).\n",
            "## Presets\n",
            "Each preset holds the constants of one contract; its file says where each comes "
            "from.\n",
            *(f"- `{name}`: {what}" for name, what in settings.PRESETS.items()),
            "",
        ]
    )


def _rows(
    model: type[BaseModel], path: tuple[str, ...], variables: dict[tuple[str, ...], str]
) -> list[str]:
    rows = []
    for name, field in model.model_fields.items():
        here = (*path, name)
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            rows += _rows(kind, here, variables)
            continue
        default = "" if field.default in (None, ()) else f"`{field.default}`"
        variable = variables.get(here, "")
        rows.append(f"| `{'.'.join(here)}` | {default} | {variable} | {field.description} |")
    return rows


def errors_page() -> str:
    tree = (inspect.getdoc(errors) or "").replace("``", "`").replace("::\n", "```text", 1)
    head, _, tail = tree.partition("\n`message`")
    rows = ["| error | exit code | when |", "|---|---|---|"]
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.BookError):
            rows.append(f"| `{name}` | {kind.exit_code} | {inspect.getdoc(kind)} |")
    body = f"{head.rstrip()}\n```\n\n`message`{tail}"
    return "\n".join(["# Errors\n", inspect.cleandoc(body) + "\n", *rows, ""])


# --- the contracts, from their OpenAPI ------------------------------------------------------------


def api_page() -> str:
    described = describe()
    parts = [
        "# HTTP API\n",
        "Every route with its fields, limits, examples and errors. [Contracts](contracts.md) "
        "explains them and how to migrate a client. A running server has the OpenAPI document, "
        "from which this page is generated, at `/openapi.json`, and a page with forms to try each "
        "route at `/docs`.\n",
        "`POST /api/query` is served by `envelope`, or by `plain` if `server.api_query` is `plain` "
        '(`preset = "plain"` or `BYTHEBOOK_API_QUERY=plain`).\n',
        "## Keys and headers\n",
        *(f"- {scheme['description']}" for scheme in _part(described, "securitySchemes")),
        "\nA server that listens only on this machine requires no key by default.\n",
        "| header of a request | where | meaning |",
        "|---|---|---|",
        *(
            f"| `{name}` | {_WHERE[name]} | {header['description']} |"
            for name, header in headers.REQUEST_HEADERS.items()
        ),
        "",
        "| header of a response | meaning |",
        "|---|---|",
        *(
            f"| `{name}` | {header['description']} |"
            for name, header in headers.RESPONSE_HEADERS.items()
        ),
        "",
    ]
    for name, contract in CONTRACTS.items():
        parts += [f"## {name}\n", contract.about + "\n"]
        parts += _contract(described, name)
    return "\n".join(parts)


def _part(described: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return list(described["components"][name].values())


def describe() -> dict[str, Any]:
    """The OpenAPI description, which needs no book."""
    library = Book(
        Components(
            embedder=FakeEmbedder(),
            store=MemoryGenerationStore(),
            catalog=MemoryCatalog(),
            threads=MemoryThreads(),
        )
    )
    return create_app(library).openapi()


def _contract(described: dict[str, Any], tag: str) -> list[str]:
    module = import_module(f"bythebook.server.contracts.{tag}")
    parts = [(inspect.getdoc(module) or "").partition("\n\n")[2].replace("``", "`") + "\n"]
    failures: dict[str, Any] = {}
    shown: dict[str, str] = {}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            if tag not in operation.get("tags", ()):
                continue
            title = f"{method.upper()} {path}"
            parts += [f"### {title}\n", operation.get("description", "").strip() + "\n"]
            body = _operation(described, operation)
            first = shown.setdefault(body, title)
            parts += [body] if first == title else [f"The same as `{first}`.\n"]
            failures |= {
                status: response
                for status, response in operation["responses"].items()
                if status >= "400"
            }
    return [*parts, *_failures(failures)]


def _operation(described: dict[str, Any], operation: dict[str, Any]) -> str:
    parts = []
    parameters = [each for each in operation.get("parameters", ()) if each["in"] != "header"]
    if parameters:
        parts += ["| parameter | type | default |", "|---|---|---|"]
        parts += [
            f"| `{each['name']}` | {fields.type_of(described, each['schema'])} "
            f"| {_default(each['schema'])} |"
            for each in parameters
        ]
        parts.append("")
    if "requestBody" in operation:
        schema = fields.resolve(
            described, operation["requestBody"]["content"]["application/json"]["schema"]
        )
        parts += ["| field | type | default |", "|---|---|---|"]
        parts += [
            f"| `{name}`{'' if name in schema.get('required', ()) else ' (optional)'} "
            f"| {fields.type_of(described, field)} | {_default(field)} |"
            for name, field in schema["properties"].items()
        ]
        parts += ["", *(_json(example) for example in schema["examples"])]
    for status, response in operation["responses"].items():
        if status < "400":
            examples = response.get("content", {}).get("application/json", {}).get("examples", {})
            parts += [
                f"{status}, {name.replace('_', ' ')}:\n\n{_json(example['value'])}"
                for name, example in examples.items()
            ]
            streamed = response.get("content", {}).get("text/event-stream", {})
            if streamed and examples and "x-events" in streamed:
                parts.append("With `stream: true`: the events of `POST /chat/stream`, below.\n")
            elif streamed:
                parts += _stream(described, streamed)
            parts += [] if "content" in response else [f"{status}, without a body.\n"]
    return "\n".join(parts)


def _stream(described: dict[str, Any], content: dict[str, Any]) -> list[str]:
    """The events of a stream with their fields, and an example of each ending."""
    parts = []
    if "x-events" in content:
        parts += ["The events of a stream:\n", "| event | occurs | data |", "|---|---|---|"]
        for each in content["x-events"]:
            schema = fields.resolve(described, each["data"])
            required = schema.get("required", ())
            field_names = [
                f"`{name}`{'' if name in required else ' (optional)'}"
                for name in schema["properties"]
            ]
            parts.append(f"| `{each['event']}` | {each['occurs']} | {', '.join(field_names)} |")
        parts.append("")
    return parts + [
        f"200, {name} as a stream:\n\n```text\n{example['value'].rstrip()}\n```\n"
        for name, example in content["examples"].items()
    ]


def _failures(failures: dict[str, Any]) -> list[str]:
    parts = ["### Errors\n", "| status | when | for example |", "|---|---|---|"]
    for status, response in sorted(failures.items()):
        [example] = response["content"]["application/json"]["examples"].values()
        body = json.dumps(example["value"], ensure_ascii=False)
        parts.append(f"| {status} | {response['description']} | `{body}` |")
    return [*parts, ""]


def _json(value: object) -> str:
    return f"```json\n{json.dumps(value, indent=2, ensure_ascii=False)}\n```\n"


def _default(schema: dict[str, Any]) -> str:
    default = fields.default_of(schema)
    return f"`{default}`" if default else ""


# --- the page on contracts: written by hand, with examples from the code --------------------------

_MARKER = re.compile(
    r"(<!-- (example|stream|errors) (.+?) -->\n)(?:\n(?:```\w+\n.*?\n```|\|.*?)\n(?=\n|\Z))?",
    re.DOTALL,
)
_ERRORS: dict[str, errors.BookError] = {
    "the request cannot be used": errors.InvalidInput("."),
    "a key is missing or not known": errors.NotAllowed("."),
    "no such thread, stream or model": errors.NotFound("."),
    "the body is too large": errors.TooLarge("."),
    "the `Idempotency-Key` was used for another request": errors.KeyReused("."),
    "too many requests": errors.RateLimited(".", retry_after=1),
    "the embedder failed": errors.EmbedderFailed("."),
    "the index failed": errors.StoreFailed("."),
    "the index did not answer in time": errors.StoreFailed(".", timed_out=True),
    "the language model failed, and there is no fallback": errors.WriterFailed("."),
    "the database is unavailable": errors.DatabaseFailed("."),
}


def contracts_page() -> str:
    described = describe()

    def filled(found: re.Match[str]) -> str:
        marker, kind, name = found.groups()
        made = _error_table(name) if kind == "errors" else _example(described, name)
        return f"{marker}\n{made.rstrip()}\n"

    return _MARKER.sub(filled, (DOCS / "contracts.md").read_text("utf-8"))


def _example(described: dict[str, Any], name: str) -> str:
    method, path, status, example = name.split()
    response = described["paths"][path][method.lower()]["responses"][status]
    [content, *_] = response["content"].values()
    value = content["examples"][example]["value"]
    return f"```text\n{value.rstrip()}\n```" if isinstance(value, str) else _json(value)


def _error_table(name: str) -> str:
    contract = CONTRACTS[name]
    field = contract.error_code
    rows = [f"| what happened | status | `{field}` |" if field else "| what happened | status |"]
    rows.append("|---|---|---|" if field else "|---|---|")
    for event, error in _ERRORS.items():
        status, body = contract.fail(error)
        if isinstance(error, errors.NotFound) and name not in ("chat", "openai"):
            continue
        code: Any = body.model_dump(mode="json")
        for part in field.split(".") if field else ():
            code = code[part]
        status = 422 if isinstance(error, errors.KeyReused) else status
        rows.append(f"| {event} | {status} |" + (f" `{code}` |" if field else ""))
    return "\n".join(rows)


PAGES = {
    "api.md": api_page,
    "contracts.md": contracts_page,
    "cli.md": cli_page,
    "settings.md": settings_page,
    "errors.md": errors_page,
}


def main() -> None:
    stale = []
    for name, make in PAGES.items():
        path = DOCS / name
        if not path.exists() or path.read_text("utf-8") != make():
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(make(), "utf-8")
    if stale:
        print(("out of date: " if "--check" in sys.argv else "written: ") + ", ".join(stale))
    sys.exit(1 if stale and "--check" in sys.argv else 0)


if __name__ == "__main__":
    main()
