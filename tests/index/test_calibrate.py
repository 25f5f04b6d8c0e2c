"""The calibrated score."""

from hypothesis import given
from hypothesis import strategies as st

from bythebook.index.calibrate import Calibration, calibration_for
from bythebook.model import Signals

_cosine = st.floats(-1, 1)
_share = st.floats(0, 1)


_signals = st.builds(Signals, _cosine, _cosine, _share, _share)


@given(st.lists(_signals, max_size=8))
def test_a_score_is_a_probability(found: list[Signals]) -> None:
    scores = calibration_for("local:minilm").scores(found)
    assert len(scores) == len(found)
    assert all(0 < score < 1 for score in scores)


@given(st.lists(_signals, min_size=2, max_size=8))
def test_scores_keep_the_order_of_merit(found: list[Signals]) -> None:
    calibration = calibration_for("local:minilm")
    pairs = sorted(
        zip(map(calibration.merit, found), calibration.scores(found), strict=True), reverse=True
    )
    scores = [score for _, score in pairs]
    assert scores == sorted(scores, reverse=True)


def test_falling_behind_lowers_a_score() -> None:
    calibration = calibration_for("local:minilm")
    weak, strong = Signals(0.4, 0.5, 0.3, 0.6), Signals(0.7, 0.8, 0.6, 1.0)
    assert calibration.scores([weak, strong])[0] < calibration.scores([weak])[0]


def test_two_passages_that_say_the_same_are_both_trusted() -> None:
    strong = Signals(0.7, 0.8, 0.6, 1.0)
    calibration = calibration_for("local:minilm")
    assert calibration.scores([strong, strong]) == calibration.scores([strong]) * 2


def test_extreme_weights_do_not_overflow() -> None:
    assert Calibration(0, 0, 0, 0, 1e9, 0, 0).scores([Signals()])[0] <= 1
    assert Calibration(0, 0, 0, 0, -1e9, 0, 0).scores([Signals()])[0] >= 0


def test_an_embedder_nobody_measured_still_has_a_score() -> None:
    calibration = calibration_for("acme:unknown")
    assert calibration.scores([Signals(0.8, 0.8, 0.7, 1.0)])[0] > 0.5
    assert calibration.scores([Signals()])[0] < 0.5
