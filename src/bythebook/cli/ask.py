"""``bythebook ask`` and ``search``: an answer with its sources or a refusal, or passages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli import options
from bythebook.cli.output import (
    echo,
    explain_hit,
    explain_reply,
    hit_record,
    keyword_notice,
    print_json,
    reply_record,
    shortened,
)
from bythebook.errors import InvalidInput

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.config.settings import Settings
    from bythebook.retrieval.search import Findings
    from bythebook.types import Question, Reply


_LONGEST_EXCERPT = 200  # of a passage in a list of results

app = options.command()


@app.command()
def ask(
    question: Annotated[str | None, typer.Argument(help="What to ask.", metavar="QUESTION")] = None,
    home: options.Home = None,
    selected_text: options.SelectedText = None,
    top_k: options.TopK = None,
    relevance_threshold: options.RelevanceThreshold = None,
    filters: options.Filters = None,
    preset: options.Preset = None,
    embedder: options.Embedder = None,
    writer: options.Writer = None,
    batch: options.Batch = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain the passages, the gate and the check.")
    ] = False,
    as_json: options.Json = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also print timings.")] = False,
) -> None:
    """Ask the book a question. Exit code 0: answered; 1: the book has no answer."""
    settings = options.load(home=home, preset=preset, embedder=embedder, writer=writer)
    make_question = options.question_maker(settings, top_k, relevance_threshold, filters)
    if batch is not None:

        async def answer(book: Book, row: dict[str, Any]) -> dict[str, Any]:
            asked = make_question(row["question"], selection=row.get("selected_text"))
            return _reply_document(await book.reply(asked), settings)

        raise typer.Exit(options.run_batch(batch, settings, answer, question, selected_text))
    if question is None:
        raise InvalidInput("There is no question.", hint='Run: bythebook ask "…"')
    asked = make_question(question, selection=selected_text)
    if as_json:
        reply = options.with_book(settings, lambda book: book.reply(asked))
        why = {"why": reply_record(reply)} if explain else {}
        print_json({**_reply_document(reply, settings), **why})
    else:
        from bythebook.cli.printer import Page, show_events

        async def show(book: Book) -> Reply:
            await book.context()  # fail before anything is printed
            echo()
            return await show_events(book.ask(asked), Page())

        reply = options.with_book(settings, show)
        _print_details(reply, verbose=verbose, explain=explain)
    raise typer.Exit(0 if reply.answered else 1)


def _reply_document(reply: Reply, settings: Settings) -> dict[str, Any]:
    """Return the reply as a response of the preset's contract."""
    from bythebook.contracts import response_of
    from bythebook.contracts.fields import with_web_addresses

    reply = with_web_addresses(reply, settings.server.reader)
    return response_of(settings.preset, reply).model_dump(mode="json")


def _print_details(reply: Reply, *, verbose: bool, explain: bool) -> None:
    if reply.withheld and not explain:
        echo("--explain shows why.", dim=True)
    if explain:
        echo()
        for line in explain_reply(reply):
            echo(line, fg=None if line.startswith(" ") else "yellow")
    if verbose:
        times, confidence = reply.timings, reply.evidence.confidence
        echo(
            f"\nretrieval {times.retrieval_ms:.0f} ms, writing {times.generation_ms:.0f} ms, "
            f"total {times.total_ms:.0f} ms; confidence {confidence.level} "
            f"({confidence.average:.2f}; passages used: {confidence.count})",
            dim=True,
        )


# --- search ---------------------------------------------------------------------------------------


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

        async def answer(book: Book, row: dict[str, Any]) -> dict[str, Any]:
            question = make_question(row["question"])
            findings = (await book.search(question)).at_least(question.min_score)
            return _results_document(
                question, findings, reader=settings.server.reader, explain=explain
            )

        raise typer.Exit(options.run_batch(batch, settings, answer, query))
    if query is None:
        raise InvalidInput("There is no query.", hint='Run: bythebook search "…"')
    question = make_question(query)
    everything = options.with_book(settings, lambda book: book.search(question))
    findings = everything.at_least(question.min_score)
    if as_json:
        reader = settings.server.reader
        print_json(_results_document(question, findings, reader=reader, explain=explain))
    else:
        _print_results(findings, explain=explain, below=len(everything.hits) - len(findings.hits))
    raise typer.Exit(0 if findings.hits else 1)


def _results_document(
    question: Question, findings: Findings, *, reader: str, explain: bool
) -> dict[str, Any]:
    from bythebook.contracts.ask import show_results

    document = show_results(question, findings, reader=reader).model_dump(mode="json")
    if explain:
        for result, hit in zip(document["results"], findings.hits, strict=True):
            result["why"] = hit_record(hit)
    return document


def _print_results(findings: Findings, *, explain: bool, below: int) -> None:
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
