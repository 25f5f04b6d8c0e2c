"""``bythebook search QUERY``: the passages that come nearest, with their scores."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli import options
from bythebook.errors import InvalidInput

if TYPE_CHECKING:
    from bythebook.serve.contracts.agent import ResultSet
    from bythebook.settings import Settings

_LONGEST_EXCERPT = 200


def search(
    query: Annotated[str | None, typer.Argument(help="What to look for.", metavar="QUERY")] = None,
    home: options.Home = None,
    top_k: options.TopK = None,
    preset: options.Preset = None,
    embedder: options.Embedder = None,
    batch: options.Batch = None,
    as_json: options.Json = False,
) -> None:
    """Find passages without writing an answer. Exit code 1: nothing was found."""
    settings = options.load(home=home, preset=preset, embedder=embedder)
    if batch is not None:
        if query is not None:
            raise InvalidInput("--batch brings its own questions.", cure="Leave QUERY out.")
        raise typer.Exit(_search_batch(batch, settings, top_k))
    if query is None:
        raise InvalidInput("There is no query.", cure='Run: bythebook search "…"')
    results = asyncio.run(_search(query, settings, top_k))
    typer.echo(results.model_dump_json(indent=2)) if as_json else _print(results)
    raise typer.Exit(0 if results.results else 1)


async def _search(query: str, settings: Settings, top_k: int | None) -> ResultSet:
    from bythebook.assemble import open_library
    from bythebook.quick import question_for
    from bythebook.serve.contracts import agent

    question = question_for(query, settings, top_k=top_k)
    return agent.show_results(question, await open_library(settings).search(question))


def _search_batch(path: Path, settings: Settings, top_k: int | None) -> int:
    from bythebook.assemble import open_library
    from bythebook.cli.batch import run_batch
    from bythebook.quick import question_for
    from bythebook.serve.contracts import agent

    library = open_library(settings)

    async def answer(row: dict[str, Any]) -> dict[str, Any]:
        question = question_for(row["question"], settings, top_k=top_k)
        findings = await library.search(question)
        return agent.show_results(question, findings).model_dump(mode="json")

    return run_batch(path, answer)


def _print(results: ResultSet) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for number, result in enumerate(results.results, 1):
        excerpt = " ".join(result.content.split())
        if len(excerpt) > _LONGEST_EXCERPT:
            excerpt = excerpt[: _LONGEST_EXCERPT - 1].rstrip() + "…"
        titles = dict.fromkeys((result.page_title, result.section_title))
        where = " › ".join(titles)
        console.print(f"\n{number}. {where}  ({result.score:.2f})", style="cyan", markup=False)
        console.print(f"   {result.source_url}", markup=False)
        console.print(f"   {excerpt}", style="dim", markup=False)
    console.print(f"\nfound {results.total_count} in {results.total_time_ms:.0f} ms", style="dim")
