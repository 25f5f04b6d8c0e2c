"""``docs/operators/scale.md`` uses the figures that ``bench/capacity.py`` measured."""

from __future__ import annotations

import json

import pytest
from bench.capacity import FIGURES, Capacity, Kept, Part, Stream, table

from tests.support.samples import ROOT


@pytest.fixture(scope="module")
def measured() -> Capacity:
    found = json.loads(FIGURES.read_text("utf-8"))
    parts = [Part(**part) for part in found.pop("parts")]
    kept, stream = Kept(**found.pop("kept")), Stream(**found.pop("stream"))
    return Capacity(**found, parts=parts, kept=kept, stream=stream)


def test_the_results_show_the_measured_figures(measured: Capacity) -> None:
    assert table(measured) in (ROOT / "bench" / "RESULTS.md").read_text("utf-8")


def test_the_page_uses_the_measured_figures(measured: Capacity) -> None:
    page = (ROOT / "docs" / "operators" / "scale.md").read_text("utf-8")
    costs = page.partition("## What one costs")[2].partition("## What a day asks")[0]
    of_a_question = [f"{part.name} {part.question_ms}" for part in measured.parts]
    of_the_database = [
        f"{measured.kept.transactions} transactions",
        f"{measured.kept.kb} KB",
        f"{measured.kept.day_kb} KB",
    ]
    of_a_stream = [f"{measured.stream.memory_kb} KB", f"{measured.stream.event_ms} ms"]
    for figure in (*of_a_question, *of_the_database, *of_a_stream):
        assert figure in costs, figure
