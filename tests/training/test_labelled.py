"""Readings of whole passages with labelled units."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from training.labelled import (
    CLS,
    FULL_STOP,
    READING_TOKENS,
    SEP,
    Labelled,
    encode_labelled,
    encode_paragraph,
)

_WORDS = ("who", "lives", "here", "hive", "bees", "they", "fly", ".", "long")
_TOKENIZER = Tokenizer(WordLevel({word: i for i, word in enumerate(_WORDS)}, unk_token="long"))
_TOKENIZER.pre_tokenizer = Whitespace()
_TEXT = "bees lives here . they fly ."
_UNITS = [[0, 17], [18, 28]]


def _passage(**changed: Any) -> dict[str, Any]:
    passage = {"head": "hive", "text": _TEXT, "units": _UNITS, "best": [0], "also": [1]}
    return {**passage, "complete": 1, **changed}


def _paragraph(head: str = "hive") -> dict[str, Any]:
    questions = [{"question": "who", "span": [0, 4]}, {"question": "who fly", "span": None}]
    return {"head": head, "text": _TEXT, "units": _UNITS, "questions": questions}


def _labelled(folder: Path, *, seed: int = 0, tokens: int = 200) -> Labelled:
    rows = [
        {"question": "who " * n, "passages": [_passage(), *[_passage(best=[], also=[])] * 4]}
        for n in range(1, 20)
    ]
    with gzip.open(folder / "book.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    paragraphs = [_paragraph("hive" + " bees" * (n % 3)) for n in range(9)]
    lines = "".join(json.dumps(row) + "\n" for row in paragraphs)
    (folder / "paragraphs.jsonl").write_text(lines, encoding="utf-8")
    return Labelled(
        [folder / "book.jsonl.gz"], folder / "paragraphs.jsonl", _TOKENIZER, seed, tokens
    )


def test_a_reading_has_question_heading_and_passage_with_the_unit_of_each_piece() -> None:
    ids, segments, marks = encode_labelled(_TOKENIZER, "who lives", _passage(complete=0))
    assert ids == [CLS, 0, 1, SEP, 3, FULL_STOP, 4, 1, 2, 7, 5, 6, 7, SEP]
    assert segments == [0] * 4 + [1] * 10
    assert marks.units == [-1] * 6 + [0] * 4 + [1] * 3 + [-1]
    assert (marks.answers, marks.weight, marks.span) == (True, 0.0, None)
    assert [marks.target(unit) for unit in (0, 1, 2)] == [(1.0, 1.0), (0.5, 0.7), (0.0, 1.0)]


def test_a_long_reading_is_cut_at_the_end_of_the_question_and_the_start_of_the_heading() -> None:
    passage = _passage(head="hive " * 30 + "bees", text="fly " * 999, units=[[0, 3], [4, 3996]])
    ids, _, marks = encode_labelled(_TOKENIZER, "who " + "lives " * 99, passage)
    assert len(ids) == len(marks.units) == READING_TOKENS
    assert ids[:2] == [CLS, 0]
    assert ids[65:90] == [SEP, *[3] * 23, 4]
    assert ids[90:92] == [FULL_STOP, 6]
    assert marks.units[91:] == [0, *[1] * (READING_TOKENS - 93), -1]


def test_the_sentence_that_holds_the_answer_of_a_paragraph_is_best() -> None:
    _, _, marks = encode_paragraph(_TOKENIZER, "who", _paragraph(), [18, 26])
    assert (marks.answers, marks.best, marks.span) == (True, {1}, (9, 10))
    _, _, marks = encode_paragraph(_TOKENIZER, "who", _paragraph(), None)
    assert (marks.answers, marks.best, marks.span) == (False, set(), (0, 0))


def test_a_question_comes_with_one_passage_that_answers_and_two_that_do_not(
    tmp_path: Path,
) -> None:
    batch = _labelled(tmp_path).passages(5)
    assert [marks.answers for *_, marks in batch] == [True, False, False] * (len(batch) // 3)
    questions = [ids[: ids.index(SEP)] for ids, *_ in batch]
    assert all(questions[i] == questions[i - i % 3] for i in range(len(batch)))


def test_paragraphs_come_in_pairs_and_a_batch_keeps_its_budget(tmp_path: Path) -> None:
    batch = _labelled(tmp_path).pairs(5)
    assert [marks.answers for *_, marks in batch] == [False, True] * (len(batch) // 2)
    assert len(batch) * max(len(ids) for ids, *_ in batch) <= 200


def test_the_batch_of_a_step_depends_only_on_seed_and_step(tmp_path: Path) -> None:
    data, again = _labelled(tmp_path), _labelled(tmp_path)
    before = [data.passages(step) for step in range(4)]
    assert again.passages(3) == before[3]
    assert before[2] != before[3]
    assert again.pairs(3) == data.pairs(3)
    assert _labelled(tmp_path, seed=1).passages(3) != before[3]


def test_shares_with_labelled_books() -> None:
    train = pytest.importorskip("training.train", exc_type=ImportError)
    assert train.shares_of(labelled=False) is train.SHARES
    shares = train.shares_of(labelled=True)
    assert sum(shares.values()) == pytest.approx(1)
    assert sum(shares[group] for group in train.CLAIMS) == pytest.approx(0.12)


def test_the_loss_of_a_unit_is_that_of_the_mean_of_its_pieces() -> None:
    torch = pytest.importorskip("torch")
    from training.train import loss_of_units

    _, _, marks = encode_labelled(_TOKENIZER, "who lives", _passage(also=[]))
    logits = torch.zeros(1, 20)  # padded
    logits[0, 6:10] = torch.tensor([1.0, 3.0, 1.0, 3.0])
    logits[0, 10:13] = -2.0
    logits[0, 13:] = 9.0  # belongs to no unit
    expected = torch.nn.functional.softplus(torch.tensor(-2.0))  # both units are right alike
    assert loss_of_units(logits, [marks]).item() == pytest.approx(expected.item())
