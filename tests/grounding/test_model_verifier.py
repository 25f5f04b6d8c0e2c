"""Verification by a language model, instead of the reading model or as well."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

import pytest

from bythebook.errors import ReaderFailed, WriterFailed
from bythebook.grounding.verifier import SentenceVerifier, Supported, Withheld, check
from bythebook.interfaces.models import SentenceSupport
from bythebook.providers.testing import FakeReader
from bythebook.types import Passage, Usage
from tests.support.samples import evidence

_YES = SentenceSupport(0.95, 0)
_PASSAGE = "A kettle boils water at 100 degrees Celsius. It switches itself off."
_VERBATIM = "A kettle boils water at 100 degrees Celsius."
_REWORDED = "Once the boiling point is reached, the device shuts down on its own."
_NEW_NUMBER = "The device shuts down on its own after 45 seconds of boiling."


@dataclass
class ScriptedModel:
    """Language model that gives all sentences the same support."""

    support_of_all: SentenceSupport = _YES
    failure: WriterFailed | None = None
    asked: list[list[str]] = field(default_factory=list)

    async def support(
        self,
        sentences: Sequence[str],
        evidence: Sequence[Passage],
        *,
        on_usage: Callable[[Usage], None],
    ) -> list[SentenceSupport]:
        del evidence
        self.asked.append(list(sentences))
        on_usage(Usage(prompt_tokens=7, completion_tokens=2, calls=1))
        if self.failure is not None:
            raise self.failure
        return [self.support_of_all] * len(sentences)


async def _check(verifier: SentenceVerifier, *sentences: str) -> list[object]:
    async def draft() -> AsyncIterator[str]:
        for sentence in sentences:
            yield f"{sentence}\n\n"

    return [event async for event in check(draft(), evidence(_PASSAGE), verifier)]


async def test_the_model_alone_can_support_a_sentence_in_other_words() -> None:
    model = ScriptedModel()
    usage, first, second = await _check(
        SentenceVerifier(model=model, model_only=True), _VERBATIM, _REWORDED
    )
    assert usage == Usage(prompt_tokens=7, completion_tokens=2, calls=1)
    assert isinstance(first, Supported)
    assert first.is_verbatim
    assert isinstance(second, Supported)
    assert second.text == _REWORDED
    assert second.quote in _PASSAGE
    assert model.asked == [[_REWORDED]]  # one call, without what is verbatim


async def test_a_number_that_no_passage_has_is_withheld_whatever_the_model_says() -> None:
    verifier = SentenceVerifier(model=ScriptedModel(), model_only=True)
    _, verdict = await _check(verifier, _NEW_NUMBER)
    assert isinstance(verdict, Withheld)
    assert "45" in verdict.finding.reasons[0]


@pytest.mark.parametrize("support", [SentenceSupport(0.05, None), SentenceSupport(0.5, 0)])
async def test_a_sentence_that_the_model_does_not_fully_support_is_withheld(
    support: SentenceSupport,
) -> None:
    verifier = SentenceVerifier(model=ScriptedModel(support), model_only=True)
    _, verdict = await _check(verifier, _REWORDED)
    assert isinstance(verdict, Withheld)


async def test_with_both_a_sentence_must_pass_both() -> None:
    model = ScriptedModel()
    (verdict,) = await _check(SentenceVerifier(model=model), _REWORDED)
    assert isinstance(verdict, Withheld)  # by its words; the model need not be asked
    assert model.asked == []


async def test_a_failing_model_leaves_the_verdict_to_words_and_reader() -> None:
    model = ScriptedModel(failure=WriterFailed("It is away."))
    events = await _check(SentenceVerifier(model=model, model_only=True), _VERBATIM, _REWORDED)
    assert [type(event) for event in events] == [Usage, Supported, Withheld]


async def test_a_failing_reader_leaves_the_verdict_to_the_words() -> None:
    class BrokenReader(FakeReader):
        async def support(
            self, sentences: Sequence[str], evidence: Sequence[Passage]
        ) -> list[SentenceSupport]:
            raise ReaderFailed("damaged")

    events = await _check(SentenceVerifier(reader=BrokenReader()), _VERBATIM, _NEW_NUMBER)
    assert [type(event) for event in events] == [Supported, Withheld]
