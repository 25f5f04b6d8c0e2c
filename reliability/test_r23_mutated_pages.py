"""Any text can be read: no exception, no lost words, time proportional to size."""

from __future__ import annotations

import random
import time
from functools import partial

from tests.sources.test_hostile_input import FRAGMENTS, PLACE, READINGS, read
from tests.support.clock import seconds_of
from tests.support.samples import FEATURES, RULES

from bythebook.ingestion.passages import passages_of
from bythebook.sources.markdown.mdx import MdxSource, ParseOptions, parse
from bythebook.types import Metadata
from reliability.rows import Rows
from reliability.text_mutations import mutate_text

_HOSTILE = [
    "<", "{", "<a ", '<a b="', "<a b={", "$a ", "$$\n", ":::note\n", ">", "> ", "- ", "- a\n", "[",
    "![", "[a](", "*a **b ", "_a_ __", "`a ``b ", "<!-- ", "{/* ", "| a ", "|a|b|\n|-|-|\n",
    "<div>", "<div>\n", "</div>\n", "<details>\n", "<x>", "<X>\n", "```\n", "# a {#",
    "export const a = {\n",
    "{'\\'", "[^1]", "[^1]: a\n", "Mr. A. B. ", "字。", "[a]: b\n", "a\n=\n", "> a\nb\n", "<a\n",
    "<Tabs>\n<TabItem value='a'>\n", "~~a ", "{'a'}", "{`", "`${", "/*", "\u202e", "<tr><td>", "\\",
    "&#", " ", "\t", "\n", "import a from 'b'\n",
]  # fmt: skip
_SMALL, _LARGE = 6_000, 60_000  # signs


def test_any_text(rows: Rows) -> None:
    row = rows.add(
        "R23",
        "Mutate pages and repeat what is slow to parse",
        requirement=(
            "0 exceptions, 0 lost words, ≤ 50 ms/KB; 10 times the text in ≤ 12 times the time"
        ),
    )
    pages = [*sorted(RULES.rglob("*.md*")), *sorted(FEATURES.rglob("*.mdx"))]
    seeds = [page.read_text(encoding="utf-8") for page in pages]
    dice, files = random.Random(7), rows.count(2_000, 20_000)
    failed, slow = [], 0
    for number in range(files):
        text, reading = _mutated(dice.choice(seeds), dice), READINGS[number % len(READINGS)]
        try:
            slow += _is_slow(text, reading)
        except Exception as error:
            failed.append(f"{error!r}: {text!r}")
    each = rows.count(1, len(READINGS))
    tried = [
        (pattern, READINGS[(number + turn) % len(READINGS)])
        for number, pattern in enumerate(_HOSTILE)
        for turn in range(each)
    ]
    steep = [f"{pattern!r} {way}" for pattern, way in tried if not _grows_evenly(pattern, way)]
    print("\n".join((*failed, *steep)))
    row.record(
        f"{files:,} mutated files in {len(READINGS)} readings; {len(_HOSTILE)} hostile patterns, "
        f"each in {each} of them, {_SMALL:,} and {_LARGE:,} signs long",
        f"{len(failed)} exceptions or lost words, {slow} slow; {len(steep)} grow faster than their "
        "text",
        passed=not (failed or slow or steep),
    )


def _mutated(source: str, dice: random.Random) -> str:
    start = source[: dice.randrange(200, 4000)]
    return mutate_text(start, FRAGMENTS, dice, longest=30, most=40)


def _is_slow(text: str, reading: ParseOptions) -> bool:
    bar = 0.25 + 0.05 * len(text) / 1024
    start = time.process_time()
    read(text, reading)
    if time.process_time() - start < bar:
        return False
    # The page's own time, or something else's?
    return seconds_of(partial(read, text, reading), bar=bar) >= bar


def _grows_evenly(pattern: str, reading: ParseOptions) -> bool:
    """Measure the best of four runs."""
    for _ in range(4):
        small, large = (_seconds(pattern, size, reading) for size in (_SMALL, _LARGE))
        if large <= max(12 * small, 0.4) and large < 0.05 * _LARGE / 1024:
            return True
    return False


def _seconds(pattern: str, size: int, reading: ParseOptions) -> float:
    work = partial(parse, MdxSource.of(pattern * (size // len(pattern))), reading)
    return seconds_of(lambda: passages_of(work(), PLACE, Metadata()), runs=2)
