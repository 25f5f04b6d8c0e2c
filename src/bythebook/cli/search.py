"""``bythebook search QUERY``: print the best passages with scores and explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli import options
from bythebook.cli.output import (
    echo,
    explain_hit,
    hit_record,
    keyword_notice,
    print_json,
    shortened,
)
from bythebook.errors import InvalidInput

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.retrieval.search import Findings
    from bythebook.types import Question

_LONGEST_EXCERPT = 200

app = options.command()


@app.command()
def search(
    query: Annotated[
        str | None, typer.Argument(help="What to search for.", metavar="QUERY")
    ] = None,
    home: options.Home = None,
    top_k: options.TopK = None,
    relevance_threshold: options.RelevanceThreshold = None,
    filters: options.Filters = None,
    preset: options.Preset = None,
    embedder: options.Embedder = None,
    batch: options.Batch = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain the score of each passage.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Find passages without writing an answer. Exit code 1: nothing was found."""
    settings = options.load(home=home, preset=preset, embedder=embedder)
    make_question = options.question_maker(settings, top_k, relevance_threshold, filters)
    if batch is not None:
        from bythebook.cli.batch import run_batch

        async def answer(book: Book, row: dict[str, Any]) -> dict[str, Any]:
            question = make_question(row["question"])
            findings = (await book.search(question)).at_least(question.min_score)
            return _document(question, findings, reader=settings.server.reader, explain=explain)

        raise typer.Exit(run_batch(batch, settings, answer, query))
    if query is None:
        raise InvalidInput("There is no query.", hint='Run: bythebook search "…"')
    from bythebook.api import use_book

    question = make_question(query)
    everything = use_book(settings, lambda book: book.search(question))
    findings = everything.at_least(question.min_score)
    if as_json:
        reader = settings.server.reader
        print_json(_document(question, findings, reader=reader, explain=explain))
    else:
        _print(findings, explain=explain, below=len(everything.hits) - len(findings.hits))
    raise typer.Exit(0 if findings.hits else 1)


def _document(
    question: Question, findings: Findings, *, reader: str, explain: bool
) -> dict[str, Any]:
    from bythebook.documents.reply import show_results

    document = show_results(question, findings, reader=reader).model_dump(mode="json")
    if explain:
        for result, hit in zip(document["results"], findings.hits, strict=True):
            result["why"] = hit_record(hit)
    return document


def _print(findings: Findings, *, explain: bool, below: int) -> None:
    for hit in findings.hits:
        place = hit.passage.place
        echo(f"\n{hit.rank}. {place.path}  ({hit.score:.2f})", fg="cyan")
        echo(f"   {place.url}")
        echo(f"   {shortened(hit.passage.text, _LONGEST_EXCERPT)}", dim=True)
        if explain:
            echo(f"   {explain_hit(hit)}", fg="yellow")
    milliseconds = findings.query_ms + findings.search_ms
    echo(f"\n{len(findings.hits)} passages in {milliseconds:.0f} ms", dim=True)
    if below:
        echo(f"{below} below the threshold: --relevance-threshold 0 shows them", dim=True)
    if notice := keyword_notice(findings.vectors):
        echo(notice, dim=True)
