"""Asks follow-up questions in their threads and counts whose answer cites the right section.

    bythebook ingest examples/physical-ai-book/docs --home HOME
    python -m bench.follow_ups --home HOME

A row of the question set has the earlier questions of its thread, the follow-up, and ``gold``: all
sections that answer it. ``said`` counts the answers that show one of the row's ``answers``. Without
gold, the book does not answer the question and a refusal is right. Odd rows are for development,
even rows only for the final measurement; ``alone`` asks the same follow-ups without their threads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bythebook.api import open_book
from bythebook.book import Book
from bythebook.conversations.session import exchange_of
from bythebook.types import Answer, Message, Place, Question, Reply

QUESTIONS = Path(__file__).parents[1] / "examples" / "physical-ai-book" / "follow-ups.jsonl"


@dataclass(frozen=True)
class FollowUp:
    """One follow-up question with its thread and the sections that answer it."""

    id: str
    kind: str
    history: tuple[str, ...]
    question: str
    gold: frozenset[tuple[str, str]]  # file and heading; empty: not in the book
    answers: tuple[str, ...] = ()  # text of which one part must be shown


@dataclass(frozen=True)
class Outcome:
    """What the reply to one follow-up cites."""

    row: FollowUp
    found: bool  # the first hit is in gold
    first: bool  # so is the first cited section, or the refusal is right
    any: bool  # so is any cited section, or the refusal is right
    said: bool  # the answer shows one of the answers, or the refusal is right
    refused: bool
    cited: tuple[str, ...]
    ms: float


def read_rows(path: Path = QUESTIONS) -> list[FollowUp]:
    """Return the rows of a question set, in order."""
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return [
        FollowUp(
            row["id"],
            row["kind"],
            tuple(before["question"] for before in row["history"]),
            row["question"],
            frozenset((gold["file"], gold["heading"]) for gold in row["gold"]),
            tuple(row["answers"]),
        )
        for row in rows
    ]


def development(rows: Sequence[FollowUp]) -> list[FollowUp]:
    """Return the odd rows."""
    return list(rows[::2])


def held_out(rows: Sequence[FollowUp]) -> list[FollowUp]:
    """Return the even rows."""
    return list(rows[1::2])


async def ask_all(book: Book, rows: Iterable[FollowUp], *, alone: bool = False) -> list[Outcome]:
    """Ask the history of each row in order, then the follow-up."""
    outcomes = []
    for row in rows:
        history: list[Message] = []
        for text in () if alone else row.history:
            reply = await book.ask(Question(text), history=history)
            history += exchange_of(reply, now=datetime.now(UTC))
        outcomes.append(grade(row, await book.ask(Question(row.question), history=history)))
    return outcomes


def grade(row: FollowUp, reply: Reply) -> Outcome:
    """Compare the sections of the first hit and of the citations with gold."""
    answer = reply.outcome if isinstance(reply.outcome, Answer) else None
    cited = [citation.place for citation in answer.citations] if answer else []
    hits = [hit.passage.place for hit in reply.evidence.considered]
    right = [_section(place) in row.gold for place in cited]
    refusal = answer is None and not row.gold
    return Outcome(
        row,
        found=any(_section(place) in row.gold for place in hits[:1]) or refusal,
        first=any(right[:1]) or refusal,
        any=any(right) or refusal,
        said=_says(answer, row.answers) or refusal,
        refused=answer is None,
        cited=tuple(place.heading for place in cited),
        ms=reply.timings.total_ms,
    )


def share(outcomes: Sequence[Outcome], counts: Callable[[Outcome], bool]) -> float:
    """Return the share of the outcomes that count."""
    return statistics.fmean(map(counts, outcomes)) if outcomes else 0.0


def figures(name: str, outcomes: Sequence[Outcome]) -> str:
    """Return one line of figures."""
    return (
        f"{name:<22} {len(outcomes):>4} rows  "
        f"first hit {share(outcomes, lambda each: each.found):.3f}  "
        f"first cited {share(outcomes, lambda each: each.first):.3f}  "
        f"any cited {share(outcomes, lambda each: each.any):.3f}  "
        f"said {share(outcomes, lambda each: each.said):.3f}  "
        f"refused {share(outcomes, lambda each: each.refused):.3f}  "
        f"median {statistics.median(each.ms for each in outcomes):.0f} ms"
    )


def _says(answer: Answer | None, wanted: Sequence[str]) -> bool:
    text = answer.text.lower() if answer else ""
    return any(part.lower() in text for part in wanted)


def _section(place: Place) -> tuple[str, str]:
    return place.file, place.heading


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", required=True, help="of the ingested sample book")
    parser.add_argument("--questions", type=Path, default=QUESTIONS)
    parser.add_argument("--development", action="store_true", help="only the odd rows")
    parser.add_argument("--misses", action="store_true", help="show the rows that are not right")
    options = parser.parse_args()
    rows = read_rows(options.questions)
    parts = {"development": development(rows)}
    if not options.development:
        parts["held out"] = held_out(rows)
    async with open_book(options.home) as book:
        await book.warm_up()
        for name, part in parts.items():
            outcomes = await ask_all(book, part)
            print(figures(name, outcomes))
            for kind in dict.fromkeys(row.kind for row in part):
                print(figures(f"  {kind}", [each for each in outcomes if each.row.kind == kind]))
            print(figures("  all, alone", await ask_all(book, part, alone=True)), flush=True)
            for each in outcomes if options.misses else ():
                if not each.first:
                    wanted = ", ".join(sorted(heading for _, heading in each.row.gold))
                    thread = " > ".join((*each.row.history, each.row.question))
                    print(f"    {each.row.id} {thread}\n      {each.cited or 'refused'} ({wanted})")


if __name__ == "__main__":
    asyncio.run(main())
