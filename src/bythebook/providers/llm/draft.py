"""Draft of a language model in progress: what it said, how it ended and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bythebook.language.text import well_formed
from bythebook.language.tokens import estimate_tokens
from bythebook.providers.http.errors import ErrorCode, ProviderError
from bythebook.types import Usage

if TYPE_CHECKING:
    from bythebook.config.sections import Model
    from bythebook.interfaces.models import Prompt

_PER_MESSAGE = 8  # overhead tokens, at most
_LONGEST_TOKEN = 12  # characters; above the average of any model
_CHARACTERS = 4  # per token, if the endpoint reports no usage
_LETTERS = 6  # of a token in our estimate: no tokenizer makes more than one token of a letter
_START, _END = "<think>", "</think>"
_CUT_SHORT = ("length", "max_tokens", "model_length")
_FILTERED = ("content_filter", "safety", "recitation", "prohibited_content")


class ThinkFilter:
    """Filter that removes the ``<think>…</think>`` block that some models send first."""

    def __init__(self) -> None:
        self._held = ""  # text that is, or may be, in the block
        self._over = False

    def remove(self, text: str) -> str:
        """Return the text without the block; a possible start of it is held until the next call."""
        if self._over:
            return text
        self._held += text
        start = self._held.lstrip()
        if start.startswith(_START):
            _, end, answer = start.partition(_END)
            self._over = bool(end)
            return answer.lstrip() if end else ""
        if _START.startswith(start):
            return ""
        self._over = True
        return self._held


@dataclass(slots=True)
class Draft:
    settings: Model
    prompt_tokens: int  # estimated
    max_tokens: int
    accepted: bool = False  # by the endpoint: from here on the response costs tokens
    characters: int = 0  # of the response, including its think block
    has_text: bool = False
    finish: str | None = None  # finish reason
    done: bool = False  # [DONE] was received
    usage: Mapping[str, Any] = field(default_factory=dict)  # as reported by the endpoint
    think_filter: ThinkFilter = field(default_factory=ThinkFilter)
    half: str = ""  # of a surrogate pair

    @property
    def most_tokens(self) -> int:
        return self.prompt_tokens + self.max_tokens

    def begin(self) -> None:
        """Note that a response begins; only the last one decides how the draft ends."""
        self.accepted, self.characters = True, 0
        self.finish, self.done, self.usage, self.think_filter = None, False, {}, ThinkFilter()
        self.half = ""

    def add(self, text: str) -> str:
        """Return the text without a think block; raise if the response is too long."""
        self.characters += len(text)
        if self.characters > self.max_tokens * _LONGEST_TOKEN:
            raise ProviderError(ErrorCode.TOO_MUCH)
        # An endpoint that counts in UTF-16 may cut an emoji in half: wait for the other half.
        text = self.half + text
        self.half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = self.think_filter.remove(well_formed(text[: len(text) - len(self.half)]))
        self.has_text = self.has_text or bool(text)
        return text

    def check_end(self) -> None:
        """Raise if the last response is truncated, filtered or cut off, or the draft is empty."""
        if self.finish in _CUT_SHORT:
            raise ProviderError(ErrorCode.TRUNCATED)
        if self.finish in _FILTERED:
            raise ProviderError(ErrorCode.FILTERED)
        if self.finish == "error" or not (self.finish or self.done):
            raise ProviderError(ErrorCode.CONNECTION_LOST)
        if not self.has_text:
            raise ProviderError(ErrorCode.EMPTY)

    def cost(self) -> Usage:
        """Return the usage of the response as reported by the endpoint, or else an estimate."""
        if not self.accepted:
            return Usage()
        most = self.prompt_tokens * _LETTERS
        estimate = -(-self.characters // _CHARACTERS)
        read = _count(self.usage, "prompt_tokens", self.prompt_tokens, most)
        written = _count(self.usage, "completion_tokens", estimate, self.max_tokens)
        price_in, price_out = self.settings.price_in, self.settings.price_out
        if price_in is None or price_out is None:
            return Usage(read, written, 1)
        return Usage(read, written, 1, (read * price_in + written * price_out) / 1e6)


def _count(usage: Mapping[str, Any], name: str, estimate: int, most: int) -> int:
    """Return a reported count, or else the estimate: also if more is reported than can be."""
    reported = usage.get(name)
    return reported if type(reported) is int and 0 <= reported <= most else estimate  # no bool


def prompt_tokens(prompt: Prompt) -> int:
    """Estimate the tokens of a prompt, rather high than low."""
    texts = [prompt.system, *(text for _, text in prompt.turns)]
    return sum(estimate_tokens(text) + _PER_MESSAGE for text in texts)
