"""Generation: the configured writer, and the extractive fallback."""

from __future__ import annotations

from pathlib import Path

import pytest

from bythebook.answering.extractive import ExtractiveWriter
from bythebook.answering.gate import QuestionPart
from bythebook.answering.generation import PARTLY, GenerationRun
from bythebook.answering.prompts import NOT_SAID
from bythebook.errors import Truncated, WriterFailed
from bythebook.interfaces.models import WriterSearchResult
from bythebook.refusals import DISCLAIMER, Refusal, RefusalType
from bythebook.retrieval.question_analysis import analyze
from bythebook.types import Answer, Evidence, Hit, Question, Usage
from tests.support.samples import evidence, hit
from tests.support.writers import Model, small_library

KETTLE = Question("At how many degrees does a kettle boil water?", min_score=0.01)
TRUE = "A kettle boils water at 100 degrees Celsius. [1]"
LIE = "A kettle boils water at 70 degrees Fahrenheit. [1]"


def _texts(outcome: Answer | Refusal) -> list[str]:
    assert isinstance(outcome, Answer)
    return [sentence.text for sentence in outcome.sentences]


async def test_shows_supported_sentences_and_counts_the_others(tmp_path: Path) -> None:
    model = Model(TRUE, "\n", LIE, Usage(120, 30, 1, 0.002))
    reply = await (await small_library(tmp_path, model)).reply(KETTLE)
    assert _texts(reply.outcome) == ["A kettle boils water at 100 degrees Celsius."]
    assert reply.withheld == 1
    assert reply.usage == Usage(120, 30, 1, 0.002)
    assert reply.fallback is None
    assert isinstance(reply.outcome, Answer)
    assert (reply.writer, reply.outcome.writer) == ("fake:model", "fake:model")


async def test_fallback_replaces_a_writer_that_fails_at_once(tmp_path: Path) -> None:
    model = Model(WriterFailed("The model answered 429.", retry_after=20))
    reply = await (await small_library(tmp_path, model)).reply(KETTLE)
    assert isinstance(reply.outcome, Answer)
    assert reply.outcome.writer == ExtractiveWriter.name
    assert "100 degrees Celsius" in reply.outcome.text
    assert reply.fallback is not None
    assert "not available at the moment; these are the book's own" in reply.fallback
    assert "429" not in reply.fallback


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (WriterFailed("Slow.", timed_out=True), "did not answer in time"),
        (WriterFailed("Busy."), "not available at the moment"),
        (WriterFailed("No such model.", retryable=False), "could not write this answer"),
    ],
)
async def test_fallback_reason_is_shown_without_details(
    tmp_path: Path, error: WriterFailed, words: str
) -> None:
    reply = await (await small_library(tmp_path, Model(error))).reply(KETTLE)
    assert reply.fallback is not None
    assert words in reply.fallback
    assert error.message not in reply.fallback


async def test_fallback_continues_an_interrupted_draft(tmp_path: Path) -> None:
    model = Model(f"{TRUE}\n", "It switches itself off by me", WriterFailed("The line broke."))
    library = await small_library(tmp_path, model)
    reply = await library.reply(Question("What is a kettle and what does it do?", min_score=0.01))
    texts = _texts(reply.outcome)
    assert texts[0] == "A kettle boils water at 100 degrees Celsius."
    assert texts.count(texts[0]) == 1
    assert "It switches itself off by me" not in texts
    assert reply.fallback is not None
    assert "the rest are the book's own" in reply.fallback
    assert isinstance(reply.outcome, Answer)
    assert reply.outcome.writer == "fake:model"
    if len(texts) > 1:
        assert reply.outcome.sentences[1].lead == "\n\n"


async def test_truncated_draft_ends_with_its_last_whole_sentence(
    tmp_path: Path,
) -> None:
    model = Model(f"{TRUE}\n", "It switches itself off by me", Truncated("Too long."))
    reply = await (await small_library(tmp_path, model)).reply(KETTLE)
    assert _texts(reply.outcome) == ["A kettle boils water at 100 degrees Celsius."]
    assert reply.fallback is None


async def test_error_is_raised_without_fallback(tmp_path: Path) -> None:
    error = WriterFailed("The model answered 401.", retryable=False)
    library = await small_library(tmp_path, Model(error), fallback=False)
    with pytest.raises(WriterFailed) as caught:
        await library.reply(KETTLE)
    assert caught.value is error


@pytest.mark.parametrize("pieces", [(LIE,), (), ("???",)])
async def test_fallback_replaces_an_unsupported_draft(
    tmp_path: Path, pieces: tuple[str, ...]
) -> None:
    reply = await (await small_library(tmp_path, Model(*pieces, Usage(9, 9, 1)))).reply(KETTLE)
    assert isinstance(reply.outcome, Answer)
    assert reply.outcome.writer == ExtractiveWriter.name
    assert reply.fallback is not None
    assert "stands in the book" in reply.fallback
    assert reply.usage.calls == 1


async def test_unsupported_draft_without_fallback_is_a_refusal(tmp_path: Path) -> None:
    reply = await (await small_library(tmp_path, Model(LIE), fallback=False)).reply(KETTLE)
    assert isinstance(reply.outcome, Refusal)
    assert reply.outcome.type is RefusalType.INSUFFICIENT_GROUNDING
    assert reply.fallback is None


