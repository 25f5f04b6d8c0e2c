"""Three outcomes for a sentence: shown, replaced by the book's own words, or withheld."""

from collections.abc import AsyncIterator, Sequence

import pytest

from bythebook.grounding.verifier import SentenceVerifier, Supported, Withheld, check
from bythebook.interfaces.models import SentenceSupport
from bythebook.providers.testing import FakeReader
from bythebook.types import Evidence, Passage
from tests.support.samples import evidence

_KITES = "A kite flies because the wind pushes it upwards. Most kites need 12 kilometres per hour."
_KETTLES = "A kettle boils water at 100 degrees Celsius. It does not whistle."
_TAILS = "A tail of ribbons steadies the kite. It adds drag to the kite."
_REWORDED = "Wind that pushes upwards is the reason why a kite stays in flight and flies."


class _Reader(FakeReader):
    """Reader with one opinion on all sentences."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    async def support(
        self, sentences: Sequence[str], evidence: Sequence[Passage]
    ) -> list[SentenceSupport]:
        return [SentenceSupport(self.probability, 0) for _ in sentences]


async def _check(
    text: str, *, of: Evidence | None = None, probability: float = 0.3
) -> list[Supported | Withheld]:
    async def draft() -> AsyncIterator[str]:
        yield text

    found = of or evidence(_KITES, _KETTLES)
    verifier = SentenceVerifier(reader=_Reader(probability))
    events = [event async for event in check(draft(), found, verifier)]
    return [event for event in events if isinstance(event, Supported | Withheld)]


async def test_reworded_sentence_is_shown_if_the_reading_model_is_sure() -> None:
    (verdict,) = await _check(_REWORDED, probability=0.99)
    assert isinstance(verdict, Supported)
    assert (verdict.text, verdict.is_own) == (_REWORDED, True)


async def test_sentence_in_doubt_is_replaced_by_the_books_words() -> None:
    (verdict,) = await _check(f"{_REWORDED} [1]")
    assert isinstance(verdict, Supported)
    assert verdict.text == verdict.quote == "A kite flies because the wind pushes it upwards."
    assert (verdict.is_own, verdict.is_verbatim, verdict.replaces) == (False, True, _REWORDED)
    assert verdict.verdict.holds
    assert verdict.verdict.replaces == _REWORDED


@pytest.mark.parametrize(
    "lie",
    [
        "The wind pushes 7 kites upwards.",  # a number of no passage
        "The wind of Paris pushes a kite upwards.",  # a name of no passage
        "A kettle does not boil water at 100 degrees Celsius.",  # a denial
        "A kettle boils water at 100 degrees Fahrenheit.",  # a unit
        "Violins are tuned by ear every morning.",  # nothing of the book
    ],
)
async def test_sentence_that_is_contradicted_or_not_of_the_book_is_withheld(lie: str) -> None:
    (verdict,) = await _check(lie, probability=0.99)
    assert isinstance(verdict, Withheld)
    assert verdict.is_claim


async def test_name_with_a_hyphen_is_that_of_the_book() -> None:
    found = evidence("The robot loses its WiFi behind a thick wall.")
    (verdict,) = await _check("Behind a thick wall the robot loses its Wi-Fi link.", of=found)
    assert isinstance(verdict, Supported)


async def test_books_words_are_not_repeated() -> None:
    verdicts = await _check(f"{_REWORDED} [1] {_REWORDED} [1]")
    assert [type(verdict) for verdict in verdicts] == [Supported, Withheld]
    assert verdicts[1].finding.reasons == ("the book's words for it are already shown",)


async def test_connective_is_not_verified_but_shown() -> None:
    (verdict,) = await _check("In contrast, a kettle boils water at 100 degrees Celsius. [2]")
    assert isinstance(verdict, Supported)
    assert verdict.text == "In contrast, a kettle boils water at 100 degrees Celsius."


async def test_announcement_is_shown_with_what_it_announces() -> None:
    item = "- A kettle boils water at 100 degrees Celsius. [2]"
    first, second = await _check(f"Here is how it works:\n{item}")
    assert (first.text, second.text) == ("Here is how it works:", item.removesuffix(" [2]"))
    assert isinstance(first, Supported)
    assert first.is_own


async def test_announcement_on_the_same_line_is_one_sentence_with_what_it_announces() -> None:
    (verdict,) = await _check("In summary: A kettle boils water at 100 degrees Celsius. [2]")
    assert verdict.text == "In summary: A kettle boils water at 100 degrees Celsius."


@pytest.mark.parametrize("rest", ["", " Violins are tuned by ear. [1]"])
async def test_announcement_of_nothing_is_dropped_and_not_counted(rest: str) -> None:
    verdicts = await _check(f"Here is how it works.{rest}")
    assert len(verdicts) == bool(rest)
    assert not any(isinstance(verdict, Supported) for verdict in verdicts)


async def test_sentence_that_leans_is_replaced_with_the_one_it_leans_on() -> None:
    (verdict,) = await _check("It adds drag to the kite. [1]", of=evidence(_TAILS))
    assert isinstance(verdict, Supported)
    assert verdict.text == _TAILS


async def test_list_mark_of_the_draft_is_kept() -> None:
    (verdict,) = await _check(f"- {_REWORDED} [1]")
    assert verdict.text == "- A kite flies because the wind pushes it upwards."


async def test_every_quotation_is_verbatim_without_a_reader() -> None:
    async def draft() -> AsyncIterator[str]:
        yield "The wind pushing upwards is why kites fly. Kettles boil their water hot."

    found = evidence(_KITES, _KETTLES)
    verdicts = [event async for event in check(draft(), found)]
    shown = [verdict for verdict in verdicts if isinstance(verdict, Supported)]
    assert shown
    for verdict in shown:
        assert verdict.quote in verdict.hit.passage.text
