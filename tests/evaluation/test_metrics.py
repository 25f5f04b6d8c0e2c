"""Figures of graded cases, compared with values computed by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.evaluation.grade import Case
from bythebook.evaluation.metrics import METRICS, measure, metric_of
from tests.evaluation.cases import answered, of_kind, refused, unfounded, withheld
from tests.support.samples import ROOT


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
