"""The trust card shows the measured figures, loads nothing, and says what was not measured."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from bythebook.evaluation.grade import Case
from bythebook.evaluation.metrics import measure
from bythebook.evaluation.pages import figure_of, trust_card
from bythebook.evaluation.report import BookFacts
from tests.evaluation.cases import CLAIMS, FACTS, answered, refused, unfounded, withheld

_SETUP = {"embedder": "auto", "writer": "extractive", "min_score": 0.5}
_CASES = (answered(), answered(right=False), withheld(), refused(), refused(), unfounded())
_HOSTILE = "</title><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;\x00\u202e]]>"


def _card(*cases: Case, facts: BookFacts = FACTS) -> ElementTree.Element:
    page = trust_card(measure(cases, CLAIMS), facts, _SETUP)
    return ElementTree.fromstring(page.removeprefix("<!doctype html>\n"))


def _tiles(card: ElementTree.Element) -> dict[str, tuple[str, str]]:
    tiles = card.findall(".//ul/li")
    return {
        tile.findtext("h3", ""): (tile.findtext("b", ""), tile.findtext("small", ""))
        for tile in tiles
    }


def test_the_card_shows_the_measured_figures() -> None:
    evaluation = measure(_CASES)
    shown = _tiles(_card(*_CASES))
    for title, name in (
        ("Coverage", "answered"),
        ("Right answers", "right"),
        ("Refusals", "refused"),
        ("Wrong answers", "risk"),
        ("Verified", "supported"),
        ("Verbatim", "verbatim"),
        ("Withheld", "withheld"),
    ):
        figure = evaluation.figures[name]
        assert figure.interval is not None
        low, high = (f"{100 * bound:.0f}" for bound in figure.interval)
        assert shown[title] == (f"{figure.value:.1%}", f"{low} to {high} %, n = {figure.count}")
    assert shown["Verbatim"][0] == "50.0%"
    assert shown["Withheld"][0] == "33.3%"


def test_wrong_refusals_are_the_answerable_questions_without_an_answer() -> None:
    evaluation = measure(_CASES)
    wrong, right = figure_of(evaluation, "wrongly_refused"), evaluation.figures["answered"]
    assert wrong is not None
    assert wrong.interval is not None
    assert right.interval is not None
    assert wrong.value == pytest.approx(1 / 3)
    assert wrong.interval == pytest.approx((1 - right.interval[1], 1 - right.interval[0]))


def test_the_card_has_the_book_the_plots_the_errors_and_the_settings() -> None:
    card = _card(*_CASES)
    words = " ".join(" ".join(card.itertext()).split())
    assert card.findtext(".//h1") == "Kites"
    assert "indexed on 2026-05-04 · 3 pages · 12 passages · 6 questions asked" in words
    assert "3 questions that it answers and 3 that it does not answer" in words
    assert [title.text for title in card.iterfind(".//svg/title")] == [
        "Risk–coverage curve",
        "Reliability diagram",
        "Reliability diagram of support",
    ]
    figures = measure(_CASES, CLAIMS).figures
    for name in ("ece", "support_ece"):
        assert f"Expected calibration error {figures[name].value:.3f}" in words
    assert [pair.text for pair in card.iterfind(".//dl/dd")] == ["fake:bag", "extractive", "0.5"]


def test_the_card_has_no_scripts_and_loads_nothing() -> None:
    page = trust_card(measure(_CASES, CLAIMS), FACTS, _SETUP)
    tree = ElementTree.fromstring(page.removeprefix("<!doctype html>\n"))
    loading = {"script", "link", "img", "iframe", "a", "object"}
    assert loading.isdisjoint(node.tag for node in tree.iter())
    assert not {"src", "href"} & {name for node in tree.iter() for name in node.attrib}
    assert "url(" not in page
    assert "@import" not in page
    policy = tree.find(".//meta[@http-equiv='Content-Security-Policy']")
    assert policy is not None
    assert policy.get("content", "").startswith("default-src 'none'")


def test_a_hostile_title_is_escaped() -> None:
    facts = replace(FACTS, title=_HOSTILE)
    tree = _card(*_CASES, facts=facts)
    assert {"script", "img"}.isdisjoint(node.tag for node in tree.iter())
    assert not [name for node in tree.iter() for name in node.attrib if name.startswith("on")]
    assert "alert(1)" in " ".join(tree.itertext())
    assert "\u202e" not in " ".join(tree.itertext())


def test_a_set_without_unanswerable_questions_has_no_share_of_refusals() -> None:
    shown = _tiles(_card(answered()))
    assert shown["Refusals"] == ("not measured", "")
    assert shown["Coverage"][0] == "100.0%"


def test_without_answers_and_claims_nothing_is_measured() -> None:
    unwritten = replace(refused(), right=None, text="")
    facts = replace(FACTS, title="", embedder="", indexed_at=None)
    page = trust_card(measure([unwritten]), facts, _SETUP)
    card = ElementTree.fromstring(page.removeprefix("<!doctype html>\n"))
    shown = _tiles(card)
    assert shown["Refusals"][0] == "100.0%"
    assert {shown[name][0] for name in ("Coverage", "Verified", "Withheld")} == {"not measured"}
    assert card.find(".//svg") is None
    assert [p.text for p in card.iterfind(".//figure/p")] == ["not measured"] * 3
