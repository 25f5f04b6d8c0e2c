"""A record is one line of JSON, and no secret gets into it."""

from __future__ import annotations

import json
import logging
import logging.config
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.server.observability import (
    FIELDS,
    JsonFormatter,
    configuration,
    redact,
)


def _line(message: str, *args: object, **fields: object) -> str:
    record = logging.LogRecord("any.library", logging.INFO, "", 0, message, args, None)
    setattr(record, FIELDS, fields)
    return JsonFormatter().format(record)


@given(st.text(), st.text())
def test_any_record_is_one_line(message: str, value: str) -> None:
    line = _line("%s", message, value=value)
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert json.loads(line)["logger"] == "any.library"


_SECRET = "s3cr3t-Value.0123456789"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {_SECRET}",
        f"authorization: {_SECRET}",
        f"'Authorization': 'Basic {_SECRET}'",
        f"(b'authorization', b'Bearer {_SECRET}')",
        f"Proxy-Authorization: Digest {_SECRET}",
        f"X-API-Key: {_SECRET}",
        f'{{"api_key": "{_SECRET}"}}',
        f"OPENAI_API_KEY={_SECRET}",
        f"Cookie: session={_SECRET}; other={_SECRET}",
        f"Set-Cookie: session={_SECRET}; HttpOnly",
        f"GET /search?api_key={_SECRET}&q=kettle",
        f"access_token={_SECRET}",
        f"client_secret: {_SECRET}",
        f"password={_SECRET}",
        f"it said Bearer {_SECRET} and went",
        f"the key btk_{_SECRET} was used",
        f"sk-{_SECRET}",
        f"postgresql+psycopg://reader:{_SECRET}@db/book",
    ],
)
def test_secrets_are_redacted(text: str) -> None:
    for line in (_line(text), _line("%s", text), _line("fine", header=text)):
        assert _SECRET not in line
        assert "redacted" in line


@pytest.mark.parametrize(
    "text", ["A kettle boils at 100 degrees.", "tokens: none", "https://example.org/a?b=c"]
)
def test_text_without_secrets_is_unchanged(text: str) -> None:
    assert redact(text) == text


def test_an_exception_is_part_of_its_line() -> None:
    try:
        raise RuntimeError(f"api_key={_SECRET}\nand more")
    except RuntimeError:
        record = logging.LogRecord("x", logging.ERROR, "", 0, "failed", (), sys.exc_info())
    line = JsonFormatter().format(record)
    assert len(line.splitlines()) == 1
    assert _SECRET not in line
    assert "RuntimeError" in json.loads(line)["exception"]


def test_configuration_is_valid() -> None:
    logging.config.DictConfigurator(configuration())
    assert configuration()["root"]["handlers"] == ["lines"]
