"""``bythebook ask QUESTION``: print the answer with its sources, or a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli import options
from bythebook.cli.output import echo, explain_reply, print_json, reply_record
from bythebook.errors import InvalidInput

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.types import Reply

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
        from bythebook.cli.batch import run_batch

        async def answer(book: Book, row: dict[str, Any]) -> dict[str, Any]:
            asked = make_question(row["question"], selection=row.get("selected_text"))
            return _document(await book.reply(asked), settings.server.reader)

        raise typer.Exit(run_batch(batch, settings, answer, question, selected_text))
    if question is None:
        raise InvalidInput("There is no question.", hint='Run: bythebook ask "…"')
    from bythebook.api import use_book

    asked = make_question(question, selection=selected_text)
    if as_json:
        reply = use_book(settings, lambda book: book.reply(asked))
        why = {"why": reply_record(reply)} if explain else {}
        print_json({**_document(reply, settings.server.reader), **why})
    else:
        from bythebook.cli.printer import Page, show_events

        async def show(book: Book) -> Reply:
            await book.context()  # fail before anything is printed
            echo()
            return await show_events(book.ask(asked), Page())

        reply = use_book(settings, show)
        _print_details(reply, verbose=verbose, explain=explain)
    raise typer.Exit(0 if reply.answered else 1)


def _document(reply: Reply, reader: str) -> dict[str, Any]:
    from bythebook.documents.fields import with_web_addresses
    from bythebook.documents.reply import show

    return show(with_web_addresses(reply, reader)).model_dump(mode="json")


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
