"""Prepare the training data of the reading model.

    python -m training.prepare --data RAW --out PREPARED [--seed 0]

Reads the gzipped JSON lines in RAW (README.md lists them) and writes three files: ``pairs.jsonl``
(an answerable and an unanswerable reading, for the answer and span heads), ``support.jsonl``
(claims with premises and labels) and ``paragraphs.jsonl`` (whole paragraphs with their sentences
and questions, for training with labelled books). Articles whose title hashes to 0 modulo 32, and
the examples about one book (HELD_OUT_BOOK), are held out and written to ``heldout.jsonl``.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from training.statements import answer_type, lies, statement, truths

Row = dict[str, Any]

WINDOWS = (70, 110, 110, 160)  # tokens, about 1.4 for each word
HELD_OUT = 32
HELD_OUT_BOOK = "webdev"
WRITTEN = Path(__file__).with_name("written.jsonl.gz")
HEADING_WORDS = 18  # of the heading path, from its end
MOST_WORDS = 150  # of claim and premise together: a premise that is cut off would keep its label
MOST_ROWS = 40_000  # of one support set
SUPPORT_SETS = (
    "fever_dev fool_me_twice fever_symmetric summedits mnli snli_counterfactual snli paws "
    "nyu_mc_reading boolq_yesno scitail"
).split()
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"(\[])")
_WORD = re.compile(r"[a-z0-9]+")


def read(path: Path) -> Iterator[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def is_held_out(title: str) -> bool:
    return int(hashlib.md5(title.encode()).hexdigest(), 16) % HELD_OUT == 0


def words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def sentences(text: str) -> list[tuple[int, int]]:
    spans, start = [], 0
    for sentence in _SENTENCE_END.split(text):
        start = text.find(sentence, start)
        spans.append((start, start + len(sentence)))
        start += len(sentence)
    return spans


class Squad:
    """SQuAD 2.0 with its paragraphs, windows of them, and the best other paragraphs."""

    def __init__(self, data: Path) -> None:
        self.paragraphs = {
            row["context"]: row for row in read(data / "squad2_train_contexts.jsonl.gz")
        }
        self.questions = list(read(data / "squad2_train_questions.jsonl.gz"))
        self.words = {key: words(row["text"]) for key, row in self.paragraphs.items()}
        frequency = Counter(word for found in self.words.values() for word in found)
        self.idf: Callable[[str], float] = lambda word: math.log(
            (len(self.words) + 1) / (frequency.get(word, 0) + 0.5)
        )
        self.by_title: defaultdict[str, list[int]] = defaultdict(list)
        for key, row in self.paragraphs.items():
            self.by_title[row["title"]].append(key)

    def title(self, question: Row) -> str:
        return str(self.paragraphs[question["context"]]["title"])

    def window(self, question: str, text: str, tokens: int) -> tuple[int, int]:
        """Return the sentences around the one that matches best: the same rule for all labels."""
        spans = sentences(text)
        if len(spans) <= 2:
            return 0, len(text)
        asked = words(question)
        scores = [sum(map(self.idf, asked & words(text[a:b]))) for a, b in spans]
        sizes = [len(text[a:b].split()) for a, b in spans]
        low = high = max(range(len(spans)), key=scores.__getitem__)
        size = sizes[low]
        while True:
            options = [
                (scores[i], i)
                for i in (low - 1, high + 1)
                if 0 <= i < len(spans) and size + sizes[i] <= tokens * 0.72
            ]
            if not options:
                return spans[low][0], spans[high][1]
            _, chosen = max(options)
            size += sizes[chosen]
            low, high = min(low, chosen), max(high, chosen)

    def reading(self, question: Row, chance: random.Random, *, context: int | None = None) -> Row:
        """Return question, passage (half of them under its title) and the span of the answer."""
        key = question["context"] if context is None else context
        paragraph = self.paragraphs[key]
        text = paragraph["text"]
        start, end = self.window(question["question"], text, chance.choice(WINDOWS))
        heading = paragraph["title"].replace("_", " ") + "\n" if chance.random() < 0.5 else ""
        row: Row = {"question": question["question"], "passage": heading + text[start:end]}
        if question["answerable"] and context is None:
            first = question["start"]
            last = first + len(question["answer"])
            if start <= first and last <= end:
                row["span"] = [first - start + len(heading), last - start + len(heading)]
        row["answers"] = "span" in row
        return row

    def other_paragraph(self, question: Row) -> int | None:
        """Return the best other paragraph of the article that lacks the answer."""
        asked = words(question["question"])
        best, most = None, 0.0
        for key in self.by_title[self.title(question)]:
            if key == question["context"] or question["answer"] in self.paragraphs[key]["text"]:
                continue
            score = sum(map(self.idf, asked & self.words[key]))
            if score > most:
                best, most = key, score
        return best


def squad_pairs(squad: Squad, chance: random.Random) -> Iterator[Row]:
    """Yield pairs: with an unanswerable question of the paragraph, and with another paragraph."""
    by_id = {row["id"]: row for row in squad.questions if row["answerable"]}
    by_context: defaultdict[int, list[Row]] = defaultdict(list)
    for row in by_id.values():
        by_context[row["context"]].append(row)
    for row in squad.questions:
        if is_held_out(squad.title(row)):
            continue
        if row["answerable"]:
            other = squad.other_paragraph(row)
            right = squad.reading(row, chance)
            if other is not None and right["answers"]:
                yield {
                    "group": "retrieved",
                    "good": right,
                    "bad": squad.reading(row, chance, context=other),
                }
        elif by_context[row["context"]]:
            twin = by_id.get(row.get("pair")) or chance.choice(by_context[row["context"]])
            right = squad.reading(twin, chance)
            if right["answers"]:
                yield {"group": "twins", "good": right, "bad": squad.reading(row, chance)}


def paragraphs(squad: Squad) -> Iterator[Row]:
    """Yield whole paragraphs: sentences, and questions with the span of the answer or none."""
    by_context: defaultdict[int, list[Row]] = defaultdict(list)
    for row in squad.questions:
        span = [row["start"], row["start"] + len(row["answer"])] if row["answerable"] else None
        by_context[row["context"]].append({"question": row["question"], "span": span})
    for key, questions in by_context.items():
        title, text = squad.paragraphs[key]["title"], squad.paragraphs[key]["text"]
        if not is_held_out(title):
            yield {
                "head": title.replace("_", " "),
                "text": text,
                "units": sentences(text),
                "questions": questions,
            }


def other_pairs(data: Path, chance: random.Random) -> Iterator[Row]:
    """Yield pairs of the smaller sets; where all rows are answerable, with other passages."""
    for name in (
        "selqa_sentences",
        "doqa_isanswerable",
        "adversarialqa_answerable_sni",
        "policyqa_devtest",
    ):
        rows = [
            row
            for row in read(data / f"answerability_{name}.jsonl.gz")
            if len(row["context"].split()) < MOST_WORDS
        ]
        good = [row for row in rows if row["answerable"]]
        bad = [row for row in rows if not row["answerable"]]
        by_question: defaultdict[str, list[Row]] = defaultdict(list)
        for row in bad:
            by_question[row["question"]].append(row)
        for row in good:
            others = by_question.get(row["question"]) or bad
            other = (
                chance.choice(others)
                if others
                else {**row, "context": chance.choice(good)["context"]}
            )
            yield {"group": "other", "good": _plain(row, True), "bad": _plain(other, False)}


def _plain(row: Row, answers: bool) -> Row:
    reading: Row = {"question": row["question"], "passage": row["context"], "answers": answers}
    start = row.get("start", -1)
    if (
        answers
        and start >= 0
        and row["context"][start : start + len(row["answer"])] == row["answer"]
    ):
        reading["span"] = [start, start + len(row["answer"])]
    return reading


def statements(squad: Squad, chance: random.Random) -> Iterator[Row]:
    """Yield true and false statements about paragraphs, alone and joined."""
    by_id = {row["id"]: row for row in squad.questions if row["answerable"]}
    by_context: defaultdict[int, list[Row]] = defaultdict(list)
    for row in by_id.values():
        by_context[row["context"]].append(row)
    for row in squad.questions:
        if is_held_out(squad.title(row)):
            continue
        twin = row if row["answerable"] else by_id.get(row.get("pair"))
        if twin is None:
            continue
        claim = statement(row["question"], twin["answer"])
        if claim is None:
            continue
        text = squad.paragraphs[row["context"]]["text"]
        start, end = squad.window(
            twin["question"] + " " + twin["answer"], text, chance.choice(WINDOWS)
        )
        premise = text[start:end]
        if not row["answerable"]:
            yield _support("twin statements", premise, claim, "unsupported")
            continue
        if twin["answer"] not in premise:
            continue
        yield _support(
            "twin statements" if chance.random() < 0.3 else "statements", premise, claim, "entail"
        )
        others = [
            other["answer"]
            for other in by_context[row["context"]]
            if answer_type(other["answer"]) == answer_type(twin["answer"])
            and other["answer"].lower() not in twin["answer"].lower()
            and twin["answer"].lower() not in other["answer"].lower()
        ]
        if others and (lie := statement(row["question"], chance.choice(others))):
            yield _support("statements", premise, lie, "unsupported")
        elif (other_key := squad.other_paragraph(row)) is not None:
            other_text = squad.paragraphs[other_key]["text"]
            a, b = squad.window(claim, other_text, chance.choice(WINDOWS))
            yield _support("statements", other_text[a:b], claim, "unsupported")


def edits(squad: Squad, chance: random.Random) -> Iterator[Row]:
    """Yield edited sentences of paragraphs, each beside one that is still true."""
    for paragraph in squad.paragraphs.values():
        if is_held_out(paragraph["title"]):
            continue
        text = paragraph["text"]
        spans = [span for span in sentences(text) if 6 <= len(text[slice(*span)].split()) <= 40]
        if not spans:
            continue
        for first, last in chance.sample(spans, min(2, len(spans))):
            sentence = text[first:last]
            start, end = squad.window(sentence, text, chance.choice(WINDOWS))
            false = lies(sentence, text, chance)
            true = truths(sentence) or [sentence]
            if not start <= first < last <= end or not false:
                continue
            if chance.random() < 0.25 and len(spans) > 1:
                other = text[
                    slice(*chance.choice([span for span in spans if span != (first, last)]))
                ]
                if other in text[start:end]:
                    joined = other.rstrip(".") + chance.choice((", and ", ", while ", "; "))
                    true, false = (
                        [joined + true[0][0].lower() + true[0][1:]],
                        [joined + false[0][0].lower() + false[0][1:]],
                    )
            yield _support("edits", text[start:end], chance.choice(true), "entail")
            yield _support("edits", text[start:end], chance.choice(false), "unsupported")


class Written:
    """Examples written about passages of textbooks: questions and sentences, right and wrong."""

    def __init__(self, data: Path) -> None:
        passages = {row["id"]: row for row in read(data / "written_passages.jsonl.gz")}
        self.rows = [
            {**passages[row["id"]], **row} for row in read(WRITTEN) if row["id"] in passages
        ]
        self.by_book: defaultdict[str, list[Row]] = defaultdict(list)
        for row in self.rows:
            self.by_book[row["book"]].append(row)

    @staticmethod
    def is_held_out(row: Row) -> bool:
        return bool(row["book"] == HELD_OUT_BOOK)

    @staticmethod
    def passage(row: Row) -> str:
        heading = " ".join(row["path"].split()[-HEADING_WORDS:])
        return f"{heading}\n{row['text']}"

    def reading(self, row: Row, asked: Row, *, answers: bool) -> Row:
        passage = self.passage(row)
        reading: Row = {"question": asked["q"], "passage": passage, "answers": answers}
        if answers:
            reading["span"] = [len(passage) - len(row["text"]) + at for at in asked["span"]]
        return reading

    def pairs(self, chance: random.Random) -> Iterator[Row]:
        """Yield each answered question with one that is not answered, or with another passage."""
        for row in self.rows:
            if self.is_held_out(row):
                continue
            asked, near = row["answerable"], [{"q": question} for question in row["near"]]
            for question, other in zip(asked, near, strict=False):
                good = self.reading(row, question, answers=True)
                yield {
                    "group": "written",
                    "good": good,
                    "bad": self.reading(row, other, answers=False),
                }
                elsewhere = chance.choice(self.by_book[row["book"]])
                if elsewhere["path"] != row["path"] and chance.random() < 0.3:
                    bad = self.reading(elsewhere, question, answers=False)
                    yield {"group": "written", "good": good, "bad": bad}

    def claims(self) -> Iterator[Row]:
        for row in self.rows:
            if not self.is_held_out(row):
                for label, key in (("entail", "true"), ("unsupported", "false")):
                    for claim in row[key]:
                        yield _support("written claims", self.passage(row), claim, label)

    def held_out(self) -> Iterator[Row]:
        for row in filter(self.is_held_out, self.rows):
            for question in row["answerable"]:
                yield {"kind": "written", **self.reading(row, question, answers=True)}
            for near in row["near"]:
                yield {"kind": "written", **self.reading(row, {"q": near}, answers=False)}
            for label, key in (("entail", "true"), ("unsupported", "false")):
                for claim in row[key]:
                    yield {"kind": "claims", **_support("", self.passage(row), claim, label)}


def _support(group: str, premise: str, claim: str, label: str) -> Row:
    return {"group": group, "premise": premise, "claim": claim, "label": label}


def support_sets(data: Path, chance: random.Random) -> Iterator[Row]:
    for name in SUPPORT_SETS:
        rows = [
            row
            for row in read(data / f"support_{name}.jsonl.gz")
            if len(row["premise"].split()) + len(row["claim"].split()) <= MOST_WORDS
        ]
        chance.shuffle(rows)
        group = (
            "passages"
            if name in ("summedits", "nyu_mc_reading", "boolq_yesno", "fool_me_twice", "fever_dev")
            else "sentences"
        )
        for row in rows[:MOST_ROWS]:
            yield _support(group, row["premise"], row["claim"], row["label"])


def held_out(squad: Squad, chance: random.Random) -> Iterator[Row]:
    for row in squad.questions:
        if is_held_out(squad.title(row)):
            reading = squad.reading(row, chance)
            yield {"kind": "squad", **reading, "answers": row["answerable"]}


def write(path: Path, rows: Iterable[Row]) -> None:
    began, groups = time.monotonic(), Counter[str]()
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            groups[row.get("group", "rows")] += 1
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            if groups.total() % 20_000 == 0:
                print(
                    f"{path.name}: {groups.total()} rows, {time.monotonic() - began:.0f} s",
                    flush=True,
                )
    print(f"{path.name}: {dict(groups)}, {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    squad, written = Squad(options.data), Written(options.data)
    chance = random.Random(options.seed)

    def support() -> Iterator[Row]:
        yield from statements(squad, chance)
        yield from edits(squad, chance)
        yield from support_sets(options.data, chance)
        yield from written.claims()
        for row in read(options.data / "edited_sentences.jsonl.gz"):
            yield {"group": "edited", **row}

    def pairs() -> Iterator[Row]:
        yield from squad_pairs(squad, chance)
        yield from other_pairs(options.data, chance)
        yield from written.pairs(chance)

    def kept_back() -> Iterator[Row]:
        yield from held_out(squad, random.Random(1))
        yield from written.held_out()

    write(options.out / "heldout.jsonl", kept_back())
    write(options.out / "support.jsonl", support())
    write(options.out / "pairs.jsonl", pairs())
    write(options.out / "paragraphs.jsonl", paragraphs(squad))


if __name__ == "__main__":
    main()
