"""Targets: minimum or maximum, met or missed."""

import pytest

from bythebook.errors import InvalidInput
from bythebook.evaluation.metrics import check_targets, measure, read_target
from tests.evaluation.cases import answered, refused


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
