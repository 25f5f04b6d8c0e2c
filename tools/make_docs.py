"""Write the generated pages of docs/reference: cli.md, data-models.md, settings.md,
errors.md.

Also the examples and error tables in contracts.md, after their markers.

python tools/make_docs.py           write them
python tools/make_docs.py --check   exit 1 if one is out of date
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from bythebook import errors
from bythebook.book import Book
from bythebook.cli.main import app
from bythebook.config import settings
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.server.app import create_app
from bythebook.server.contracts.registry import CONTRACTS
from tools import data_models

DOCS = Path(__file__).parents[1] / "docs" / "reference"
_WIDTH = 100


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
    for name in sorted(group.list_commands(None)):
        command = group.get_command(None, name)
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
    variables: dict[str, str] = {}
    for variable, name in settings.ENVIRONMENT.items():  # of two, the stronger stands last
        weaker = f" over {variables[name]}" if name in variables else ""
        variables[name] = f"`{variable}`{weaker}"
    rows = ["| setting | default | environment | what it is |", "|---|---|---|---|"]
    rows += _rows(settings.Settings, "", variables)
    return "\n".join(
        [
            "# Settings\n",
            (inspect.getdoc(settings) or "").replace("``", "`") + "\n",
            "Nested settings are tables in `bythebook.toml`:\n",
            '```toml\nembedder = "local:e5-small"\n\n[limits]\ntop_k = 8\n```\n',
            *rows,
            "\n`limits.*` hold for the command line and Python; over HTTP each contract has its "
            "own ([why](../decisions/0001-one-core-five-contracts.md)).\n",
            "## Presets\n",
            "Each preset holds the constants of one contract; its file says where each comes "
            "from.\n",
            *(f"- `{name}`: {what}" for name, what in settings.PRESETS.items()),
            "",
        ]
    )


def _rows(model: type[BaseModel], prefix: str, variables: dict[str, str]) -> list[str]:
    rows = []
    for name, field in model.model_fields.items():
        here = f"{prefix}{name}"
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            rows += _rows(kind, f"{here}.", variables)
            continue
        default = "" if field.default in (None, ()) else f"`{field.default}`"
        variable = variables.get(here, "")
        rows.append(f"| `{here}` | {default} | {variable} | {field.description} |")
    return rows


def errors_page() -> str:
    rows = ["| error | is a | exit code | when |", "|---|---|---|---|"]
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.BookError):
            parent = f"`{kind.__base__.__name__}`" if kind.__base__ else ""
            rows.append(f"| `{name}` | {parent} | {kind.exit_code} | {inspect.getdoc(kind)} |")
    text = (inspect.getdoc(errors) or "").replace("``", "`")
    return "\n".join(["# Errors\n", text + "\n", *rows, ""])


def describe() -> dict[str, Any]:
    """The OpenAPI description, which needs no book."""
    library = Book(
        embedder=FakeEmbedder(),
        store=MemoryGenerationStore(),
        catalog=MemoryCatalog(),
        threads=MemoryThreads(),
    )
    return create_app(library).openapi()


def _json(value: object) -> str:
    return f"```json\n{json.dumps(value, indent=2, ensure_ascii=False)}\n```\n"


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
    "data-models.md": lambda: data_models.page(describe()),
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
