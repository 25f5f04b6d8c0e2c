"""``bythebook eval QA.jsonl``: evaluate retrieval and answers on a question set."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli import options
from bythebook.cli.output import Progress, echo, json_text, print_json
from bythebook.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.book import Book
    from bythebook.config.settings import Settings
    from bythebook.evaluation.metrics import Evaluation, TargetResult
    from bythebook.evaluation.questions import Row
    from bythebook.evaluation.report import BookFacts
    from bythebook.types import Question

# Listed here so that --help does not import the evaluation.
FIGURES = (
    "hit@1 hit@5 hit@10 mrr@10 answered right useful vital_recall words gold f1 page section "
    "sentences quoted linked self_cited supported verbatim withheld refused refusal_precision "
    "coverage risk auroc aurc ece support_ece ms.query.p50 ms.query.p95 ms.search.p50 "
    "ms.search.p95 ms.writing.p50 ms.writing.p95 ms.total.p50 ms.total.p95 ms.refusal.p50 "
    "ms.refusal.p95"
)
EPILOG = f"Figures: {FIGURES}. Most exist by kind, as in refused.off_book; auroc only by kind."
_BAR_MISSED = 4
_WORST = 20

app = options.command()


@app.command(epilog=EPILOG)
def evaluate(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Question sets, as JSON lines.", metavar="QA.jsonl")
    ] = None,
    home: options.Home = None,
    preset: options.Preset = None,
    embedder: options.Embedder = None,
    writer: options.Writer = None,
    min_score: Annotated[
        float | None, typer.Option("--min-score", help="Minimum similarity of a passage.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Ask only a sample of this size.")
    ] = None,
    bar: Annotated[
        list[str] | None,
        typer.Option(
            "--bar",
            help="Target NAME=VALUE of a figure, such as answered=.93 or refused.off_book=.95; "
            "repeatable.",
        ),
    ] = None,
    as_json: options.Json = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write a report with plots to this file.")
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option("--card", help="Also write a trust card, a printable page, to this file."),
    ] = None,
    make: Annotated[
        int | None,
        typer.Option("--make", min=1, help="Generate this many questions from the book."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="With --make: random seed.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="With --make: file to write.")] = None,
) -> None:
    """Evaluate answers and refusals on a question set. Exit code 4: a --bar was missed."""
    chosen = {"home": home, "preset": preset, "embedder": embedder, "writer": writer}
    settings = options.load(**chosen, limits={"min_score": min_score})
    if make is not None:
        if files or bar or html or card:
            raise InvalidInput("--make only generates questions.", hint="Evaluate them afterwards.")
        return _make(settings, make, seed, out)
    if not files:
        raise InvalidInput("There is no question set.", hint="Make one: bythebook eval --make 60")
    from bythebook.evaluation.metrics import check_targets, read_target

    bars = [read_target(text) for text in bar or ()]
    rows = _read(files, limit)
    evaluation, facts = _run(rows, settings, quiet=as_json)
    results = check_targets(bars, evaluation)
    if card is not None:
        from bythebook.evaluation.pages import trust_card

        _write(card, trust_card(evaluation, facts, _setup(settings)))
    _show(evaluation, facts, results, settings, as_json=as_json, html=html)
    raise typer.Exit(_exit_code(results))


def _exit_code(results: Sequence[TargetResult]) -> int:
    """Name the targets that were missed, and return the exit code."""
    missed = [result for result in results if not result.met]
    for result in missed:
        value = "not measured" if result.value is None else f"{result.value:.4g}"
        target = f"{result.target.name} {result.target.sign} {result.target.limit:g}"
        echo(f"bythebook: the bar {target} was missed: {value}.", err=True)
    return _BAR_MISSED if missed else 0


def _read(files: Sequence[Path], limit: int | None) -> list[Row]:
    from bythebook.evaluation.questions import read_row, sample

    rows = []
    for path in files:
        for number, line in options.lines_of(path):
            try:
                fields = options.parse_line(line, number)
                rows.append(read_row(fields, default_id=f"{path.name}:{number}"))
            except InvalidInput as error:
                where = "" if error.message.startswith("Line ") else f"Line {number}: "
                raise InvalidInput(f"{path}: {where}{error.message}") from None
    if not rows:
        raise InvalidInput("The question set is empty.", hint="Give a file of JSON lines.")
    return rows if limit is None else sample(rows, limit)


def _run(rows: Sequence[Row], settings: Settings, *, quiet: bool) -> tuple[Evaluation, BookFacts]:
    from bythebook.evaluation.metrics import measure
    from bythebook.evaluation.report import book_facts
    from bythebook.evaluation.run import ask_all, judge_support
    from bythebook.offload import offload
    from bythebook.wiring import open_catalog

    asked = [(row, _question(row, settings)) for row in rows]

    async def ask(book: Book) -> tuple[Evaluation, BookFacts]:
        catalog = await offload(lambda: open_catalog(settings))
        passages, generation = await offload(lambda: (catalog.passages(), catalog.current()))
        cases = await ask_all(
            asked,
            book,
            passages,
            on_progress=lambda done, total: progress.show("Asking questions", done, total),
        )
        evaluation = measure(cases, await judge_support(book, passages.values()))
        return evaluation, book_facts(passages.values(), generation)

    with Progress(quiet=quiet) as progress:
        return options.with_book(settings, ask)


def _question(row: Row, settings: Settings) -> Question:
    """Build the question as the page asks it: weaker passages are evidence, too."""
    try:
        question = settings.limits.question(row.question, selection=row.selection)
        return replace(question, min_evidence=0.0)
    except InvalidInput as error:
        raise InvalidInput(f"{row.id}: {error.message}", hint=error.hint) from None


def _show(
    evaluation: Evaluation,
    facts: BookFacts,
    results: Sequence[TargetResult],
    settings: Settings,
    *,
    as_json: bool,
    html: Path | None,
) -> None:
    from bythebook.evaluation.report import worst

    failures = worst(evaluation.cases, _WORST)
    setup = _setup(settings)
    if html is not None:
        from bythebook.evaluation.pages import report

        _write(html, report(evaluation, setup, results, failures))
    if as_json:
        from bythebook.evaluation.report import document

        print_json(document(evaluation, facts, setup, results, failures))
        return
    from rich.console import Console

    from bythebook.evaluation.report import print_evaluation

    print_evaluation(evaluation, setup, results, Console(highlight=False))


def _setup(settings: Settings) -> dict[str, Any]:
    limits = settings.limits
    return {
        "embedder": settings.embedder,
        "reader": settings.reader,
        "writer": settings.writer,
        "preset": settings.preset,
        "min_score": limits.min_score,
        "top_k": limits.check_top_k(None),
    }


def _make(settings: Settings, count: int, seed: int, out: Path | None) -> None:
    from bythebook.evaluation.make_questions import make_questions
    from bythebook.wiring import not_ingested, open_catalog

    catalog = open_catalog(settings)
    if catalog.current() is None:
        raise not_ingested()
    rows = make_questions(catalog.passages().values(), count, seed=seed)
    lines = "".join(json_text(row) + "\n" for row in rows)
    if out is None:
        sys.stdout.write(lines)
    else:
        _write(out, lines)
        echo(f"{len(rows)} questions in {out}.", err=True)
    if len(rows) < count:
        echo(f"Only {len(rows)} of {count} questions could be generated.", err=True)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from None
