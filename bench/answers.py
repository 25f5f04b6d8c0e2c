"""Asks every question of a set and counts what the answers hold.

    python bench/answers.py HOME QA.jsonl [QA2.jsonl …]

HOME is an ingested book. *gold* is the share of the answered questions whose shown text contains
a gold answer; *section* the share that cite the question's own section.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from bythebook.assemble import Library, open_library
from bythebook.model import Answer, Question, Reply
from bythebook.settings import load_settings


def main(home: Path, files: list[Path]) -> None:
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    replies = asyncio.run(_ask_all(open_library(load_settings({"home": home})), rows))
    kinds: defaultdict[str, list[tuple[dict[str, Any], Reply]]] = defaultdict(list)
    for row, reply in zip(rows, replies, strict=True):
        suffix = "" if row["kind"] != "selected_text" else f", impossible: {row['is_impossible']}"
        kinds[row["kind"] + suffix].append((row, reply))
    for kind, asked in sorted(kinds.items()):
        print(f"{kind}: {_figures(asked)}")
    times = sorted(reply.timings.total_ms for reply in replies)
    print(f"ms: median {statistics.median(times):.0f}, p95 {times[int(len(times) * 0.95)]:.0f}")


async def _ask_all(library: Library, rows: list[dict[str, Any]]) -> list[Reply]:
    await library.warm_up()
    return [
        await library.reply(Question(row["question"], selection=row.get("selected_text")))
        for row in rows
    ]


def _figures(asked: list[tuple[dict[str, Any], Reply]]) -> str:
    answered = [(row, r.outcome) for row, r in asked if isinstance(r.outcome, Answer)]
    figures = f"{len(asked)} asked, {len(answered) / len(asked):.3f} answered"
    with_gold = [(row, answer) for row, answer in answered if row["answers"]]
    if with_gold:
        gold = [_holds(answer, row["answers"]) for row, answer in with_gold]
        section = [_cites(answer, row) for row, answer in with_gold]
        length = [len(answer.sentences) for _, answer in with_gold]
        figures += (
            f"; gold {statistics.mean(gold):.3f}, section {statistics.mean(section):.3f}, "
            f"{statistics.mean(length):.2f} sentences"
        )
    return figures


def _holds(answer: Answer, golds: list[str]) -> bool:
    shown = _flat(answer.text)
    return any(_flat(gold) in shown for gold in golds)


def _cites(answer: Answer, row: dict[str, Any]) -> bool:
    heading = row.get("heading") or row.get("section")
    return any(
        str(row["file"]).endswith(citation.place.file)
        and heading in (*citation.place.section, citation.place.heading)
        for citation in answer.citations
    )


def _flat(text: str) -> str:
    return " ".join(text.split()).lower()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
