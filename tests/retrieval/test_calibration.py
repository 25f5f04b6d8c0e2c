"""The calibrated score."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.errors import IndexDamaged
from bythebook.interfaces.store import Generation
from bythebook.retrieval.calibration import (
    MEASURED,
    WORDS_ALONE,
    Calibration,
    Reading,
    calibration_of,
)
from bythebook.types import Signals, VectorState

_cosine = st.floats(-1, 1)
_share = st.floats(0, 1)


_signals = st.builds(Signals, _cosine, _cosine, _share, _share, _share, _share, st.integers(0, 9))


@given(st.lists(_signals, max_size=8))
def test_a_score_is_a_probability(found: list[Signals]) -> None:
    scores = MEASURED["local:minilm-int8"].scores(found)
    assert len(scores) == len(found)
    assert all(0 < score < 1 for score in scores)


@given(_signals)
def test_counter_evidence_never_raises_a_score(seen: Signals) -> None:
    calibration = MEASURED["local:minilm-int8"]
    [score] = calibration.scores([seen])
    for doubt in ("missing_rare_term", "negation_mismatch", "unmatched_entities"):
        worse = replace(seen, **{doubt: getattr(seen, doubt) + 1})
        assert calibration.scores([worse])[0] <= score


def test_a_gap_to_the_best_passage_lowers_a_score() -> None:
    calibration = MEASURED["local:minilm-int8"]
    weak, strong = Signals(0.4, 0.5, 0.3, 0.6), Signals(0.7, 0.8, 0.6, 1.0)
    assert calibration.scores([weak, strong])[0] < calibration.scores([weak])[0]


def test_two_equal_passages_get_equal_scores() -> None:
    strong = Signals(0.7, 0.8, 0.6, 1.0)
    calibration = MEASURED["local:minilm-int8"]
    assert calibration.scores([strong, strong]) == calibration.scores([strong]) * 2


def test_extreme_weights_do_not_overflow() -> None:
    sure = Reading(1e9, 0, 0, 0, 0, 0, 0, 0)
    assert Calibration(0, 0, 0, 0, 1e9, 0, 0, sure).scores([Signals()])[0] <= 1
    assert Calibration(0, 0, 0, 0, -1e9, 0, 0, sure).scores([Signals()])[0] >= 0


def test_a_generation_is_scored_with_its_own_weights() -> None:
    known = _generation(embedder="local:minilm-int8")
    assert calibration_of(known) is MEASURED["local:minilm-int8"]
    assert calibration_of(replace(known, vectors=VectorState.PENDING)) is WORDS_ALONE
    fitted = replace(WORDS_ALONE, bias=-1.0)
    own = _generation(embedder="acme:unknown", calibration=fitted.to_json())
    assert calibration_of(own) == fitted


def test_a_short_book_of_an_unknown_embedder_is_scored_by_keywords() -> None:
    calibration = calibration_of(_generation(embedder="acme:unknown"))
    assert calibration.scores([Signals(0.8, 0.8, 0.7, 1.0)])[0] > 0.5
    assert calibration.scores([Signals(0.8, 0.8)])[0] < 0.5


def _generation(*, embedder: str, calibration: str = "") -> Generation:
    return Generation("name", embedder, 3, 1, "print", b"", calibration=calibration)


@given(st.data())
def test_a_calibration_that_changed_on_its_disk_is_damaged(data: st.DataObject) -> None:
    told = MEASURED["local:minilm-int8"].to_json()
    at = data.draw(st.integers(0, len(told) - 1))
    other = data.draw(st.characters(codec="ascii").filter(lambda sign: sign != told[at]))
    changed = told[:at] + other + told[at + 1 :]
    try:
        known = calibration_of(_generation(embedder="acme:unknown", calibration=changed))
    except IndexDamaged as error:
        assert "calibration" in error.message
    else:  # the seal itself is gone, or a blank is another blank
        assert known == MEASURED["local:minilm-int8"]


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", '{"reading": {}}', '{"reading": 7}'])
def test_an_invalid_calibration_is_reported_as_damage(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Calibration.from_json(text)
