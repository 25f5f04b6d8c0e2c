"""``bythebook ask QUESTION``: print the answer with its sources, or a refusal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli import options
from bythebook.cli.explain import explained, why
from bythebook.cli.terminal_text import printable, shortened
from bythebook.errors import InvalidInput

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.config.settings import Settings
    from bythebook.types import Answer, Citation, Question, Reply

_LONGEST_QUOTE = 160


def ask(
    question: Annotated[str | None, typer.Argument(help="What to ask.", metavar="QUESTION")] = None,
    home: options.Home = None,
    selected_text: Annotated[
        str | None,
        typer.Option("--selected-text", help="Answer from this text of the book alone."),
    ] = None,
    top_k: options.TopK = None,
    relevance_threshold: options.RelevanceThreshold = None,
    preset: options.Preset = None,
    embedder: options.Embedder = None,
    writer: options.Writer = None,
    batch: options.Batch = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also say why: passages, gate and check.")
    ] = False,
    as_json: options.Json = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also print timings.")] = False,
) -> None:
    """Ask the book a question. Exit code 0: answered; 1: the book has no answer."""
    from bythebook.api import question_for

    settings = options.load(home=home, preset=preset, embedder=embedder, writer=writer)
    make_question = partial(
        question_for, settings=settings, top_k=top_k, relevance_threshold=relevance_threshold
    )
    if batch is not None:
        if question is not None or selected_text is not None:
            raise InvalidInput(
                "--batch brings its own questions.", hint="Leave QUESTION and --selected-text out."
            )
        raise typer.Exit(_ask_batch(batch, settings, make_question))
    if question is None:
        raise InvalidInput("There is no question.", hint='Run: bythebook ask "…"')
    reply = _ask_one(make_question(question, selection=selected_text), settings)
    if as_json:
        from bythebook.documents.reply import show

        document = show(reply).model_dump(mode="json")
        if explain:
            document["why"] = explained(reply)
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        _print(reply, verbose=verbose, explain=explain)
    raise typer.Exit(0 if _answered(reply) else 1)


def _answered(reply: Reply) -> bool:
    from bythebook.types import Answer

    return isinstance(reply.outcome, Answer)


def _ask_one(question: Question, settings: Settings) -> Reply:
    from bythebook.api import use_library

    return use_library(settings, lambda library: library.reply(question))


def _ask_batch(path: Path, settings: Settings, make_question: Callable[..., Question]) -> int:
    from bythebook.api import use_library
    from bythebook.cli.batch import run_batch
    from bythebook.documents.reply import show

    async def work(library: Book) -> int:
        async def answer(row: dict[str, Any]) -> dict[str, Any]:
            question = make_question(row["question"], selection=row.get("selected_text"))
            return show(await library.reply(question)).model_dump(mode="json")

        return await run_batch(path, answer)

    return use_library(settings, work)


def _print(reply: Reply, *, verbose: bool, explain: bool) -> None:
    from bythebook.types import Answer

    typer.echo()
    if isinstance(reply.outcome, Answer):
        _print_answer(reply.outcome)
    else:
        typer.secho(f"{reply.outcome.text}.", bold=True)
        if reply.outcome.nearby:
            typer.secho("\nNearby, the book covers:", dim=True)
        for topic in reply.outcome.nearby:
            typer.echo(f"  {topic.title}")
            typer.secho(f"  {topic.url}", dim=True)
    _print_writing(reply)
    if explain:
        typer.echo()
        for line in why(reply):
            typer.secho(line, fg=None if line.startswith(" ") else "yellow")
    if verbose:
        times, confidence = reply.timings, reply.evidence.confidence
        typer.secho(
            f"\nretrieval {times.retrieval_ms:.0f} ms, writing {times.generation_ms:.0f} ms, "
            f"total {times.total_ms:.0f} ms; confidence {confidence.level} "
            f"({confidence.average:.2f}; passages used: {confidence.count})",
            dim=True,
        )


def _print_writing(reply: Reply) -> None:
    """Print notices about a writer fallback and about withheld sentences, if any."""
    if reply.fallback:
        typer.secho(f"\n{reply.fallback}", fg="yellow")
    if reply.withheld:
        counted = "1 sentence was" if reply.withheld == 1 else f"{reply.withheld} sentences were"
        said = f"{counted} withheld: the book does not say so (--explain shows why)."
        typer.secho(f"\n{said}", dim=True)


def _print_answer(answer: Answer) -> None:
    """Print the answer with its sources; the exact answer span, if any, is bold."""
    before, marked, after = map(printable, answer.parts)
    typer.echo(f"{before}{typer.style(marked, bold=True)}{after}")
    if answer.disclaimer:
        typer.secho(f"\n{answer.disclaimer}", fg="yellow")
    typer.echo()
    for citation in answer.citations:
        quote = shortened(citation.quote, _LONGEST_QUOTE)
        typer.secho(f"[{citation.number}] {citation.place.path}  ({citation.score:.2f})", fg="cyan")
        if citation.url:
            typer.echo(f"    {_linked(citation)}")
        typer.secho(f"    “{quote}”", dim=True)


def _linked(citation: Citation) -> str:
    """Return the URL; on a terminal, as a hyperlink to the quoted text."""
    if not sys.stdout.isatty():
        return citation.url
    return f"\033]8;;{citation.link}\033\\{citation.url}\033]8;;\033\\"
