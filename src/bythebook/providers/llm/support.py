"""Verification by a language model: which sentences does the evidence support?

Only what a response states about one sentence of the request and one passage of it counts as
support. Anything else in it is ignored or makes the sentence unsupported.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bythebook.interfaces.models import SentenceSupport
from bythebook.providers.http.errors import ErrorCode, ProviderError, translate_errors
from bythebook.types import Usage

if TYPE_CHECKING:
    from bythebook.interfaces.models import ComposeSupport, SupportPrompt
    from bythebook.providers.http.client import Timeouts
    from bythebook.providers.llm.chat import LanguageModel
    from bythebook.types import Passage

# A model states a category, not a probability: these numbers rank the categories and are not
# calibrated. A sentence that is partly supported needs a threshold above 0.5 to fail.
PROBABILITIES = {"yes": 0.95, "partly": 0.5, "no": 0.05}
_UNSUPPORTED = SentenceSupport(0.0, None)  # no usable entry in the response
_ENTRY_TOKENS = 40  # of the response for one sentence, rather high than low

_ENTRY = {
    "sentence": {"type": "integer"},
    "supported": {"type": "string", "enum": list(PROBABILITIES)},
    "passage": {"type": ["integer", "null"]},
}


def _object(properties: dict[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_SCHEMA = _object({"sentences": {"type": "array", "items": _object({**_ENTRY})}})
_RESPONSE_FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "support", "strict": True, "schema": _SCHEMA},
}


def _ignore(usage: Usage) -> None:
    del usage


class ModelSupport:
    """``Reader.support`` by a language model: one request, or several if not all sentences fit."""

    def __init__(self, model: LanguageModel, *, compose: ComposeSupport) -> None:
        self.name = model.name
        self._model = model
        self._compose = compose

    async def support(
        self,
        sentences: Sequence[str],
        evidence: Sequence[Passage],
        *,
        on_usage: Callable[[Usage], None] = _ignore,
    ) -> list[SentenceSupport]:
        """Return the support for each sentence; raise ``WriterFailed`` if a call fails.

        ``on_usage`` gets the usage of each call, also of one that fails after it was accepted. All
        calls together have the deadline of one draft.
        """
        if not evidence:
            return [_UNSUPPORTED] * len(sentences)
        now = asyncio.get_running_loop().time
        timeouts = self._model.timeouts
        end = now() + timeouts.total_s
        most = max(1, self._model.settings.max_output_tokens // _ENTRY_TOKENS)
        found: list[SentenceSupport] = []
        while len(found) < len(sentences):
            asked = self._compose(sentences[len(found) :][:most], evidence)
            text = await self._ask(asked, replace(timeouts, total_s=end - now()), on_usage)
            with translate_errors(self._model.account.service):
                found += parse_support(text, asked)
        return found

    async def _ask(
        self, asked: SupportPrompt, timeouts: Timeouts, on_usage: Callable[[Usage], None]
    ) -> str:
        draft, texts = self._model.draft(asked.prompt), list[str]()
        call = self._model.generate(
            asked.prompt,
            draft,
            timeouts=timeouts,
            temperature=0,
            response_format=_RESPONSE_FORMAT,
        )
        async with aclosing(call) as pieces:
            async for piece in pieces:
                if isinstance(piece, Usage):
                    on_usage(piece)
                else:
                    texts.append(piece)
        return "".join(texts)


# --- parsing of responses -------------------------------------------------------------------------


def parse_support(text: str, asked: SupportPrompt) -> list[SentenceSupport]:
    """Return the support for each sentence; without exactly one usable entry there is none."""
    entries = _entries(text)
    numbers = [_number(entry, "sentence", asked.sentences) for entry in entries]
    counts = Counter(numbers)
    found = {
        number: _support(entry, asked.passages)
        for number, entry in zip(numbers, entries, strict=True)
        if counts[number] == 1
    }
    return [found.get(number, _UNSUPPORTED) for number in range(1, asked.sentences + 1)]


def _support(entry: dict[str, Any], passages: int) -> SentenceSupport:
    verdict = entry.get("supported")
    probability = PROBABILITIES.get(verdict) if isinstance(verdict, str) else None
    passage = _number(entry, "passage", passages)
    if passage is not None and probability is not None:
        return SentenceSupport(probability, passage - 1)
    if verdict == "no" and entry.get("passage") is None:
        return SentenceSupport(PROBABILITIES["no"], None)
    return _UNSUPPORTED


def _number(entry: dict[str, Any], name: str, most: int) -> int | None:
    number = entry.get(name)
    return number if type(number) is int and 1 <= number <= most else None  # no bool


def _entries(text: str) -> list[dict[str, Any]]:
    """Return the entries of the response; raise unless it has exactly one list of them.

    A response that was not restricted to JSON may have text around it, and may quote a list of
    entries that is planted in a passage.
    """
    lists = [entries for value in _json_values(text) if (entries := _list_of(value)) is not None]
    if len(lists) != 1:
        raise ProviderError(ErrorCode.MALFORMED)
    return lists[0]


def _list_of(value: Any) -> list[dict[str, Any]] | None:
    entries = value.get("sentences") if isinstance(value, dict) else value
    if not isinstance(entries, list):
        return None
    if entries and not any(isinstance(entry, dict) for entry in entries):
        return None  # such as a marker: [1]
    return [entry for entry in entries if isinstance(entry, dict)]


def _json_values(text: str) -> Iterator[Any]:
    """Yield the JSON objects and arrays within a text."""
    decoder, at = json.JSONDecoder(), 0
    while (start := re.compile(r"[\[{]").search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.end()
        else:
            yield value
