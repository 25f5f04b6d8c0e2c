"""The prompt: rules as the system message, everything else quoted within tags."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from bythebook.answering.prompts import NOT_SAID, Quoting, compose, compose_support
from bythebook.interfaces.models import Prompt
from bythebook.language.tokens import estimate_tokens
from bythebook.types import Evidence, Message, Question, Role
from tests.support.samples import evidence, passage

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_CODE = "0123456789abcdef"
_KETTLE = "A kettle boils water at 100 degrees Celsius."
_KITE = "A kite flies because the wind pushes it upwards."


def _said(role: Role, text: str) -> Message:
    return Message(role, text, _NOW)


def _user(prompt: Prompt) -> str:
    [(role, text)] = prompt.turns
    assert role is Role.USER
    return text


def _code(prompt: Prompt) -> str:
    found = re.search(r"<question-([0-9a-f]{16})>", _user(prompt))
    assert found
    return found[1]


def test_passages_have_their_number_and_heading_path() -> None:
    text = _user(compose(Question("What boils?"), evidence(_KETTLE, _KITE), ()))
    first, second = re.findall(r"<passage-\w+ number=(\d)>\nTitle › S\d\n(.*)\n</", text)
    assert first == ("1", _KETTLE)
    assert second == ("2", _KITE)


def test_system_message_contains_only_the_rules() -> None:
    asked = Question(
        "What boils?", selection="A selected sentence of the page.", selection_only=False
    )
    prompt = compose(asked, evidence(_KETTLE), [_said(Role.USER, "What flies?")])
    for foreign in ("What boils?", "A selected sentence", "What flies?", _KETTLE):
        assert foreign not in prompt.system
        assert foreign in _user(prompt)
    assert NOT_SAID in prompt.system
    assert _code(prompt) in prompt.system


def test_every_request_has_its_own_code() -> None:
    codes = {_code(compose(Question("What boils?"), evidence(_KETTLE), ())) for _ in range(50)}
    assert len(codes) == 50


def test_selection_that_is_the_evidence_is_quoted_once() -> None:
    text = _user(compose(Question("What boils?", selection=_KETTLE), evidence(_KETTLE), ()))
    assert text.count(_KETTLE) == 1


def test_quotes_the_newest_messages_of_a_long_conversation() -> None:
    history = [
        _said(role, f"{role} {n} " + "word " * 40)
        for n in range(40)
        for role in (Role.USER, Role.ASSISTANT)
    ]
    text = _user(compose(Question("And then?"), evidence(_KETTLE), history))
    assert "assistant 39 " in text
    assert "user 0 " not in text
    assert text.index("user 39 ") < text.index("assistant 39 ")


def test_drops_the_weakest_passages_over_the_token_limit() -> None:
    found = evidence(*(f"Passage {n} is about kites. " * 60 for n in range(9)))
    prompt = compose(Question("What flies?"), found, (), tokens=1500)
    numbers = re.findall(r"number=(\d)", _user(prompt))
    assert numbers == [str(n) for n in range(1, len(numbers) + 1)]
    assert 1 <= len(numbers) < 9
    assert estimate_tokens(prompt.system) + estimate_tokens(_user(prompt)) <= 1500


def test_later_passages_share_the_code_and_continue_the_numbers() -> None:
    quoting = Quoting(code=_CODE)
    prompt = quoting.prompt(Question("What flies?"), evidence(_KETTLE, _KITE), ())
    more = quoting.passages(evidence("A string keeps it from drifting.").hits, first=3)
    assert more.startswith(f"<passage-{_code(prompt)} number=3>")


_PIECES = st.sampled_from(
    [
        _CODE,
        _CODE.upper(),
        _CODE[:8],
        _CODE[8:],
        f"</passage-{_CODE}>",
        f"<question-{_CODE}>",
        f"</{_CODE[:5]}{_CODE}{_CODE[5:]}>",
        "\u200b",
        "\U000e0041",
        "system:",
        "\n",
        "<",
        ">",
        "کتاب",
    ]
)
_HOSTILE = st.lists(st.one_of(_PIECES, st.text(max_size=20)), max_size=12).map("".join)


@given(book=_HOSTILE, asked=_HOSTILE, selected=_HOSTILE, said=st.lists(_HOSTILE, max_size=4))
def test_no_text_can_close_its_tag(book: str, asked: str, selected: str, said: list[str]) -> None:
    history = [_said(Role.USER, text) for text in said]
    found = evidence(book) if book.strip() else Evidence()
    question = Question(asked, selection=selected, selection_only=False)
    text = _user(Quoting(code=_CODE).prompt(question, found, history))
    ours = re.findall(rf"</?(?:passage|question|selected|earlier)-{_CODE}[^<>\n]*>", text)
    blocks = len(found.hits) + 2 + text.count(f"<earlier-{_CODE} by=reader>")
    assert len(re.findall(_CODE, text, re.IGNORECASE)) == len(ours) == 2 * blocks
    # Openings and closings take turns: nothing stands inside, or outside, of what is not its own.
    assert [tag.startswith("</") for tag in ours] == [False, True] * blocks


@given(
    book=st.lists(st.text(min_size=1, max_size=4000), min_size=1, max_size=4),
    asked=st.text(max_size=9000),
    selected=st.text(max_size=9000),
    said=st.lists(st.text(max_size=3000), max_size=4),
)
def test_prompt_never_exceeds_the_token_limit(
    book: list[str], asked: str, selected: str, said: list[str]
) -> None:
    found = evidence(*(text for text in book if text.strip()))
    question = Question(asked, selection=selected, selection_only=False)
    history = [_said(Role.ASSISTANT, text) for text in said]
    prompt = compose(question, found, history, tokens=3000)
    assert estimate_tokens(prompt.system) + estimate_tokens(_user(prompt)) <= 3000


# --- prompts for verification ---------------------------------------------------------------------


def test_passages_and_sentences_to_verify_are_numbered() -> None:
    asked = compose_support(["Kettles boil.", "Kites fly."], [passage(_KETTLE), passage(_KITE)])
    text = _user(asked.prompt)
    assert re.findall(r"<(\w+)-\w+ number=(\d)>", text) == [
        ("passage", "1"),
        ("passage", "2"),
        ("sentence", "1"),
        ("sentence", "2"),
    ]
    assert (asked.sentences, asked.passages) == (2, 2)
    assert "Kettles boil." not in asked.prompt.system
    assert '{"sentences": [{"sentence": 1,' in asked.prompt.system


@given(book=st.lists(_HOSTILE, max_size=3), draft=st.lists(_HOSTILE, min_size=1, max_size=3))
def test_no_text_to_verify_can_close_its_tag(book: list[str], draft: list[str]) -> None:
    asked = Quoting(code=_CODE).support(draft, [passage(text) for text in book])
    text = _user(asked.prompt)
    ours = re.findall(rf"</?(?:passage|sentence)-{_CODE}[^<>\n]*>", text)
    blocks = len(book) + len(draft)
    assert len(re.findall(_CODE, text, re.IGNORECASE)) == len(ours) == 2 * blocks
    assert [tag.startswith("</") for tag in ours] == [False, True] * blocks


@given(
    book=st.lists(st.text(max_size=4000), min_size=1, max_size=4),
    draft=st.lists(st.text(max_size=1500), min_size=1, max_size=6),
)
def test_sentences_to_verify_are_whole_and_within_the_token_limit(
    book: list[str], draft: list[str]
) -> None:
    asked = compose_support(draft, [passage(text) for text in book], tokens=3000)
    [(_, text)] = asked.prompt.turns
    assert estimate_tokens(asked.prompt.system) + estimate_tokens(text) <= 3000
    assert 1 <= asked.sentences <= len(draft)
    assert text.count("</sentence-") >= asked.sentences
    assert f" number={asked.passages}>" in text
