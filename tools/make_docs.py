"""Writes the pages of docs/ that are made from the code: cli.md, settings.md and errors.md.

python tools/make_docs.py           write them
python tools/make_docs.py --check   exit 1 if one is out of date
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from bythebook import errors, settings
from bythebook.cli.main import app

DOCS = Path(__file__).parents[1] / "docs"
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
    variables = {path: name for name, path in settings.ENVIRONMENT.items()}
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
            "own ([why](decisions/0010-limits-per-contract.md)).\n",
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
        variable = f"`{variables[here]}`" if here in variables else ""
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


PAGES = {"cli.md": cli_page, "settings.md": settings_page, "errors.md": errors_page}


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
