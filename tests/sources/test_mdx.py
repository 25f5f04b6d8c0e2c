"""Parsing of MDX and Markdown: visible text is kept, markup is removed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bythebook.ingestion.render import render
from bythebook.interfaces.blocks import (
    Box,
    Code,
    Document,
    Listing,
    Maths,
    Paragraph,
    Table,
)
from bythebook.sources.documents import plain_text
from bythebook.sources.markdown.mdx import MdxSource, ParseOptions, parse


def read(text: str, *, mdx: bool = True, maths: str = "guess") -> Document:
    return parse(MdxSource.of(text), ParseOptions(mdx=mdx, maths=maths))


def shown(text: str, *, mdx: bool = True, maths: str = "guess") -> str:
    pieces = render(read(text, mdx=mdx, maths=maths).blocks)
    return "".join((piece.gap if n else "") + piece.text for n, piece in enumerate(pieces))


# --- text -----------------------------------------------------------------------------------------


IMPORTS = """import A from './a';
import {
  b,
} from 'b';

export const C = ({children}) => (
  <div>

    {children}

  </div>
);

{/* a comment
over lines */}

<!-- another

one -->

Text stays.
import this is prose too
"""


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("**bold** _em_ `code` ~~gone~~", "bold em code gone"),
        ("[a link](https://x.example 'title') and ![a picture](p.png)", "a link and a picture"),
        ("![one](a.png)![two](b.png)", "one two"),
        ("two\nlines", "two lines"),
        ("hard\\\nbreak", "hard\nbreak"),
        ("&lt;tag&gt; &amp; &copy;", "<tag> & ©"),
        ("\\{not code\\} \\<b>", "{not code} <b>"),
        ("a < b and c > d, x <= y", "a < b and c > d, x <= y"),
        ("δ < 1.25 and < 0.5 pixels", "δ < 1.25 and < 0.5 pixels"),
        ("a std::vector<int> or vector<T>", "a std::vector<int> or vector<T>"),
        ("text {/* comment */} more", "text more"),
        ("text <!-- comment --> more", "text more"),
        ("an {'inline literal'} here", "an inline literal here"),
        ("<b>bold</b> and <Custom a={1}>kept</Custom>.", "bold and kept."),
        ("line one<br/>line two", "line one\nline two"),
        ("10:30 and :name and a::b", "10:30 and :name and a::b"),
        ("An open { brace", "An open { brace"),
        (IMPORTS, "Text stays. import this is prose too"),
        ("    text", "text"),
        ("It costs $5 *or* $6 today.", "It costs $5 or $6 today."),
        ("It leaves {Math.round(x)} ms.", "It leaves … ms."),
        ("export const v = '1.2';\n\nVersion {v}.", "Version 1.2."),
        ("````md\n```js\nx\n```\n````", "````md\n```js\nx\n```\n````"),
        ("```mermaid\ngraph TD;\n```", "```mermaid\ngraph TD;\n```"),
        (
            "```mdx-code-block\n<b>bold</b>\n```\n\n```js\nx\n```",
            "bold\n\n```js\nx\n```",
        ),
        ("<CodeBlock language='js'>{`a {\n  b }`}</CodeBlock>", "```js\na {\n  b }\n```"),
        ("<Code language='md'>{\n 'a' + \n 'b'\n}</Code>", "```md\nab\n```"),
        (":::note\n\nText.\n\n:::", "Note\nText."),
        (":::tip[My *title*]{.wide}\nText.\n:::", "Tip — My title\nText."),
        (":::danger Old style\nText.\n:::", "Danger — Old style\nText."),
        (
            "<Tabs>\n  <TabItem value='a' label='First'>One</TabItem>\n"
            "  <TabItem value='b'>\n\n**Two**\n\n  </TabItem>\n</Tabs>",
            "First\nOne\n\nb\nTwo",
        ),
        (
            "<Tabs values={[{label: 'Named', value: 'a'}]}>\n"
            "<TabItem value='a' label='Not this'>One</TabItem>\n</Tabs>",
            "Named\nOne",
        ),
        ("<details>\n<summary>More *here*</summary>\n\nBody\n\n</details>", "More here\nBody"),
        ("<details><summary>More *here*</summary>Body</details>", "More here\nBody"),
        ("<details>\n  <summary>More *here*</summary>\n  Body\n</details>", "More here\nBody"),
        (
            "- a\n  - b\n    more\n- c\n\n3. x\n4. y",
            "- a\n  - b more\n- c\n\n3. x\n4. y",
        ),
        (
            "| a | b |\n|---|:-:|\n| `x` | **y** |\n| z | |",
            "| a | b |\n|---|---|\n| x | y |\n| z |  |",
        ),
        (
            "A.[^b] B.[^a]\n\n[^a]: First note.\n[^b]: Second note.\n[^c]: Unused.\n\nEnd.",
            "A. B.\n\nEnd.\n\nFootnotes\n\n1. Second note.\n2. First note.",
        ),
        ("<head>\n<title>No</title>\n</head>\n\n<style>{`a {b: c}`}</style>\n\nYes", "Yes"),
        ('<img src="a.png" alt="An arm" />\n\nText', "An arm\n\nText"),
    ],
)
def test_markup_becomes_visible_text(source: str, text: str) -> None:
    assert shown(source) == text


def test_import_without_blank_line_keeps_the_following_heading() -> None:
    assert [heading.text for heading in read("import A from 'a';\n# Title\n").headings] == ["Title"]


def test_unclosed_tag_keeps_the_following_headings() -> None:
    document = read("<X/>\n## One\n\n<Y>\n## Two\n</Y>\n\n<Z a='1'\n  b={2}\n/>\n## Three\n")
    assert [heading.text for heading in document.headings] == ["One", "Two", "Three"]


# --- blocks ---------------------------------------------------------------------------------------


def test_code_is_kept_unchanged() -> None:
    code = "if a < b:\n\tprint('{x}')  # <b> :::note\n\n    # two  spaces"
    block = read(f'````py title="a.py" {{1}}\n{code}\n````\n').blocks[0]
    assert isinstance(block, Code)
    assert (block.language, block.title, block.text) == ("py", "a.py", code)


def test_code_in_a_list_keeps_its_indentation() -> None:
    assert "```sh\n  indented\nflush\n```" in shown(
        "- a\n\n  ```sh\n    indented\n  flush\n  ```\n"
    )


def test_admonitions_nest_by_number_of_colons() -> None:
    outer = read("::::info[Outer]\na\n\n:::tip[Inner]\nb\n:::\n\nc\n::::\n\nd").blocks[0]
    assert isinstance(outer, Box)
    assert isinstance(outer.blocks[1], Box)
    assert len(outer.blocks) == 3


def test_html_tables_and_lists_are_tables_and_lists() -> None:
    blocks = read(
        "<table>\n<thead><tr><th>h</th></tr></thead>\n<tbody><tr><td>c</td></tr></tbody>\n</table>\n\n"
        "<ul>\n  <li>one</li>\n  <li>two</li>\n</ul>"
    ).blocks
    assert isinstance(blocks[0], Table)
    assert (blocks[0].header, blocks[0].rows) == (("h",), (("c",),))
    assert isinstance(blocks[1], Listing)
    assert len(blocks[1].items) == 2


def test_maths_source_is_kept() -> None:
    blocks = read("Let $a<b$ be.\n\n$$\n\\frac{a}{b}\n$$\n").blocks
    assert isinstance(blocks[0], Paragraph)
    assert blocks[0].text == "Let $a<b$ be."
    assert isinstance(blocks[1], Maths)
    assert blocks[1].text == "\\frac{a}{b}"


def test_without_maths_dollars_are_text() -> None:
    assert shown("It costs $5 *or* $6 today.", maths="off") == "It costs $5 or $6 today."


# --- anchors --------------------------------------------------------------------------------------


def anchors(text: str) -> list[str | None]:
    return [heading.anchor for heading in read(text).headings]


def test_explicit_heading_ids_take_precedence() -> None:
    assert anchors("## A {#x}\n\n## B {/* #y more */}\n\n## X\n\n## A\n") == ["x", "y", "x", "a"]


def test_h1_counts_for_numbering_but_has_no_anchor() -> None:
    assert anchors("# Intro\n\n## Intro\n") == [None, "intro-1"]


def test_headings_inside_boxes_are_numbered_with_the_others() -> None:
    source = "## A\n\n:::tip\n\n### A\n\n:::\n\n<details>\n\n### A\n\n</details>\n\n> ### A\n"
    assert anchors(source) == ["a", "a-1", "a-2", "a-3"]


def test_duplicate_heading_id_is_reported() -> None:
    assert "occurs twice" in read("## A {#x}\n\n## X\n").remarks[0].text


# --- partials, properties, values -----------------------------------------------------------------


def test_partial_is_inlined_with_its_anchors_and_properties() -> None:
    def open_partial(
        path: str, properties: Mapping[str, object], span: tuple[int, int]
    ) -> Document | None:
        text = "## Same\n\nHello {props.name}."
        return parse(MdxSource.of(text), ParseOptions(values=properties, used_at=span))

    page = "import P from './_p.mdx';\n\n## Same\n\n<P name='reader' />\n\nAfter."
    document = parse(MdxSource.of(page), ParseOptions(open_partial=open_partial))
    assert [heading.anchor for heading in document.headings] == ["same", "same"]
    assert [block.text for block in document.blocks if isinstance(block, Paragraph)] == [
        "Hello reader.",
        "After.",
    ]


def test_properties_of_a_card_are_text_and_an_open_question_is_none() -> None:
    card = "<Card title='Arms' description='They lift.' />"
    entry = "<Entry question='Who lifts?' answer='An arm lifts.' />"
    asked = "<Check question='Who lifts?' options={['An arm', 'A leg']} />"
    assert plain_text(read(card).blocks) == "Arms\nThey lift."
    assert plain_text(read(entry).blocks) == "Who lifts?\nAn arm lifts."
    assert plain_text(read(asked).blocks) == ""


def test_words_in_properties_and_computed_words_are_reported() -> None:
    document = read("<Quiz question='What is a robot?' options={['Arm', 'Leg']} />\n\n{now()}\n")
    first, second = (remark.text for remark in document.remarks)
    assert "<Quiz> holds 6 words" in first
    assert "What is a robot?" not in plain_text(document.blocks)
    assert "{now()}" in second
    assert document.remarks[1].line == 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("33", "33"),
        ("Math.round(1000 / 30)", "33"),
        ("6 / 2", "3"),
        ("2.5 * 3", "7.5"),
        ("`${a} kites`", "7 kites"),
        ("a - 1", "6"),
        ("1 / 0", "…"),
        ("`${b} kites`", "…"),
        ("a ? 1 : 2", "…"),
        ("Math.max(1, 2)", "…"),
    ],
)
def test_calculations_and_templates_with_literals_are_shown(value: str, text: str) -> None:
    source = (
        f"export const a = 7;\nexport const v = {value};\nexport const w = 'end';\n\nSo {{v}} {{w}}"
    )
    assert shown(source) == f"So {text} end"


# --- plain Markdown -------------------------------------------------------------------------------


def test_commonmark_keeps_braces_indented_code_and_html() -> None:
    assert shown("{a} <https://x.example>", mdx=False) == "{a} https://x.example"
    assert shown("    code", mdx=False) == "```\ncode\n```"
    source = "<div>\nraw *text*\n</div>\n\n<details>\n<summary>S</summary>\n\n*Body*\n\n</details>"
    assert shown(source, mdx=False) == "raw *text*\n\nS\nBody"


def test_loose_markdown_reads_markdown_after_an_html_tag() -> None:
    source = "<details>\n<summary>S</summary>\nText:\n```py\nx = {1}\n```\n</details>\n\n{a}"
    document = parse(MdxSource.of(source), ParseOptions(mdx=False, loose=True))
    box, after = document.blocks
    assert isinstance(box, Box)
    assert isinstance(box.blocks[1], Code)
    assert isinstance(after, Paragraph)
    assert after.text == "{a}"


# --- places ---------------------------------------------------------------------------------------


def test_block_spans_are_offsets_in_the_file() -> None:
    text = (
        "---\r\na: 1\r\n---\r\n# T\r\n\r\nFirst para.\r\n\r\n```mdx-code-block\r\nSecond\r\n```\r\n"
    )
    document = parse(MdxSource.of(text, skip_lines=3))
    places = [text[slice(*block.span)].strip() for block in document.blocks]
    assert places == ["# T", "First para.", "Second\r\n```"]


def test_words_are_counted_independently_of_the_grammar() -> None:
    text = (
        "# A b\n\n:::note[C]\nd `e <f>`\n:::\n\n| g |\n|---|\n\n1. [h](x.md), <b>i</b> ![no](x)\n\n"
        "<!-- no\n\nno -->\n\n[no]: x\n\n```py\nj\n```\n"
    )
    assert read(text).words == tuple("Abdefghij")
