"""Statistics, compared with values computed by hand and with their properties."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.evaluation.metrics import (
    area_under,
    auroc,
    calibration_error,
    reliability,
    risk_coverage,
    wilson,
)

shares = st.floats(0, 1)
graded = st.lists(st.tuples(shares, st.booleans()), min_size=1, max_size=60)


def test_the_interval_of_a_share() -> None:
    low, high = wilson(0.9, 100)
    assert (low, high) == pytest.approx((0.8256, 0.9448), abs=1e-4)
    assert wilson(1.0, 10)[1] == 1
    assert wilson(0.0, 10)[0] == 0


@given(st.integers(0, 500), st.integers(1, 500))
def test_a_share_lies_in_its_interval(part: int, more: int) -> None:
    share = part / (part + more)
    low, high = wilson(share, part + more)
    assert 0 <= low <= share <= high <= 1


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


def test_answers_of_equal_confidence_are_one_point() -> None:
    (point,) = risk_coverage([(0.5, True), (0.5, False)], total=2)
    assert (point.coverage, point.risk) == (1, 0.5)


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
