"""Labelled claims are made from the book by rules, in pairs, and always the same ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from bythebook.evaluation.run import MOST_CLAIMS, judge_support, make_claims
from bythebook.ingestion.read_book import read_book
from bythebook.testing import fake_book
from bythebook.types import Passage
from tests.support.samples import SAMPLE_BOOK

_PAGE = """# Kites

A kite is a light frame that the wind carries upwards. Most kites need a wind of 12 kilometres.

The first large kite festival was held in 1989 near the beach of Weifang. Children often learn to
fly a kite with Marco.
"""


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    return list(read_book(SAMPLE_BOOK / "docs").passages)


def _passages_of(folder: Path, text: str) -> list[Passage]:
    (folder / "page.md").write_text(text, "utf-8")
    return list(read_book(folder).passages)


def test_claims_come_in_pairs_that_differ_in_one_change(tmp_path: Path) -> None:
    claims = make_claims(_passages_of(tmp_path, _PAGE))
    pairs = {true.text: false.text for true, false in zip(claims[::2], claims[1::2], strict=True)}
    assert {claim.is_supported for claim in claims[::2]} == {True}
    assert {claim.is_supported for claim in claims[1::2]} == {False}
    number = "According to the book, most kites need a wind of 12 kilometres."
    assert pairs[number] == number.replace("12", "22")
    year = "The first big kite festival was held in 1989 near the beach of Weifang."
    assert pairs[year] in (
        year.replace("1989", "1999"),
        year.replace("was held", "was not held"),
    )


def test_no_claim_is_verbatim_and_the_number_is_bounded(passages: list[Passage]) -> None:
    claims = make_claims(passages)
    assert len(claims) == MOST_CLAIMS
    text = "\n".join(passage.text for passage in passages)
    assert not [claim.text for claim in claims if claim.text in text]
    assert [c.text for c in make_claims(reversed(passages))] == [c.text for c in claims]
    assert len(make_claims(passages, 10)) == 10


def test_another_language_gives_no_claims(tmp_path: Path) -> None:
    german = "# Drachen\n\nDer erste Drachen wurde in 1989 in Berlin von 12 Kindern gebaut.\n" * 3
    assert make_claims(_passages_of(tmp_path, german)) == []


async def test_the_verifier_of_a_book_tells_the_claims_apart() -> None:
    async with await fake_book({"kites.md": _PAGE}) as book:
        async with book.reading() as context:
            entries = await context.index.store.fetch(
                [hit.passage.id for hit in (await book.search("kite")).hits]
            )
        judged = await judge_support(book, [entry.passage for entry in entries])
    assert judged
    true = [probability for probability, is_supported in judged if is_supported]
    false = [probability for probability, is_supported in judged if not is_supported]
    assert min(true) > max(false)