@pytest.mark.parametrize("said", [NOT_SAID, f"**{NOT_SAID}**", NOT_SAID.lower(), f"{NOT_SAID} [1]"])
async def test_model_that_declines_is_not_replaced(tmp_path: Path, said: str) -> None:
    reply = await (await small_library(tmp_path, Model(said))).reply(KETTLE)
    assert isinstance(reply.outcome, Refusal)
    assert reply.outcome.type is RefusalType.INSUFFICIENT_GROUNDING
    assert (reply.withheld, reply.fallback) == (0, None)


async def _run(
    folder: Path, found: Evidence, *pieces: str, fallback: bool = True
) -> tuple[GenerationRun, list[str]]:
    context = await (await small_library(folder, Model(*pieces), fallback=fallback)).context()
    part = QuestionPart(analyze(KETTLE, context.index.vocabulary), found.hits)
    run = GenerationRun(context, [part], found, ())
    return run, [sentence.text async for sentence in run.sentences()]


_BOOK = "A kettle boils water at 100 degrees Celsius. A lid keeps the steam inside the kettle."
_DOUBTFUL = "Steam stays inside the kettle because its lid keeps it there for long. [1]"


async def test_draft_that_is_mostly_unverified_is_replaced_once(tmp_path: Path) -> None:
    run, texts = await _run(
        tmp_path, evidence(_BOOK), _DOUBTFUL, "\n", "Violins are tuned by ear. [1]"
    )
    assert run.fallback is not None
    assert "Most of what the language model wrote could not be verified; these" in run.fallback
    assert run.writer == ExtractiveWriter.name
    assert len(texts) == len(set(texts))
    assert not run.verdicts[0].holds
    assert run.verdicts[0].reasons == ("most of the draft could not be verified",)


async def test_quotation_is_shown_beside_a_verified_sentence(tmp_path: Path) -> None:
    run, texts = await _run(tmp_path, evidence(_BOOK), f"{TRUE} ", _DOUBTFUL)
    assert texts == [
        "A kettle boils water at 100 degrees Celsius.",
        "A lid keeps the steam inside the kettle.",
    ]
    assert run.fallback is None
    assert [verdict.replaces for verdict in run.verdicts] == ["", _DOUBTFUL.removesuffix(" [1]")]


async def test_held_sentences_keep_their_order(tmp_path: Path) -> None:
    _, texts = await _run(tmp_path, evidence(_BOOK), f"{_DOUBTFUL} ", TRUE)
    assert texts == [
        "A lid keeps the steam inside the kettle.",
        "A kettle boils water at 100 degrees Celsius.",
    ]


async def test_rest_is_added_if_a_draft_is_unverified_after_its_start(
    tmp_path: Path,
) -> None:
    lies = " ".join(["Violins are tuned by ear. [1]", "Guitars are red. [1]", "Drums hum. [1]"])
    run, texts = await _run(tmp_path, evidence(_BOOK), f"{TRUE} ", lies)
    assert texts[0] == "A kettle boils water at 100 degrees Celsius."
    assert texts.count(texts[0]) == 1
    assert run.fallback is not None
    assert "the rest are the book's own sentences" in run.fallback


async def test_quotations_are_shown_without_a_fallback(tmp_path: Path) -> None:
    run, texts = await _run(tmp_path, evidence(_BOOK), _DOUBTFUL, fallback=False)
    assert texts == ["A lid keeps the steam inside the kettle."]
    assert run.fallback is None
    assert run.verdicts[0].holds


async def test_partial_answer_has_a_disclaimer(tmp_path: Path) -> None:
    reply = await (await small_library(tmp_path, Model(TRUE, "\n", NOT_SAID))).reply(KETTLE)
    assert isinstance(reply.outcome, Answer)
    assert reply.outcome.disclaimer in (PARTLY, f"{PARTLY} {DISCLAIMER}")
    assert reply.withheld == 0


async def test_passages_of_the_writers_search_can_be_cited(tmp_path: Path) -> None:
    looked_up = hit("A dragon kite has a tail of forty coloured discs.", file="dragons.md")
    model = Model(
        TRUE, "\n", WriterSearchResult((looked_up,)), "A dragon kite has a tail of forty coloured "
    )
    model.pieces = (*model.pieces, "discs. [9]")
    reply = await (await small_library(tmp_path, model)).reply(KETTLE)
    assert isinstance(reply.outcome, Answer)
    assert _texts(reply.outcome)[1] == "A dragon kite has a tail of forty coloured discs."
    assert reply.outcome.citations[1].passage_id == looked_up.passage.id
    assert model.evidence is not None
    assert reply.evidence.hits == (*model.evidence.hits, looked_up)
    assert reply.evidence.confidence.count == model.evidence.confidence.count


async def test_search_result_does_not_support_earlier_sentences(
    tmp_path: Path,
) -> None:
    looked_up: Hit = hit("A dragon kite has a tail of forty coloured discs.", file="dragons.md")
    said = "A dragon kite has a tail of forty coloured discs. [9]\n\n"
    model = Model(TRUE, "\n", said, WriterSearchResult((looked_up,)))
    reply = await (await small_library(tmp_path, model)).reply(KETTLE)
    assert reply.withheld == 1


async def test_closing_the_stream_closes_the_writer(tmp_path: Path) -> None:
    model = Model(f"{TRUE}\n\n", *["It switches itself off by means of a bimetal strip. "] * 50)
    events = (await small_library(tmp_path, model)).ask(KETTLE)
    async for event in events:
        if type(event).__name__ == "Sentence":
            break
    await events.aclose()
    assert model.closed
