"""``bythebook ask QUESTION``: print the answer with its sources, or a refusal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli import options
from bythebook.cli.output import (
    LONGEST_QUOTE,
    echo,
    explain_reply,
    print_json,
    printable,
    reply_record,
    shortened,
    warnings_of,
)
from bythebook.errors import InvalidInput

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.refusals import Refusal
    from bythebook.types import Answer, Citation, Reply


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

        if question is not None or selected_text is not None:
            raise InvalidInput(
                "--batch reads the questions from a file.",
                hint="Leave QUESTION and --selected-text out.",
            )

        async def answer(book: Book, row: dict[str, Any]) -> dict[str, Any]:
            asked = make_question(row["question"], selection=row.get("selected_text"))
            return _document(await book.reply(asked), settings.server.reader)

        raise typer.Exit(run_batch(batch, settings, answer))
    if question is None:
        raise InvalidInput("There is no question.", hint='Run: bythebook ask "…"')
    from bythebook.api import use_book
    from bythebook.types import Answer

    asked = make_question(question, selection=selected_text)
    reply = use_book(settings, lambda book: book.reply(asked))
    if as_json:
        why = {"why": reply_record(reply)} if explain else {}
        print_json({**_document(reply, settings.server.reader), **why})
    else:
        echo()
        if isinstance(reply.outcome, Answer):
            _print_answer(reply.outcome)
        else:
            _print_refusal(reply.outcome)
        _print_details(reply, verbose=verbose, explain=explain)
    raise typer.Exit(0 if isinstance(reply.outcome, Answer) else 1)


def _document(reply: Reply, reader: str) -> dict[str, Any]:
    from bythebook.documents.fields import with_web_addresses
    from bythebook.documents.reply import show

    return show(with_web_addresses(reply, reader)).model_dump(mode="json")


def _print_answer(answer: Answer) -> None:
    """Print the answer with its sources; the exact answer span, if any, is bold."""
    before, span, after = map(printable, answer.parts)
    typer.echo(f"{before}{typer.style(span, bold=True)}{after}\n")
    for citation in answer.citations:
        quote = shortened(citation.quote, LONGEST_QUOTE)
        echo(f"[{citation.number}] {citation.place.path}  ({citation.score:.2f})", fg="cyan")
        if citation.url:
            typer.echo(f"    {_linked(citation)}")
        echo(f"    “{quote}”", dim=True)


def _linked(citation: Citation) -> str:
    """Return the URL; on a terminal, as a hyperlink to the quoted text."""
    url, link = printable(citation.url), printable(citation.link)
    return f"\033]8;;{link}\033\\{url}\033]8;;\033\\" if sys.stdout.isatty() else url


def _print_refusal(refusal: Refusal) -> None:
    said = refusal.remark if refusal.is_small_talk else f"{refusal.text}."
    echo(said or "", bold=True)
    if refusal.related is not None:
        echo(f"\n{refusal.remark}")
        echo(f"  {refusal.related.link.partition(':~:')[0].removesuffix('#')}", dim=True)
    if refusal.nearby:
        echo("\nNearby, the book covers:", dim=True)
    for topic in refusal.nearby:
        echo(f"  {topic.title}")
        echo(f"  {topic.url}", dim=True)


def _print_details(reply: Reply, *, verbose: bool, explain: bool) -> None:
    for warning in warnings_of(reply):
        echo(f"\n{warning}", fg="yellow")
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
