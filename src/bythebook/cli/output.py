"""Text, JSON and progress: what the commands print besides replies."""

from __future__ import annotations

import json
import re
import sys
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from bythebook.language.text import clean

if TYPE_CHECKING:
    from bythebook.types import Hit, Reply, VectorState


_CONTROLS = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
LONGEST_QUOTE = 500  # characters: only a single unit, most often code, is longer
_LONGEST_SENTENCE = 90
_EVERY_SECONDS = 5.0  # a line of progress, where there is no terminal


def printable(text: str) -> str:
    """Remove what would control the terminal: escapes, bells, backspaces, bidi overrides."""
    text = clean(text)
    return "".join(char for char in text if char in "\n\t" or unicodedata.category(char) != "Cc")


def echo(text: str = "", *, err: bool = False, **style: Any) -> None:
    """Print a line. Whatever a book says in a title, a name or a URL, it is text."""
    typer.secho(printable(text), err=err, **style)


def shortened(text: str, most: int) -> str:
    """Return the text on one line, shortened to at most ``most`` characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def print_json(document: object, *, indent: int | None = 2) -> None:
    typer.echo(json_text(document, indent=indent))


def json_text(document: object, *, indent: int | None = None) -> str:
    """Return JSON; dates are in ISO 8601, and what could control a terminal is escaped."""
    text = json.dumps(document, ensure_ascii=False, indent=indent, default=_isoformat)
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _isoformat(value: Any) -> str:
    text: str = value.isoformat()
    return text


# --- warnings and explanations -------------------------------------------------------------------


def warnings_of(reply: Reply) -> Iterator[str]:
    """Yield what a reader should know about a reply besides its text."""
    disclaimer: str | None = getattr(reply.outcome, "disclaimer", None)
    if disclaimer:
        yield disclaimer
    if reply.fallback:
        yield reply.fallback
    if reply.withheld:
        sentences = "1 sentence" if reply.withheld == 1 else f"{reply.withheld} sentences"
        yield f"{sentences} withheld: not supported by the book."
    if notice := keyword_notice(reply.vectors):
        yield f"{notice}."
    if not reply.persisted:
        yield "This exchange was not saved: the database is unavailable."


def keyword_notice(vectors: VectorState) -> str:
    """Return why only keywords were searched; empty if the vectors were searched, too."""
    reasons = {
        "pending": "the vectors of the book are still being computed",
        "away": "the index or the embedder is unavailable",
    }
    reason = reasons.get(vectors.value)
    return f"Keyword search only: {reason}" if reason else ""


def explain_hit(hit: Hit) -> str:
    signals, reading = hit.signals, hit.reading
    read = ""
    if reading is not None:
        best = max(reading.relevance, default=0.0)
        read = f"; reading model {reading.probability:.2f}, best sentence {best:.2f}"
    return (
        f"answers {hit.answers:.2f} (order {hit.order:.2f}{read}); "
        f"scaled cosine of the passage {signals.passage_cosine:.2f}, "
        f"of its best sentence {signals.unit_cosine:.2f}; "
        f"keywords {signals.term_weight:.2f}; of the question's words {signals.coverage:.0%}, "
        f"in the headings {signals.heading_coverage:.0%}, "
        f"in one sentence {signals.best_unit_coverage:.0%}"
    )


def hit_record(hit: Hit) -> dict[str, Any]:
    read = hit.reading
    return {
        "answers": hit.answers,
        "order": hit.order,
        **asdict(hit.signals),
        "reading": None if read is None else read.probability,
        "relevance": None if read is None else max(read.relevance, default=0.0),
    }


def explain_reply(reply: Reply) -> Iterator[str]:
    """Yield lines about the passages found, the gate's reasons and the check of each sentence."""
    from bythebook.answering.gate import reasons

    yield "Found"
    for hit in reply.evidence.considered:
        yield f"  {hit.score:.2f}  {hit.passage.place.path}"
        yield f"        {explain_hit(hit)}"
    yield "Gate"
    for reason in reasons(reply.question, reply.evidence):
        yield f"  {reason}"
    if reply.verdicts:
        yield "Check"
    for verdict in reply.verdicts:
        state = "supported" if verdict.holds else "withheld"
        state = "replaced" if verdict.replaces else state
        sentence = shortened(verdict.replaces or verdict.text, _LONGEST_SENTENCE)
        details = "; ".join(verdict.reasons) or ("verbatim" if verdict.odds == 1 else "")
        yield f"  {state} ({verdict.odds:.2f}) “{sentence}” {details}".rstrip()
        if verdict.markers or verdict.addresses:
            yield f"        removed: {verdict.markers} markers, {verdict.addresses} URLs"


def reply_record(reply: Reply) -> dict[str, Any]:
    """Return the explanation of a reply as JSON data."""
    from bythebook.answering.gate import reasons

    return {
        "found": [
            {"chunk_id": hit.passage.id, "score": hit.score, **hit_record(hit)}
            for hit in reply.evidence.considered
        ],
        "gate": list(reasons(reply.question, reply.evidence)),
        "check": [asdict(verdict) for verdict in reply.verdicts],
    }


# --- progress ------------------------------------------------------------------------------------


class Progress:
    """Progress display on standard error, so that standard output stays clean."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}
        self._said = time.perf_counter()
        self._paces: dict[str, tuple[float, int]] = {}  # start time, and progress at that time

    def __enter__(self) -> Progress:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            console = Console(stderr=True)
            self._bar = Bar(*columns, TimeRemainingColumn(), console=console, transient=True)
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, what: str, done: int, total: int | None) -> None:
        self._paces.setdefault(what, (time.perf_counter(), done))
        if self._bar is not None:
            if what not in self._tasks:
                self._tasks[what] = self._bar.add_task(what, total=total)
            self._bar.update(self._tasks[what], completed=done, total=total)
        elif not self._quiet and time.perf_counter() - self._said > _EVERY_SECONDS:
            self._said = time.perf_counter()
            echo(f"{what}: {done}{self._rest(what, done, total)}", err=True)

    def say(self, what: str) -> None:
        """Print a message between progress updates."""
        if self._bar is not None:
            self._bar.console.print(printable(what), markup=False)
        elif not self._quiet:
            echo(what, err=True)

    def _rest(self, what: str, done: int, total: int | None) -> str:
        """Return `` of 1200, 95 s left``, estimated from the speed so far."""
        if total is None:
            return ""
        since, before = self._paces[what]
        seconds = time.perf_counter() - since
        left = (
            "" if done == before else f", {(total - done) * seconds / (done - before):.0f} s left"
        )
        return f" of {total}{left}"
