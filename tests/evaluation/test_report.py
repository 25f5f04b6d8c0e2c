"""The HTML report is well-formed and runs nothing, whatever the book contains."""

from dataclasses import replace
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.evaluation.grade import Case
from bythebook.evaluation.metrics import check_targets, measure, read_target
from bythebook.evaluation.pages import report
from bythebook.evaluation.questions import NuggetScore
from bythebook.evaluation.report import document, worst
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

_SETUP = {"embedder": "fake:bag", "min_score": 0.5}
_HOSTILE = "</title><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;\x00\u202e]]>"


def _page(*cases: Case, bars: tuple[str, ...] = ()) -> str:
    evaluation = measure(cases, CLAIMS)
    results = check_targets([read_target(bar) for bar in bars], evaluation)
    return report(evaluation, _SETUP, results, worst(cases, 20))


def _tree(page: str) -> ElementTree.Element:
    return ElementTree.fromstring(page.removeprefix("<!doctype html>\n"))


def test_the_report_shows_plots_figures_bars_and_failures() -> None:
    page = _page(answered(), withheld(), refused(), unfounded(), bars=("answered=.9",))
    tree = _tree(page)
    titles = [title.text for title in tree.iterfind(".//svg/title")]
    assert titles[:3] == [
        "Risk–coverage curve",
        "Reliability diagram",
        "Reliability diagram of support",
    ]
    assert len(titles) == 5  # and a histogram for each kind
    words = " ".join(tree.itertext())
    assert "answered what the book does not say" in words
    assert "missed" in words
    assert tree.find(".//html") is None
    assert tree.tag == "html"


def test_the_report_has_no_scripts_and_loads_nothing() -> None:
    tree = _tree(_page(answered(), unfounded()))
    assert {"script", "link", "img", "iframe", "a"}.isdisjoint(node.tag for node in tree.iter())
    policy = tree.find(".//meta[@http-equiv='Content-Security-Policy']")
    assert policy is not None
    assert policy.get("content", "").startswith("default-src 'none'")


def test_hostile_text_is_escaped() -> None:
    poisoned = replace(
        unfounded(),
        text=_HOSTILE,
        cited=(_HOSTILE,),
        row=replace(unfounded().row, question=_HOSTILE),
    )
    page = _page(of_kind(poisoned, _HOSTILE), answered())
    tree = _tree(page)
    assert {"script", "img"}.isdisjoint(node.tag for node in tree.iter())
    assert not [name for node in tree.iter() for name in node.attrib if name.startswith("on")]
    assert "alert(2)" in " ".join(tree.itertext())
    assert "\u202e" not in page


def test_question_answer_and_missing_nuggets_are_side_by_side() -> None:
    good = scored(answered(), NuggetScore(1, 1, 4))
    bad = scored(answered(), NuggetScore(3, 1, 4, ("s[ae]il", _HOSTILE), ("no wind",)))
    none = scored(withheld(), NuggetScore(2, 0, 0, ("a", "b")))
    tree = _tree(_page(good, bad, none))
    table = tree.find(".//div[@class='card nuggets']//table")
    assert table is not None
    cells = [["".join(cell.itertext()) for cell in row] for row in table.iterfind("tbody/tr")]
    assert [row[0].endswith("not useful") for row in cells] == [True, True, False]
    assert cells[0][1:] == ["refused: low_relevance", "ab"]
    question, shown, missing = cells[1]
    assert question.startswith("How long?")
    assert shown.startswith("It takes a week.")
    assert missing.startswith("s[ae]il")
    assert missing.endswith("forbidden: no wind")
    assert "script" not in {node.tag for node in table.iter()}
    assert _tree(_page(answered())).find(".//div[@class='card nuggets']") is None


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


def test_a_report_without_any_answer() -> None:
    unwritten = replace(refused(), right=None, text="")
    assert _tree(_page(unwritten)).tag == "html"


@settings(deadline=None, max_examples=20)
@given(st.text())
def test_any_text_is_well_formed(content: str) -> None:
    assert _tree(_page(of_kind(replace(unfounded(), text=content), content))).tag == "html"


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
    assert [(each["count"], each["right"]) for each in found["support_reliability"]] == [
        (1, 0),
        (2, 0.5),
    ]
    # |.1 - 0| · 1/3 + |.84 - .5| · 2/3
    assert found["figures"]["support_ece"] == round(0.1 / 3 + 0.34 * 2 / 3, 4)
