"""``bythebook search QUERY``: print the best passages with scores and explanations."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli import options
from bythebook.cli.explain import found as found_by
from bythebook.cli.explain import why_found
from bythebook.cli.terminal_text import shortened
from bythebook.errors import InvalidInput

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.retrieval.search import Findings
    from bythebook.types import Question

_LONGEST_EXCERPT = 200


def search(
    query: Annotated[str | None, typer.Argument(help="What to look for.", metavar="QUERY")] = None,
    home: options.Home = None,
    top_k: options.TopK = None,
    relevance_threshold: options.RelevanceThreshold = None,
    filters: options.Filters = None,
    preset: options.Preset = None,
    embedder: options.Embedder = None,
    batch: options.Batch = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also say why each passage was found.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Find passages without writing an answer. Exit code 1: nothing was found."""
    from bythebook.api import question_for, use_library

    settings = options.load(home=home, preset=preset, embedder=embedder)
    narrowed = options.read_filters(filters)

    read = partial(
        question_for,
        settings=settings,
        filters=narrowed,
        top_k=top_k,
        relevance_threshold=relevance_threshold,
    )
    if batch is not None:
        if query is not None:
            raise InvalidInput("--batch brings its own questions.", hint="Leave QUERY out.")
        batched = partial(_search_batch, batch, read, explain=explain)
        raise typer.Exit(use_library(settings, batched))
    if query is None:
        raise InvalidInput("There is no query.", hint='Run: bythebook search "…"')
    question = read(query)
    found = use_library(settings, lambda library: library.search(question))
    findings = found.at_least(question.min_score)
    if as_json:
        document = _document(question, findings, explain=explain)
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        _print(findings, explain=explain, below=len(found.hits) - len(findings.hits))
    raise typer.Exit(0 if findings.hits else 1)


async def _search_batch(
    path: Path, read: Callable[[str], Question], library: Book, *, explain: bool
) -> int:
    from bythebook.cli.batch import run_batch

    async def answer(row: dict[str, Any]) -> dict[str, Any]:
        question = read(row["question"])
        findings = (await library.search(question)).at_least(question.min_score)
        return _document(question, findings, explain=explain)

    return await run_batch(path, answer)


def _document(question: Question, findings: Findings, *, explain: bool) -> dict[str, Any]:
    from bythebook.documents.reply import show_results

    document = show_results(question, findings).model_dump(mode="json")
    if explain:
        for result, hit in zip(document["results"], findings.hits, strict=True):
            result["why"] = found_by(hit)
    return document


def _print(findings: Findings, *, explain: bool, below: int) -> None:
    from bythebook.types import VectorState

    for hit in findings.hits:
        place = hit.passage.place
        excerpt = shortened(hit.passage.text, _LONGEST_EXCERPT)
        typer.secho(f"\n{hit.rank}. {place.path}  ({hit.score:.2f})", fg="cyan")
        typer.echo(f"   {place.url}")
        typer.secho(f"   {excerpt}", dim=True)
        if explain:
            typer.secho(f"   {why_found(hit)}", fg="yellow")
    milliseconds = findings.query_ms + findings.search_ms
    typer.secho(f"\nfound {len(findings.hits)} in {milliseconds:.0f} ms", dim=True)
    if below:
        less = f"{below} less relevant: --relevance-threshold 0 lists them too"
        typer.secho(less, dim=True)
    if findings.vectors is VectorState.PENDING:
        typer.secho("by words alone: the vectors are still being made", dim=True)
    elif findings.vectors is VectorState.AWAY:
        typer.secho("by words alone: the index or the embedder does not answer", dim=True)
