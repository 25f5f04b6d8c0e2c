"""Our parsers try fewer rules than markdown-it's own, and find the same tokens."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock

from bythebook.sources.markdown.fast_parsers import BlockParser
from bythebook.sources.markdown.grammar import grammar

LINES = (
    "# h|word|two  words|* |- |1. |> |```|~~~|:::note|:::|[^1]: |[a]: /b|$$|---|import a from 'b'"
)
INSIDE = (
    "[^1]|[a](b)|![i](j)|**b**|_e_|`c`|<b>|</b>|<!-- c -->|{x}|{/* c */}|$x$|~~s~~|&amp;|\\*|<a:b>"
)
SIGNS = [*"=+[]* _`", "    ", "\t", "\n", "\n\n", "\n  ", "\n| a | b |\n|---|---|\n| c |"]
SNIPPETS = st.sampled_from(LINES.split("|") + INSIDE.split("|") + SIGNS)


class EveryRule(BlockParser):
    tokenize = ParserBlock.tokenize
    parse = ParserBlock.parse

    def interrupts_paragraph(self, state: StateBlock, line: int, end: int) -> bool:
        return any(rule(state, line, end, True) for rule in self.ruler.getRules("paragraph"))


def every_rule(parser: MarkdownIt) -> MarkdownIt:
    slow = copy.copy(parser)
    slow.block = EveryRule(parser.block.ruler)
    slow.inline = ParserInline()
    slow.inline.ruler, slow.inline.ruler2 = parser.inline.ruler, parser.inline.ruler2
    return slow


@pytest.mark.parametrize("flavour", ["mdx", "md", "loose"])
@pytest.mark.parametrize("maths", ["on", "off"])
@settings(deadline=None)  # the first text waits for the grammar
@given(text=st.lists(SNIPPETS, max_size=30).map("".join))
def test_the_tokens_are_those_of_markdown_it(flavour: str, maths: str, text: str) -> None:
    parser = grammar(flavour, maths=maths)
    assert parser.parse(text, {}) == every_rule(parser).parse(text, {})
