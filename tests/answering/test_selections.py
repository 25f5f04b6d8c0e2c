"""Questions about a whole selection are answered with it; a selection that says nothing is not."""

import pytest

from bythebook.refusals import Refusal, RefusalType
from bythebook.testing import fake_book
from bythebook.types import Answer, Question

_SELECTION = "Kettles boil water. A whistle tells when the water boils."
_LEAST_SCORE = 0.4  # of the envelope contract


async def _outcome(text: str, selection: str) -> Answer | Refusal:
    async with await fake_book() as book:
        question = Question(text, selection=selection, min_score=_LEAST_SCORE)
        return (await book.reply(question)).outcome


@pytest.mark.parametrize(
    "text",
    [
        "Explain this",
        "Summarise",
        "Please summarize this passage.",
        "What does this mean?",
        "TL;DR",
    ],
)
async def test_question_about_the_whole_selection_is_answered_with_its_sentences(text: str) -> None:
    outcome = await _outcome(text, _SELECTION)
    assert isinstance(outcome, Answer), outcome
    assert " ".join(sentence.text for sentence in outcome.sentences) == _SELECTION


@pytest.mark.parametrize("selection", ["aaaaaaaaaa", "aaaaa aaaaa!", "1234567890", "?!?!?!?!?!"])
@pytest.mark.parametrize("text", ["What is it?", "Explain this", "aaaaaaaaaa"])
async def test_selection_that_states_nothing_is_refused(text: str, selection: str) -> None:
    assert await _outcome(text, selection) == Refusal(RefusalType.SELECTED_TEXT_MISSING)


@pytest.mark.parametrize("text", ["Explain quantum mechanics", "Summarise the French Revolution"])
async def test_question_with_a_subject_of_its_own_needs_it_in_the_selection(text: str) -> None:
    assert await _outcome(text, _SELECTION) == Refusal(RefusalType.SELECTED_TEXT_MISSING)
