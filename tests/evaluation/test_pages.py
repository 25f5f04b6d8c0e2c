"""Report, trust card and JSON show what was measured; the pages load nothing."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.evaluation.grade import Case
from bythebook.evaluation.metrics import check_targets, measure, read_target
from bythebook.evaluation.pages import figure_of, report, trust_card
from bythebook.evaluation.questions import NuggetScore
from bythebook.evaluation.report import BookFacts, Fault, document, worst
from tests.evaluation.cases import (
    CLAIMS,
    FACTS,
    answered,
    of_kind,
    refused,
    scored,
    unfounded,
    withheld,
)

_SETUP = {"embedder": "auto", "writer": "extractive", "min_score": 0.5}
_CASES = (answered(), answered(right=False), withheld(), refused(), refused(), unfounded())
_HOSTILE = "</title><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;\x00\u202e]]>"
_PLOTS = ["Risk–coverage curve", "Reliability diagram", "Reliability diagram of support"]
_UNWRITTEN = replace(refused(), right=None, text="")


def _report(*cases: Case, bars: tuple[str, ...] = ()) -> str:
    evaluation = measure(cases, CLAIMS)
    results = check_targets([read_target(bar) for bar in bars], evaluation)
    return report(evaluation, _SETUP, results, worst(cases, 20))


def _card(*cases: Case, facts: BookFacts = FACTS) -> str:
    return trust_card(measure(cases, CLAIMS), facts, _SETUP)


def _tree(page: str) -> ElementTree.Element:
    return ElementTree.fromstring(page.removeprefix("<!doctype html>\n"))


def _words(tree: ElementTree.Element) -> str:
    return " ".join(" ".join(tree.itertext()).split())


def _tiles(card: ElementTree.Element) -> dict[str, tuple[str, str]]:
    return {
        tile.findtext("h3", ""): (tile.findtext("b", ""), tile.findtext("small", ""))
        for tile in card.iterfind(".//ul/li")
    }


# --- both pages ----------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [_report(*_CASES), _card(*_CASES)], ids=["report", "card"])
def test_a_page_has_no_scripts_and_loads_nothing(page: str) -> None:
    tree = _tree(page)
    loading = {"script", "link", "img", "iframe", "a", "object"}
    assert loading.isdisjoint(node.tag for node in tree.iter())
    assert not {"src", "href"} & {name for node in tree.iter() for name in node.attrib}
    assert "url(" not in page
    assert "@import" not in page
    policy = tree.find(".//meta[@http-equiv='Content-Security-Policy']")
    assert policy is not None
    assert policy.get("content", "").startswith("default-src 'none'")


_POISONED = replace(
    unfounded(), text=_HOSTILE, cited=(_HOSTILE,), row=replace(unfounded().row, question=_HOSTILE)
)


@pytest.mark.parametrize(
    "page",
    [
        _report(of_kind(_POISONED, _HOSTILE), answered()),
        _card(*_CASES, facts=replace(FACTS, title=_HOSTILE)),
    ],
    ids=["report", "card"],
)
def test_hostile_text_is_escaped(page: str) -> None:
    tree = _tree(page)
    assert {"script", "img"}.isdisjoint(node.tag for node in tree.iter())
    assert not [name for node in tree.iter() for name in node.attrib if name.startswith("on")]
    assert "alert(2)" in _words(tree)
    assert "\u202e" not in page


@settings(deadline=None, max_examples=20)
@given(st.text())
def test_any_text_is_well_formed(content: str) -> None:
    assert _tree(_report(of_kind(replace(unfounded(), text=content), content))).tag == "html"


# --- the report ----------------------------------------------------------------------------------


def test_the_report_shows_plots_figures_bars_and_failures() -> None:
    cases = (answered(), withheld(), refused(), unfounded())
    tree = _tree(_report(*cases, bars=("answered=.9",)))
    titles = [title.text for title in tree.iterfind(".//svg/title")]
    assert titles[:3] == _PLOTS
    assert len(titles) == 5  # and a histogram for each kind
    assert "answered what the book does not say" in _words(tree)
    assert "missed" in _words(tree)


def test_question_answer_and_missing_nuggets_are_side_by_side() -> None:
    good = scored(answered(), NuggetScore(1, 1, 4))
    bad = scored(answered(), NuggetScore(3, 1, 4, ("s[ae]il", _HOSTILE), ("no wind",)))
    none = scored(withheld(), NuggetScore(2, 0, 0, ("a", "b")))
    table = _tree(_report(good, bad, none)).find(".//div[@class='card nuggets']//table")
    assert table is not None
    cells = [["".join(cell.itertext()) for cell in row] for row in table.iterfind("tbody/tr")]
    assert [row[0].endswith("not useful") for row in cells] == [True, True, False]
    assert cells[0][1:] == ["refused: low_relevance", "ab"]
    question, shown, missing = cells[1]
    assert question.startswith("How long?")
    assert shown.startswith("It takes a week.")
    assert missing.startswith("s[ae]il")
    assert missing.endswith("forbidden: no wind")


# --- the card ------------------------------------------------------------------------------------


def test_the_card_shows_the_measured_figures() -> None:
    figures = measure(_CASES).figures
    shown = _tiles(_tree(_card(*_CASES)))
    for title, name in (
        ("Coverage", "answered"),
        ("Right answers", "right"),
        ("Refusals", "refused"),
        ("Wrong answers", "risk"),
        ("Verified", "supported"),
        ("Verbatim", "verbatim"),
        ("Withheld", "withheld"),
    ):
        figure = figures[name]
        assert figure.interval is not None
        low, high = (f"{100 * bound:.0f}" for bound in figure.interval)
        assert shown[title] == (f"{figure.value:.1%}", f"{low} to {high} %, n = {figure.count}")


def test_wrong_refusals_are_the_answerable_questions_without_an_answer() -> None:
    evaluation = measure(_CASES)
    wrong, right = figure_of(evaluation, "wrongly_refused"), evaluation.figures["answered"]
    assert wrong is not None
    assert wrong.value == pytest.approx(1 / 3)
    assert wrong.interval is not None
    assert right.interval is not None
    assert wrong.interval == pytest.approx((1 - right.interval[1], 1 - right.interval[0]))


def test_the_card_has_the_book_the_plots_the_errors_and_the_settings() -> None:
    card = _tree(_card(*_CASES))
    words = _words(card)
    assert card.findtext(".//h1") == "Kites"
    assert "indexed on 2026-05-04 · 3 pages · 12 passages · 6 questions asked" in words
    assert "3 questions that it answers and 3 that it does not answer" in words
    assert [title.text for title in card.iterfind(".//svg/title")] == _PLOTS
    figures = measure(_CASES, CLAIMS).figures
    for name in ("ece", "support_ece"):
        assert f"Expected calibration error {figures[name].value:.3f}" in words
    assert [pair.text for pair in card.iterfind(".//dl/dd")] == ["fake:bag", "extractive", "0.5"]


def test_what_was_not_measured_is_said() -> None:
    shown = _tiles(_tree(_card(answered())))
    assert shown["Refusals"] == ("not measured", "")
    assert shown["Coverage"][0] == "100.0%"
    facts = replace(FACTS, title="", embedder="", indexed_at=None)
    card = _tree(trust_card(measure([_UNWRITTEN]), facts, _SETUP))
    shown = _tiles(card)
    assert shown["Refusals"][0] == "100.0%"
    assert {shown[name][0] for name in ("Coverage", "Verified", "Withheld")} == {"not measured"}
    assert card.find(".//svg") is None
    assert [p.text for p in card.iterfind(".//figure/p")] == ["not measured"] * 3
    assert _tree(_report(_UNWRITTEN)).tag == "html"


# --- JSON and failures ---------------------------------------------------------------------------


def test_the_json_document_uses_the_names_of_figures() -> None:
    evaluation = measure([answered(), unfounded()], CLAIMS)
    results = check_targets([read_target("refused.off_book=.5")], evaluation)
    found = document(evaluation, FACTS, _SETUP, results, worst(evaluation.cases, 20))
    assert found["figures"]["refused.off_book"] == 0
    assert found["counts"]["refused.off_book"] == 1
    assert found["bars"] == [
        {"name": "refused.off_book", "at_least": 0.5, "value": 0.0, "met": False}
    ]
    assert found["worst"][0]["fault"] == "answered what the book does not say"
    assert found["questions"] == {"answerable": 1, "off_book": 1}
    assert found["book"]["title"] == FACTS.title
    bins = [(each["count"], each["right"]) for each in found["support_reliability"]]
    assert bins == [(1, 0), (2, 0.5)]
    # |.1 - 0| · 1/3 + |.84 - .5| · 2/3
    assert found["figures"]["support_ece"] == round(0.1 / 3 + 0.34 * 2 / 3, 4)


def test_the_json_document_lists_the_missing_nuggets() -> None:
    cases = [scored(answered(), NuggetScore(3, 1, 4, ("sail", "tail"))), withheld(), refused()]
    evaluation = measure([*cases, scored(withheld(), NuggetScore(1, 0, 0, ("sail",)))])
    found = document(evaluation, FACTS, _SETUP, (), ())
    figures = found["figures"]
    assert (figures["useful"], figures["vital_recall"]) == (0, round(1 / 6, 4))
    assert (figures["words"], found["counts"]["words"]) == (4, 1)
    first, second = found["nuggets"]
    assert first["missing"] == ["sail", "tail"]
    assert (first["answer"], second["answer"]) == ("It takes a week.", None)


def test_failures_alternate_between_faults_the_most_confident_first() -> None:
    missed = answered(0.99, right=False, rank=4)
    cases = [answered(), refused(), unfounded(0.7), unfounded(0.95), missed, withheld(0.31)]
    cases.append(withheld(0.1))
    failures = worst(cases, 20)
    assert [(f.fault, f.case.confidence) for f in failures] == [
        (Fault.UNFOUNDED, 0.95),
        (Fault.MISSED, 0.99),
        (Fault.WITHHELD, 0.1),
        (Fault.UNFOUNDED, 0.7),
        (Fault.WITHHELD, 0.31),
    ]
    assert len(worst(cases, 2)) == 2
    assert failures[1].why == (
        "The right section has rank 4. The answer cites another section of the page."
    )
    assert failures[4].why == (
        "Refused because of low relevance. The best passage scored 0.31. "
        "The right section has rank 1."
    )
    (unfound,) = worst([answered(right=False, rank=None)], 1)
    assert "not among the 10 best passages" in unfound.why
