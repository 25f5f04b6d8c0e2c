"""Conformance suite of ``Reader``: every implementation is added to ``READERS``.

``support`` by a language model is tested here too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from bythebook.interfaces.models import Reader
from bythebook.providers.llm.support import ModelSupport
from bythebook.providers.reader import LocalReader
from bythebook.providers.testing import FakeReader
from bythebook.types import Passage
from tests.providers.hosted import judge_by_terms, support_at
from tests.providers.loopback import Loopback
from tests.support.samples import read, small_book

READERS: dict[str, Callable[[], Reader]] = {"fake": FakeReader, "local": LocalReader}
_QUESTION = "At how many degrees does a kettle boil water?"
_SUPPORTED = "A kettle boils water at 100 degrees Celsius."
_UNSUPPORTED = "Penguins inhabit Antarctica."


@pytest.fixture(params=READERS)
async def reader(request: pytest.FixtureRequest) -> Reader:
    reader = READERS[request.param]()
    await reader.prepare()
    return reader


@pytest.fixture(params=[*READERS, pytest.param("model", marks=pytest.mark.loopback)])
async def verifier(request: pytest.FixtureRequest) -> AsyncIterator[Reader | ModelSupport]:
    if request.param in READERS:
        yield READERS[request.param]()
        return
    with Loopback(judge_by_terms) as provider:
        async with support_at(provider.url) as support:
            yield support


@pytest.fixture
def passages(tmp_path: Path) -> list[Passage]:
    return list(read(small_book(tmp_path / "docs")).passages)


def _position(passages: list[Passage], text: str) -> int:
    return next(at for at, passage in enumerate(passages) if text in passage.text)


def test_a_reader_names_its_provider_and_model(verifier: Reader | ModelSupport) -> None:
    provider, separator, model = verifier.name.partition(":")
    assert provider
    assert separator
    assert model


async def test_the_passage_with_the_answer_is_the_most_probable(
    reader: Reader, passages: list[Passage]
) -> None:
    readings = await reader.read(_QUESTION, passages)
    assert len(readings) == len(passages)
    best = max(range(len(readings)), key=lambda at: readings[at].probability)
    assert best == _position(passages, _SUPPORTED)
    relevance = readings[best].relevance
    unit = passages[best].units[relevance.index(max(relevance))]
    assert passages[best].unit_text(unit) == _SUPPORTED


async def test_probabilities_and_spans_are_within_their_bounds(
    reader: Reader, passages: list[Passage]
) -> None:
    for passage, reading in zip(passages, await reader.read(_QUESTION, passages), strict=True):
        assert 0 <= reading.probability <= 1
        assert len(reading.relevance) == len(passage.units)
        assert all(0 <= relevance <= 1 for relevance in reading.relevance)
        if reading.span is not None and passage.units:
            start, end = reading.span
            assert any(unit.start <= start < end <= unit.end for unit in passage.units)


async def test_a_passage_is_read_alike_whatever_stands_beside_it(
    reader: Reader, passages: list[Passage]
) -> None:
    together = await reader.read(_QUESTION, passages)
    alone = [(await reader.read(_QUESTION, [passage]))[0] for passage in passages]
    assert [one.probability for one in alone] == pytest.approx([r.probability for r in together])
    assert [one.span for one in alone] == [reading.span for reading in together]
    assert together == await reader.read(_QUESTION, passages)


async def test_support_names_the_passage_that_states_the_sentence(
    verifier: Reader | ModelSupport, passages: list[Passage]
) -> None:
    supported, unsupported = await verifier.support([_SUPPORTED, _UNSUPPORTED], passages)
    assert supported.passage == _position(passages, _SUPPORTED)
    assert 0 <= unsupported.probability < supported.probability <= 1


async def test_nothing_to_read_is_no_error(reader: Reader) -> None:
    assert await reader.read(_QUESTION, []) == []


async def test_nothing_to_verify_is_no_error(
    verifier: Reader | ModelSupport, passages: list[Passage]
) -> None:
    assert await verifier.support([], passages) == []
    [support] = await verifier.support([_SUPPORTED], [])
    assert (support.probability, support.passage) == (0, None)
