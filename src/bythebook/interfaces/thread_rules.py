"""Rules that every ThreadStore keeps: owners, alternating roles, fifty live messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bythebook.errors import InvalidInput, NotFound
from bythebook.types import Message, Role

LIVE_MESSAGES = 50  # chat: "messages limited to last 50 messages (older messages archived)"


def in_turn(last: Message | None, messages: Sequence[Message]) -> list[Message]:
    """Return the messages to append after ``last``: alternating roles, non-decreasing timestamps.

    The clocks of two clients may differ; messages are ordered by arrival.
    """
    kept: list[Message] = []
    for message in messages:
        expected = Role.USER if last is None or last.role is Role.ASSISTANT else Role.ASSISTANT
        if message.role is not expected:
            raise InvalidInput(
                f"The next message of this thread is the {expected.value}'s.",
                hint="Keep a question together with its answer.",
            )
        earliest = message.timestamp if last is None else last.timestamp
        last = replace(message, timestamp=max(earliest, message.timestamp))
        kept.append(last)
    return kept


def before(messages: Sequence[Message], request: str | None) -> tuple[Message, ...]:
    """Return the messages before the request's first message, or all if it has none."""
    requests = [message.request for message in messages]
    is_stored = request is not None and request in requests
    return tuple(messages[: requests.index(request)] if is_stored else messages)


def no_such_thread() -> NotFound:
    return NotFound("There is no such thread.", hint="Check its id, or begin a new one.")
