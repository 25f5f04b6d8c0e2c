"""Every kind of validation error gets a message of our own."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import UUID4, Field, HttpUrl, StringConstraints, TypeAdapter, ValidationError
from pydantic_core.core_schema import ErrorType

from bythebook.contracts import ask as ask_contract
from bythebook.contracts import chat, envelope, plain
from bythebook.contracts import query as query_documents
from bythebook.contracts.fields import PageUrl, Selection, Text
from bythebook.server.contracts.chat import threads
from bythebook.server.contracts.openai import requests as openai_requests
from bythebook.validation import message_of, shown

_RAW = re.compile(
    r"(Input|Value|String) should|Unable to|[Ii]tems|Field required|Extra inputs|pydantic"
)


class _Color(Enum):
    RED = "red"
    BLUE = "blue"


def _message(kind: Any, sent: object) -> str:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(dict[str, kind]).validate_python({"f": sent})
    return message_of(raised.value.errors(), {"f": sent})[0]


@pytest.mark.parametrize(
    ("kind", "sent", "said"),
    [
        (
            Annotated[Text, StringConstraints(max_length=5)],
            "abcdef",
            "has 6 characters; at most 5 are allowed",
        ),
        (Selection, "", "has 0 characters; at least 10 are needed"),
        (Selection, "  abc defg  ", "has 8 characters (after trimming); at least 10 are needed"),
        (Text, " ", "has 0 characters (after trimming); at least 1 is needed"),
        (Text, 7, "7 is not a text"),
        (Text, None, "null is not a text"),
        (Text, ["kite"], "a list is not a text"),
        (Text, {"a": 1}, "an object is not a text"),
        (Text, "a\0b", "holds a NUL character (U+0000)"),
        (
            PageUrl,
            "javascript:alert(1)",
            '"javascript:alert(1)" is not an address of the web (http or https)',
        ),
        (
            PageUrl,
            "http://[",
            "a text of 8 characters is not an address of the web (http or https)",
        ),
        (UUID, "nope", '"nope" is not a UUID'),
        (
            UUID4,
            "00000000-0000-1000-8000-000000000000",
            '"00000000-0000-1000-8000-000000000000" is not a UUID of version 4',
        ),
        (Annotated[int, Field(strict=True)], "5", '"5" is not a whole number'),
        (Annotated[int, Field(strict=True)], True, "true is not a whole number"),
        (int, 2.5, "2.5 is not a whole number"),
        (Annotated[int, Field(ge=1, le=20)], 0, "is 0; at least 1 is needed"),
        (Annotated[int, Field(ge=1, le=20)], 21, "is 21; at most 20 is allowed"),
        (Annotated[int, Field(le=20)], 10**50, "is a number of many digits; at most 20 is allowed"),
        (Annotated[float, Field(gt=0)], -0.5, "is -0.5; more than 0 is needed"),
        (Annotated[float, Field(lt=1)], 1.5, "is 1.5; less than 1 is allowed"),
        (Annotated[float, Field(allow_inf_nan=False)], float("nan"), "nan is not a finite number"),
        (Annotated[float, Field(strict=True)], True, "true is not a number"),
        (float, "high", '"high" is not a number'),
        (Annotated[bool, Field(strict=True)], "yes", '"yes" is not true or false'),
        (datetime, "soon", '"soon" is not a date with a time, such as 2025-12-15T10:00:00Z'),
        (date, "soon", '"soon" is not a date, such as 2025-12-15'),
        (time, "soon", '"soon" is not a time, such as 10:00:00'),
        (HttpUrl, "mailto:a", '"mailto:a" is not an address of the web (http or https)'),
        (Decimal, "x", '"x" is not a number'),
        (list[int], 7, "7 is not a list"),
        (Annotated[list[int], Field(min_length=1)], [], "has 0 entries; at least 1 is needed"),
        (Annotated[list[int], Field(max_length=1)], [1, 2], "has 2 entries; at most 1 is allowed"),
        (_Color, "green", '"green" is not allowed; use "red" or "blue"'),
        (Literal["up", "down"], "left", '"left" is not allowed; use "up" or "down"'),
    ],
)
def test_a_message_names_the_field_the_limit_and_the_input(
    kind: Any, sent: object, said: str
) -> None:
    assert _message(kind, sent) == f"f: {said}."


def test_a_field_that_is_missing_or_unknown_is_named() -> None:
    with pytest.raises(ValidationError) as raised:
        query_documents.Query.model_validate({})
    assert message_of(raised.value.errors(), {}) == ("text: is missing.", "text")


@pytest.mark.parametrize("kind", get_args(ErrorType))
def test_no_message_of_pydantic_is_passed_on(kind: Any) -> None:
    context = {
        "error": "Input should not be seen",
        "expected": "'a' or 'b'",
        "expected_version": 4,
        "ge": 1,
        "gt": 1,
        "le": 1,
        "lt": 1,
        "multiple_of": 2,
        "min_length": 1,
        "max_length": 2,
        "actual_length": 3,
        "field_type": "Value",
        "class": "X",
        "class_name": "X",
        "tag": "t",
        "discriminator": "d",
        "expected_tags": "t",
        "expected_schemes": "http",
        "attribute": "a",
        "encoding": "utf-8",
        "encoding_error": "x",
        "pattern": "p",
        "tz_expected": 0,
        "tz_actual": 1,
        "max_digits": 1,
        "decimal_places": 1,
        "whole_digits": 1,
        "name": "n",
        "method_name": "m",
        "function_name": "f",
        "property_name": "p",
    }
    error = {"type": kind, "loc": ("body", "f"), "msg": "Input should be seen", "input": 3}
    said, field = message_of([{**error, "ctx": context}], {"f": 3})
    if kind not in ("value_error", "assertion_error"):  # these two are a contract's own sentences
        assert not _RAW.search(said)
        assert said.startswith("f: ")
    assert field == "f"
    assert len(said) < 180
    body, _ = message_of([{**error, "loc": ("body",), "ctx": context}], 3)
    assert kind in ("value_error", "assertion_error") or not _RAW.search(body)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=60),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)
_fields = st.sampled_from(
    [
        "text",
        "query",
        "message",
        "top_k",
        "timestamp",
        "session_id",
        "stream",
        "selected_text",
        "page_url",
        "relevance_threshold",
        "similarity_threshold",
        "messages",
        "verdict",
        "n",
        "query_id",
        "reason",
        "agreed",
        "model",
        "stream_options",
    ]
)


@given(st.dictionaries(_fields, _values) | _values)
def test_any_invalid_input_gets_our_own_message(sent: object) -> None:
    for model in (
        query_documents.Query,
        ask_contract.AgentQuery,
        envelope.QueryRequest,
        plain.QueryRequest,
        chat.ChatRequest,
        threads.ChatFeedbackRequest,
        openai_requests.OpenAICompletionRequest,
    ):
        try:
            model.model_validate(sent)
        except ValidationError as error:
            said, _ = message_of(error.errors(), sent)
            assert not _RAW.search(said.replace(shown(sent), ""))
            assert said.endswith(".")
            assert len(said) < 180


@given(st.text())
def test_only_short_and_harmless_input_is_echoed(text: str) -> None:
    told = shown(text)
    assert len(told) <= 60
    assert told.isprintable()
    assert not set(told[1:-1]) & set('<>&\\`"')


def test_an_error_in_a_union_is_reported_for_the_type_that_was_meant() -> None:
    sent = {"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]}
    with pytest.raises(ValidationError) as raised:
        openai_requests.OpenAICompletionRequest.model_validate(sent)
    said = "messages.0.content.0.text: 5 is not a text."
    assert message_of(raised.value.errors(), sent) == (said, said.partition(":")[0])
