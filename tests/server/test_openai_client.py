"""OpenAI's Python client works with the server: answers, streams, refusals and errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from tests.server.running_server import Running, book_server, ingest
from tests.support.samples import small_book

pytestmark = pytest.mark.loopback

_QUESTION = "At how many degrees does a kettle boil water?"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("openai")
    ingest(small_book(folder / "docs"), folder / "home")
    with book_server(folder / "home", folder / "log") as server:
        yield server


@pytest.fixture
def client(server: Running) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_client_gets_an_answer_with_citations(client: OpenAI) -> None:
    told = client.chat.completions.create(
        model="bythebook", messages=[{"role": "user", "content": _QUESTION}]
    )
    [choice] = told.choices
    content = choice.message.content
    assert content is not None and "100 degrees" in content.replace("*", "")
    assert choice.finish_reason == "stop"
    assert told.usage is not None and told.usage.completion_tokens > 0
    assert choice.message.annotations
    cited = choice.message.annotations[0].url_citation
    assert content[cited.start_index : cited.end_index] == "[1]"
    assert told.model_extra is not None
    assert told.model_extra["sources"][0]["link"] == cited.url


def test_client_reads_a_stream(client: OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="bythebook",
            messages=[{"role": "user", "content": _QUESTION}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    *told, counted = chunks
    assert "100 degrees" in "".join(chunk.choices[0].delta.content or "" for chunk in told)
    assert told[-1].choices[0].finish_reason == "stop"
    assert told[-1].model_extra is not None and told[-1].model_extra["sources"]
    assert counted.usage is not None and counted.usage.total_tokens > 0


def test_streaming_helper_of_the_client_collects_the_answer(client: OpenAI) -> None:
    with client.chat.completions.stream(
        model="bythebook", messages=[{"role": "user", "content": _QUESTION}]
    ) as stream:
        stream.until_done()
        told = stream.get_final_completion()
    assert "100 degrees" in (told.choices[0].message.content or "")


def test_client_gets_a_refusal(client: OpenAI) -> None:
    told = client.chat.completions.create(
        model="bythebook",
        messages=[{"role": "user", "content": "Who won the chess championship of 1972?"}],
    )
    assert "does not contain" in (told.choices[0].message.content or "")
    assert told.model_extra is not None and told.model_extra["sources"] == []


def test_client_lists_the_model(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["bythebook"]
    assert client.models.retrieve("bythebook").id == "bythebook"


def test_client_raises_its_own_errors(client: OpenAI) -> None:
    with pytest.raises(NotFoundError) as missing:
        client.models.retrieve("gpt-4o")
    assert missing.value.code == "model_not_found"
    with pytest.raises(BadRequestError) as refused:
        client.chat.completions.create(
            model="bythebook", messages=[{"role": "user", "content": _QUESTION}], n=2
        )
    assert (refused.value.param, refused.value.type) == ("n", "invalid_request_error")
