"""Faster versions of markdown-it's two parsers, which dispatch rules on the first character.

The rules and the resulting tokens are markdown-it's own. The original calls a dozen rules for
every line and every special character, and all but one of them return after looking at the first
character.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate
from operator import add, sub
from typing import Generic, TypeVar

from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock, RuleFuncBlockType
from markdown_it.parser_inline import ParserInline
from markdown_it.ruler import Ruler
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

_Rule = TypeVar("_Rule")

# Start characters of each rule. A rule that is not listed may start at any character.
_BLOCK_STARTS = {
    "fence": "`~",
    "blockquote": ">",
    "hr": "*-_",
    "list": "*-+0123456789",
    "reference": "[",
    "footnote_def": "[",
    "html_block": "<",
    "heading": "#",
    "directive": ":",
    "maths_block": "$",
    "comment": "<",
    "flow": "<{",
    "module_code": "ie",
}
_INLINE_STARTS = {
    "newline": "\n",
    "escape": "\\",
    "backticks": "`",
    "strikethrough": "~",
    "emphasis": "*_",
    "link": "[",
    "image": "!",
    "footnote_ref": "[",
    "autolink": "<",
    "html_inline": "<",
    "comment": "<",
    "tag": "<",
    "expression": "{",
    "entity": "&",
    "maths_inline": "$",
}


class Starts(dict[str, list[_Rule]], Generic[_Rule]):
    """Map from first character to the rules of a chain that may start there, in chain order."""

    def __init__(self, ruler: Ruler[_Rule], chain: str, known: Mapping[str, str]) -> None:
        rules = [
            (rule.fn, known.get(rule.name))
            for rule in ruler.__rules__
            if rule.enabled and (not chain or chain in rule.alt)
        ]
        signs = {sign for _, starts in rules for sign in starts or ""}
        for sign in signs:
            self[sign] = [fn for fn, starts in rules if starts is None or sign in starts]
        self._anywhere = [fn for fn, starts in rules if starts is None]

    def __missing__(self, sign: str) -> list[_Rule]:
        return self._anywhere


class _Lines(StateBlock):
    """Block parser state that builds its line tables without looping over every character."""

    def __init__(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> None:
        super().__init__("", md, env, tokens)
        self.src = src
        lines = src.split("\n")
        if not lines[-1].strip(" \t"):
            lines.pop()
        self.lineMax = len(lines)
        sizes = [len(line) for line in lines]
        self.bMarks = [*accumulate((size + 1 for size in sizes), initial=0)]
        self.eMarks = [*map(add, self.bMarks, sizes), len(src)]
        self.bMarks[-1] = len(src)
        self.tShift = [*map(sub, sizes, (len(line.lstrip(" \t")) for line in lines)), 0]
        self.sCount = self.tShift.copy()
        self.bsCount = [0] * (len(lines) + 1)
        for place, line in enumerate(lines) if "\t" in src else ():
            self.sCount[place] = len(line[: self.tShift[place]].expandtabs(4))


class BlockParser(ParserBlock):
    def __init__(self, ruler: Ruler[RuleFuncBlockType]) -> None:
        self.ruler = ruler
        self._starts = Starts(ruler, "", _BLOCK_STARTS)
        self._interrupts = Starts(ruler, "paragraph", _BLOCK_STARTS)

    def tokenize(self, state: StateBlock, start: int, end: int) -> None:
        line, had_empty_line = start, False
        max_level = state.md.options.maxNesting
        while line < end:
            state.line = line = state.skipEmptyLines(line)
            if line >= end or state.sCount[line] < state.blkIndent:
                return
            if state.level >= max_level:
                state.line = end
                return
            sign = state.src[state.bMarks[line] + state.tShift[line]]
            for rule in self._starts[sign]:
                if rule(state, line, end, False):
                    break
            # For loose lists: an empty line after the last item does not count.
            state.tight = not had_empty_line
            line = state.line
            if line <= end and state.isEmpty(line - 1):
                had_empty_line = True
            if line < end and state.isEmpty(line):
                had_empty_line = True
                state.line = line = line + 1

    def parse(
        self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]
    ) -> list[Token] | None:
        if src:
            state = _Lines(src, md, env, tokens)
            self.tokenize(state, 0, state.lineMax)
        return tokens

    def interrupts_paragraph(self, state: StateBlock, line: int, end: int) -> bool:
        sign = state.src[state.bMarks[line] + state.tShift[line]]
        return any(rule(state, line, end, True) for rule in self._interrupts[sign])


class InlineParser(ParserInline):
    def __init__(self, made: ParserInline) -> None:
        self.ruler, self.ruler2 = made.ruler, made.ruler2
        self._starts = Starts(made.ruler, "", _INLINE_STARTS)
        # Characters that start no rule are plain text; the label of a link ends at "]".
        self.terminator_re = re.compile(f"[{re.escape(''.join(self._starts))}\\]]")

    def tokenize(self, state: StateInline) -> None:
        source, end = state.src, state.posMax
        max_level = state.md.options["maxNesting"]
        while (place := state.pos) < end:
            for rule in self._starts[source[place]] if state.level < max_level else ():
                if rule(state, False):
                    break
            else:
                state.append_pending(source[place])
                state.pos = place + 1
        if state.pending:
            state.pushPending()

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        if src and self.terminator_re.search(src) is None:
            tokens.append(Token("text", "", 0, content=src))
            return tokens
        return super().parse(src, md, env, tokens)
