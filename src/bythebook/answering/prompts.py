"""Prompts for language models; no other module builds prompts.

The rules in ``system_prompt.txt``, or ``support_prompt.txt`` for verification, are the system
message. Text of the book, a reader or a draft is untrusted data: it goes into one user message,
between tags that contain a random code per request. The code is removed from quoted text, so that
it cannot close its tag or open another one.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import accumulate

from bythebook.interfaces.models import Prompt, SupportPrompt
from bythebook.language.text import clean
from bythebook.language.tokens import estimate_tokens
from bythebook.text.selections import passage_of_selection
from bythebook.text.text_kinds import shown_part
from bythebook.types import Evidence, Hit, Message, Passage, Question, Role, TextKind

NOT_SAID = "The book does not say."

OTHER_TOKENS = 2000  # minimum for all but the passages; token counts here are estimates
TOKENS = 4000 + OTHER_TOKENS
_QUESTION_TOKENS = 600
_SELECTION_TOKENS = 1000
_HISTORY_TOKENS = 600
_SENTENCES_TOKENS = 1000
_LONGEST_TOKEN = 6  # characters, in the token estimate


@cache
def _rules(name: str = "system_prompt.txt") -> str:
    return files(__package__).joinpath(name).read_text("utf-8").rstrip("\n")


def compose(
    question: Question, evidence: Evidence, history: Sequence[Message], *, tokens: int = TOKENS
) -> Prompt:
    """Build the prompt of one request, with a new code."""
    return Quoting(tokens).prompt(question, evidence, history)


def compose_support(
    sentences: Sequence[str], passages: Sequence[Passage], *, tokens: int = TOKENS
) -> SupportPrompt:
    """Build the prompt that asks whether passages support sentences, with a new code."""
    return Quoting(tokens).support(sentences, passages)


@dataclass(frozen=True, slots=True)
class Quoting:
    """Prompt builder for one answer: one code for all quotes, one token limit per prompt."""

    tokens: int = TOKENS
    code: str = field(default_factory=lambda: secrets.token_hex(8))

    def prompt(self, question: Question, evidence: Evidence, history: Sequence[Message]) -> Prompt:
        """Build the prompt from the latest messages and the best passages within the token limit.

        Passages keep the numbers that they have in the evidence, from 1.
        """
        system = _rules().format(code=self.code, not_said=NOT_SAID)
        asked = self._quote("question", _shorten(question.text, _QUESTION_TOKENS))
        around = [*self._earlier(history), *self._selection(question)]
        used = sum(map(estimate_tokens, (system, asked, *around)))
        passages = self.passages(evidence.hits, tokens=self.tokens - used)
        turn = "\n\n".join((*around, passages, asked))
        return Prompt(system, ((Role.USER, turn),))

    def passages(self, hits: Sequence[Hit], *, first: int = 1, tokens: int | None = None) -> str:
        """Quote as many whole passages as fit, at least one, numbered from ``first``."""
        tokens = self.tokens if tokens is None else tokens
        return "\n\n".join(self._numbered([hit.passage for hit in hits], first, tokens))

    def support(self, sentences: Sequence[str], passages: Sequence[Passage]) -> SupportPrompt:
        """Build the prompt from the best passages and the first sentences that fit, at least one.

        A sentence is never shortened: the rest of it would not be verified.
        """
        system = _rules("support_prompt.txt").format(code=self.code)
        asked = [
            self._quote("sentence", sentence, f" number={number}")
            for number, sentence in enumerate(sentences, 1)
        ]
        sizes = [estimate_tokens(sentence) for sentence in asked]
        room = self.tokens - estimate_tokens(system)
        quoted = self._numbered(passages, 1, room - max([_SENTENCES_TOKENS, *sizes]))
        room -= sum(map(estimate_tokens, quoted))
        fitting = max(1, sum(used <= room for used in accumulate(sizes)))
        turn = "\n\n".join((*quoted, *asked[:fitting]))
        return SupportPrompt(Prompt(system, ((Role.USER, turn),)), fitting, len(quoted))

    def _numbered(self, passages: Sequence[Passage], first: int, tokens: int) -> list[str]:
        quoted: list[str] = []
        for number, found in enumerate(passages, first):
            text = f"{found.place.path}\n{found.text}"
            passage = self._quote("passage", text, f" number={number}")
            used = estimate_tokens(passage)
            if used > tokens and quoted:
                break
            if used > tokens:
                room = max(0, tokens - (used - estimate_tokens(text)))
                passage = self._quote("passage", _shorten(text, room), f" number={number}")
            quoted.append(passage)
            tokens -= used
        return quoted

    def _earlier(self, history: Sequence[Message]) -> Iterator[str]:
        """Yield the latest earlier messages that fit the token limit, oldest first."""
        room, kept = _HISTORY_TOKENS, list[str]()
        for message in reversed(history):
            speaker = "reader" if message.role is Role.USER else "book"
            quoted = self._quote("earlier", message.content, f" by={speaker}")
            room -= estimate_tokens(quoted)
            if room < 0:
                break
            kept.append(quoted)
        yield from reversed(kept)

    def _selection(self, question: Question) -> Iterator[str]:
        """Yield a selection that guides the search; otherwise it is already the only passage."""
        if question.selection is not None and not question.selection_only:
            selection = passage_of_selection(question.selection, url=None)
            text = shown_part(selection, {TextKind.INSTRUCTION}).text
            yield self._quote("selected", _shorten(text, _SELECTION_TOKENS))

    def _quote(self, what: str, text: str, attributes: str = "") -> str:
        tag = f"{what}-{self.code}"
        return f"<{tag}{attributes}>\n{self._harmless(text)}\n</{tag}>"

    def _harmless(self, text: str) -> str:
        """Remove invisible characters and the code, also if a removal forms the code again."""
        text, removed = clean(text), 1
        while removed:
            text, removed = re.subn(re.escape(self.code), "", text, flags=re.IGNORECASE)
        return text


def _shorten(text: str, tokens: int) -> str:
    text = text[: tokens * _LONGEST_TOKEN]
    while (counted := estimate_tokens(text)) > tokens:
        text = text[: len(text) * tokens // counted]
    return text
