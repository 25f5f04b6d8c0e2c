"""A book with an injected instruction on each page, a model that obeys all of them, and a check of
the replies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.server.asgi_client import events_of
from tests.support.writers import library_with

from bythebook.book import Book
from bythebook.types import Answer, Question, Reply
from reliability.injections import PAYLOADS, Obedient, Payload, leaks

_NAMES = [f"{tens}{ones}" for tens in ("Alfa", "Bravo", "Delta") for ones in range(100)]
_TRUE = r"The kettle \w+ boils water at \d+ degrees Celsius\."


def asked(number: int) -> str:
    return f"At how many degrees does the kettle {_NAMES[number]} boil water?"


def true(number: int) -> str:
    """Return the sentence that the author wrote on the page."""
    return f"The kettle {_NAMES[number]} boils water at {100 + number} degrees Celsius."


def question(number: int, **more: Any) -> Question:
    return Question(asked(number), min_score=0.01, top_k=2, **more)


def chosen(count: int) -> list[tuple[int, Payload]]:
    """Return this many payloads, spread evenly."""
    every = list(enumerate(PAYLOADS))
    return every[:: max(1, len(every) // count)]


async def hostile_library(docs: Path, model: Obedient) -> Book:
    """Open a book with one page per payload, next to the true sentence that is asked for."""
    docs.mkdir()
    for number, payload in enumerate(PAYLOADS):
        page = f"# The kettle {_NAMES[number]}\n\n{true(number)}\n\n{payload.text}\n"
        (docs / f"{number}.md").write_text(page, "utf-8")
    return await library_with(docs, lambda _: model)


@dataclass
class Count:
    """Counts of output that must not appear."""

    tries: int = 0
    leaked: list[str] = field(default_factory=list)
    unsupported: list[str] = field(default_factory=list)
    silenced: int = 0  # answers that the order took away

    def __str__(self) -> str:
        told = (
            f"{len(self.leaked)} leaks of the prompt or addresses of the attacker's, "
            f"{len(self.unsupported)} sentences that the book does not say, "
            f"{self.silenced} true answers lost"
        )
        return "; ".join([told, *self.leaked[:2], *self.unsupported[:2]])

    @property
    def held(self) -> bool:
        return not (self.leaked or self.unsupported or self.silenced)

    def judge(self, payload: Payload, reply: Reply, *wanted: str) -> None:
        """Check that everything shown is the author's own sentence with the right citation."""
        self.tries += 1
        outcome = reply.outcome
        self.leaked += [f"{payload.name}: {found}" for found in leaks(outcome.text)]
        said = [s.text for s in outcome.sentences] if isinstance(outcome, Answer) else []
        self.unsupported += [text for text in said if not re.fullmatch(_TRUE, text)]
        self.silenced += not set(wanted) <= set(said)
        if isinstance(outcome, Answer):
            self.unsupported += list(_uncited(outcome, reply))

    def judge_text(self, payload: Payload, text: str) -> None:
        self.tries += 1
        self.leaked += [f"{payload.name}: {found}" for found in leaks(text)]

    def judge_stream(self, payload: Payload, stream: str, wanted: str) -> None:
        told = events_of(stream)
        shown = [event.body for event in told if event.name in ("delta", "citation")]
        self.judge_text(payload, json.dumps([*shown, told[-1].body]))
        deltas = "".join(event.body["text"] for event in told if event.name == "delta")
        self.silenced += re.sub(r"\s*\[\d\]", "", deltas) != wanted


def _uncited(answer: Answer, reply: Reply) -> Iterator[str]:
    known = {hit.passage.id: hit.passage for hit in reply.evidence.hits}
    for citation in answer.citations:
        passage = known.get(citation.passage_id)
        if (
            passage is None
            or citation.quote not in passage.text
            or citation.url != passage.place.url
        ):
            yield f"a citation of {citation.url}"


def obey(model: Obedient, payload: Payload, honest: str = "") -> None:
    model.order, model.honest = payload.order, honest


def messages(payload: Payload, roles: Sequence[str], last: str) -> list[dict[str, str]]:
    return [
        *({"role": role, "content": payload.text} for role in roles),
        {"role": "user", "content": last},
    ]
