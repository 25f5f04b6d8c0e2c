"""``bythebook eval``: figures, targets, generated questions and errors."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bythebook.cli.eval import FIGURES
from bythebook.evaluation.metrics import METRICS
from tests.support.command import run
from tests.support.samples import SAMPLE_BOOK

_QUESTIONS = str(SAMPLE_BOOK / "questions.jsonl")


def test_eval_measures_the_sample_book(sample_home: Path, tmp_path: Path) -> None:
    page, card = tmp_path / "report.html", tmp_path / "card.html"
    written = ("--html", str(page), "--card", str(card))
    options = ("--limit", "24", "--home", str(sample_home), *written)
    done = run("eval", _QUESTIONS, *options, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert sum(found["questions"].values()) == 24
    assert set(found["questions"]) == {"answerable", "off_book", "selected_text"}
    figures = found["figures"]
    assert figures["quoted"] == figures["linked"] == figures["supported"] == 1
    assert figures["answered.answerable"] > 0.6
    assert figures["refused.off_book"] > 0.8
    assert figures["hit@5"] > 0.8
    assert found["risk_coverage"]
    assert found["reliability"]
    tree = ElementTree.fromstring(page.read_text("utf-8").removeprefix("<!doctype html>\n"))
    assert len(tree.findall(".//svg")) >= 6
    tree = ElementTree.fromstring(card.read_text("utf-8").removeprefix("<!doctype html>\n"))
    assert tree.findtext(".//h1") == found["book"]["title"]
    assert len(tree.findall(".//svg")) == 3
    tiles = {tile.findtext("h3"): tile.findtext("b") for tile in tree.findall(".//li")}
    assert tiles["Refusals"] == f"{figures['refused']:.1%}"
    assert tiles["Verbatim"] == "100.0%"
    assert found["book"]["indexed_at"][:10] in " ".join(tree.itertext())
    assert found["counts"]["support_ece"] == 60
    assert found["support_reliability"]
    again = json.loads(run("eval", _QUESTIONS, *options, "--json").stdout)
    timeless = {name: v for name, v in figures.items() if not name.startswith("ms.")}
    assert timeless.items() <= again["figures"].items()


def test_a_missed_bar_is_exit_code_4_and_is_reported(sample_home: Path) -> None:
    bars = ("--bar", "supported=1", "--bar", "hit@1=1.01", "--bar", "refused.nobody=.5")
    done = run("eval", _QUESTIONS, "--limit", "12", "--home", str(sample_home), *bars)
    assert done.returncode == 4
    assert "hit@1 ≥ 1.01 was missed: " in done.stderr
    assert "refused.nobody ≥ 0.5 was missed: not measured" in done.stderr
    assert "supported" not in done.stderr
    assert "The book answers" in done.stdout
    assert "missed" in done.stdout
    assert all(len(line) <= 100 for line in done.stdout.splitlines())


def test_a_card_that_cannot_be_written_is_reported(sample_home: Path, tmp_path: Path) -> None:
    options = ("--limit", "4", "--home", str(sample_home))
    nowhere = run("eval", _QUESTIONS, *options, "--card", str(tmp_path / "no" / "card.html"))
    assert nowhere.returncode == 2
    assert "cannot be written" in nowhere.stderr


@pytest.mark.slow
def test_make_generates_questions_from_the_book(sample_home: Path, tmp_path: Path) -> None:
    questions = tmp_path / "made.jsonl"
    made = run("eval", "--make", "12", "--out", str(questions), "--home", str(sample_home))
    assert made.returncode == 0
    assert "12 questions" in made.stderr
    assert run("eval", "--make", "12", "--home", str(sample_home)).stdout == questions.read_text()
    done = run("eval", str(questions), "--home", str(sample_home), "--json")
    figures = json.loads(done.stdout)["figures"]
    assert figures["right"] > 0.7
    assert figures["auroc.held_out"] > 0.7


def test_eval_accepts_a_minimum_score(sample_home: Path) -> None:
    options = ("--limit", "6", "--home", str(sample_home), "--json")
    done = run("eval", _QUESTIONS, "--min-score", "1", *options)
    assert json.loads(done.stdout)["figures"]["coverage"] == 0
    wrong = run("eval", _QUESTIONS, "--min-score", "7", *options)
    assert wrong.returncode == 2
    assert "limits.min_score" in wrong.stderr


def test_invalid_input_is_reported_before_any_question_is_asked(
    sample_home: Path, tmp_path: Path
) -> None:
    home = ("--home", str(sample_home))
    questions = tmp_path / "questions.jsonl"
    for content, sentence in (
        ("", "empty"),
        ("not json", "Line 1 is not JSON"),
        ('{"question": "?"}\n{"question": "?", "answers": "x"}', 'Line 2: "answers"'),
        ('{"question": "?"}\n{"question": "?", "nuggets": [{"any": ["(a"]}]}', 'Line 2: "any"'),
        ('{"question": "  "}', "questions.jsonl:1: The question is empty"),
        ('{"question": "?", "held_out": {"file": "no.md"}}', "does not have"),
    ):
        questions.write_text(content)
        done = run("eval", str(questions), *home)
        assert (done.returncode, done.stdout) == (2, "")
        assert sentence in done.stderr
    assert "question set" in run("eval", *home).stderr
    assert run("eval", str(tmp_path / "absent.jsonl"), *home).returncode == 2
    assert run("eval", _QUESTIONS, "--bar", "beauty=1", *home).returncode == 2
    assert run("eval", _QUESTIONS, "--make", "3", *home).returncode == 2
    assert run("eval", "--make", "3", "--card", "card.html", *home).returncode == 2
    assert run("eval", _QUESTIONS, "--home", str(tmp_path / "nowhere")).returncode == 2


def test_the_help_lists_every_figure() -> None:
    assert FIGURES.split() == list(METRICS)
    assert "refusal_precision" in run("eval", "--help").stdout
