"""Figures, statistics and targets, compared with values computed by hand."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.errors import InvalidInput
from bythebook.evaluation.grade import Case
from bythebook.evaluation.metrics import (
    METRICS,
    area_under,
    auroc,
    calibration_error,
    check_targets,
    measure,
    metric_of,
    read_target,
    reliability,
    risk_coverage,
    wilson,
)
from tests.evaluation.cases import answered, of_kind, refused, unfounded, withheld
from tests.support.samples import ROOT

shares = st.floats(0, 1)
graded = st.lists(st.tuples(shares, st.booleans()), min_size=1, max_size=60)


def test_the_interval_of_a_share() -> None:
    low, high = wilson(0.9, 100)
    assert (low, high) == pytest.approx((0.8256, 0.9448), abs=1e-4)
    assert wilson(1.0, 10)[1] == 1
    assert wilson(0.0, 10)[0] == 0


def test_auroc_counts_pairs_and_halves_ties() -> None:
    # of the six pairs: .9 beats both, .5 beats one and ties one, .2 loses one and ties none
    assert auroc([0.9, 0.5, 0.2], [0.5, 0.1]) == pytest.approx((2 + 1.5 + 1) / 6)
    assert auroc([1.0], [0.0]) == 1
    assert auroc([0.5], [0.5]) == 0.5


@given(st.lists(shares, min_size=1), st.lists(shares, min_size=1))
def test_swapped_auroc_is_the_complement(one: list[float], other: list[float]) -> None:
    assert auroc(one, other) == pytest.approx(1 - auroc(other, one))


def test_the_curve_starts_with_the_highest_confidence() -> None:
    curve = risk_coverage([(0.9, True), (0.8, False), (0.7, True)], total=4)
    assert [(p.coverage, p.risk) for p in curve] == [
        (0.25, 0),
        (0.5, 0.5),
        (0.75, pytest.approx(1 / 3)),
    ]
    # (0 + 1/2 + 1/3) / 3
    assert area_under(curve) == pytest.approx(5 / 18)


@given(graded)
def test_the_curve_does_not_depend_on_order_and_ends_at_the_overall_risk(
    cases: list[tuple[float, bool]],
) -> None:
    curve = risk_coverage(cases, total=len(cases))
    shuffled = random.Random(0).sample(cases, len(cases))
    assert risk_coverage(shuffled, total=len(cases)) == curve
    assert curve[-1].coverage == 1
    assert curve[-1].risk == pytest.approx(sum(not right for _, right in cases) / len(cases))
    assert 0 <= area_under(curve) <= 1


def test_calibration_error() -> None:
    bins = reliability([(0.95, True), (0.92, False), (0.15, False), (1.0, True)])
    assert [(each.low, each.count) for each in bins] == [(0.1, 1), (0.9, 3)]
    assert bins[1].right == pytest.approx(2 / 3)
    # |.15 - 0| · 1/4 + |.9567 - .6667| · 3/4
    assert calibration_error(bins) == pytest.approx(0.15 / 4 + (2.87 / 3 - 2 / 3) * 3 / 4)


@given(graded)
def test_bins_contain_every_case(cases: list[tuple[float, bool]]) -> None:
    bins = reliability(cases)
    assert sum(each.count for each in bins) == len(cases)
    assert all(each.low - 1e-9 <= each.confidence <= each.high + 1e-9 for each in bins)
    assert 0 <= calibration_error(bins) <= 1


# --- figures -------------------------------------------------------------------------------------


def test_figures_of_answers() -> None:
    cases = [answered(), answered(right=False, rank=3), withheld(), refused()]
    figures = measure(cases).figures
    assert figures["answered"].value == pytest.approx(2 / 3)
    assert figures["answered"].count == 3
    assert figures["right"].value == pytest.approx(1 / 3)
    assert figures["gold"].value == figures["section"].value == 0.5
    assert figures["page"].value == 1
    assert figures["sentences"].value == 2
    assert figures["coverage"].value == 0.5
    assert figures["risk"].value == 0.5


def test_figures_of_retrieval() -> None:
    ranks = (1, 2, 7, None)
    figures = measure([answered(rank=rank) for rank in ranks]).figures
    assert [figures[f"hit@{depth}"].value for depth in (1, 5, 10)] == [0.25, 0.5, 0.75]
    assert figures["mrr@10"].value == pytest.approx((1 + 1 / 2 + 1 / 7) / 4)


def test_refusals_by_kind() -> None:
    cases = [refused(), refused(), unfounded(), unfounded(kind="adversarial"), withheld()]
    figures = measure(cases).figures
    assert figures["refused"].value == 0.5
    assert figures["refused.off_book"].value == pytest.approx(2 / 3)
    assert figures["refused.adversarial"].value == 0
    assert figures["refusal_precision"].value == pytest.approx(2 / 3)


def test_citations_are_counted_one_by_one() -> None:
    wrong = replace(answered(), quoted=(True, False), linked=(), supported=(True, True, False))
    figures = measure([answered(), wrong]).figures
    assert figures["quoted"].value == pytest.approx(2 / 3)
    assert figures["self_cited"].value == 0.5
    assert (figures["linked"].value, figures["linked"].count) == (1, 1)
    assert figures["supported"].value == pytest.approx(4 / 5)


def test_f1_counts_only_answers_with_a_span() -> None:
    assert "f1" not in measure([answered()]).figures
    marked = replace(answered(), marked="one week")  # gold: "a week"
    figure = measure([answered(), marked]).figures["f1"]
    assert (figure.value, figure.count) == (pytest.approx(2 / 3), 1)


def test_auroc_compares_selections_only_with_selections() -> None:
    cases = [
        answered(0.9),
        unfounded(0.95),
        of_kind(answered(0.6), "selected", selection="text"),
        of_kind(refused(0.5), "selected", selection="text"),
    ]
    figures = measure(cases).figures
    assert figures["auroc.off_book"].value == 0
    assert figures["auroc.selected"].value == 1


def test_percentiles_of_times() -> None:
    figures = measure([answered(), refused()]).figures
    assert figures["ms.total.p50"].value == 22.5
    assert figures["ms.refusal.p95"].value == 15
    assert (figures["ms.writing.p50"].value, figures["ms.writing.p50"].count) == (15, 1)


def test_cases_without_a_grade_are_left_out_of_the_curve() -> None:
    evaluation = measure([answered(), replace(answered(), right=None)])
    assert [(p.coverage, p.risk) for p in evaluation.curve] == [(1, 0)]


cases = st.lists(
    st.one_of(
        st.builds(answered, st.floats(0, 1), right=st.booleans()),
        st.builds(withheld, st.floats(0, 1)),
        st.builds(refused, st.floats(0, 1)),
        st.builds(unfounded, st.floats(0, 1)),
    )
)


@given(cases)
def test_every_figure_has_a_name_and_every_share_lies_in_its_interval(drawn: list[Case]) -> None:
    evaluation = measure(drawn)
    for name, figure in evaluation.figures.items():
        assert metric_of(name) is not None
        assert figure.count > 0
        if figure.interval is not None:
            low, high = figure.interval
            assert 0 <= low <= figure.value <= high <= 1
    assert evaluation == measure(drawn)


def test_every_figure_is_explained_in_the_documentation() -> None:
    page = (ROOT / "docs" / "authors" / "evaluation.md").read_text("utf-8")
    for name, metric in METRICS.items():
        kinds = ".KIND" if metric.only_by_kind else ""
        assert f"| `{name}{kinds}` | {metric.description} |" in page


# --- targets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bar", "met"),
    [
        ("answered=.93", True),
        ("answered=1", True),
        ("refused.off_book = 0.5", True),
        ("hit@1.answerable=1", True),
        ("ms.total.p95=150", True),  # at most
        ("ms.total.p95=3", False),
        ("sentences=1.5", False),
        ("auroc.nobody=.5", False),  # nothing measures it
    ],
)
def test_a_target_is_met_or_missed(bar: str, met: bool) -> None:
    (result,) = check_targets([read_target(bar)], measure([answered(), refused()]))
    assert result.met is met


@pytest.mark.parametrize("bar", ["beauty=1", "answered", "answered=", "answered=nan", "auroc=1"])
def test_an_invalid_target_is_refused(bar: str) -> None:
    with pytest.raises(InvalidInput):
        read_target(bar)
