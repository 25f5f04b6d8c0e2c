"""Visible words of a page, taken from the parser's tokens.

Passages are built from the block tree. The words are counted independently of it, so that losses
in the tree or in the passages show up as missing words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from markdown_it.token import Token

from bythebook.interfaces.blocks import Document
from bythebook.language.text import words
from bythebook.sources.markdown.elements import BLOCK_NAMES, HIDDEN_NAMES, TabLabels
from bythebook.sources.markdown.inline import Values, shown_value, visible
from bythebook.sources.markdown.jsx import Expression, Tag
from bythebook.sources.markdown.token_visitor import read_info

_WORDY = frozenset(("inline", "flow", "fence", "code_block", "maths_block"))


def visible_words(
    tokens: Sequence[Token], values: Values, inlined: Mapping[int, Document]
) -> tuple[str, ...]:
    counter = _Counter(values, inlined)
    counter.count(tokens)
    return tuple(word for text in counter.texts for word in words(text))


class _Counter:
    def __init__(self, values: Values, inlined: Mapping[int, Document]) -> None:
        self._values = values
        self._inlined = inlined
        self._hidden: list[str] = []  # open elements that the page does not display
        self._tabs = TabLabels()
        self.texts: list[str] = []

    def count(self, tokens: Sequence[Token]) -> None:
        skipped: list[bool] = []  # for each open footnote: whether nothing refers to it
        referenced = {
            child.meta.get("label")
            for token in tokens
            for child in token.children or ()
            if child.type == "footnote_ref"
        }
        for before, token in pairwise((Token("", "", 0), *tokens)):
            if token.type == "footnote_reference_open":
                skipped.append(token.meta.get("label") not in referenced)
            elif token.type == "footnote_reference_close":
                skipped.pop()
            elif token.type in _WORDY and not (skipped and skipped[-1]):
                self._words_of(token, before)

    def _words_of(self, token: Token, before: Token) -> None:
        if token.type == "inline":
            children = token.children or []
            one_line = before.type in ("heading_open", "directive_open", "th_open", "td_open")
            if one_line:
                self._show(visible(children, self._values))
            else:
                self._inline_words(children)
        elif token.type == "flow":
            for part in token.meta["parts"]:
                self._part_words(part)
        else:
            self._show(read_info(token.info)[1])
            self._show(token.content)

    def _inline_words(self, children: list[Token]) -> None:
        start = 0
        for index, child in enumerate(children):
            if child.type == "tag" and self._cuts(child.meta["tag"]):
                self._show(visible(children[start:index], self._values))
                self._tag_words(child.meta["tag"])
                start = index + 1
        self._show(visible(children[start:], self._values))

    def _cuts(self, tag: Tag) -> bool:
        """Return whether an inline tag does more than format text."""
        if tag.is_literal:
            return False
        return tag.name in BLOCK_NAMES or tag.name in HIDDEN_NAMES or id(tag) in self._inlined

    def _show(self, text: str) -> None:
        if text and not self._hidden:
            self.texts.append(text)

    def _part_words(self, part: Tag | Expression | str) -> None:
        if isinstance(part, str):
            self._show(part)
        elif isinstance(part, Expression):
            self._show(shown_value(part, self._values) or "")
        elif part.is_literal:
            self._show(part.raw)
        else:
            self._tag_words(part)

    def _tag_words(self, tag: Tag) -> None:
        if id(tag) in self._inlined:
            self.texts.extend(self._inlined[id(tag)].words)
            return
        if tag.name in HIDDEN_NAMES and tag.paired and not tag.alone:
            self._hide(tag)
        self._tabs.note(tag)
        if tag.closing:
            return
        if tag.name == "TabItem":
            self._show(self._tabs.label(tag))
            return
        names = {"Admonition": ("title",), "CodeBlock": ("title",), "Mermaid": ("value",)}
        texts = [tag.text_of(name) for name in ("alt", *names.get(tag.name, ()))]
        self._show(" ".join(texts))

    def _hide(self, tag: Tag) -> None:
        if not tag.closing:
            self._hidden.append(tag.name)
        elif tag.name in self._hidden:
            while self._hidden.pop() != tag.name:
                pass
