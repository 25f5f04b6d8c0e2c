"""Convert the Markdown of answers and passages to HTML that is safe on any page.

Lists, tables, fenced code and maths are parsed as Markdown, but ``__init__``, ``2*3*4``, ``&lt;``
and a backslash in prose are literal text; so are links and images, because visible text has none:
``handlers[0](event)`` is code. Code is highlighted by classes, maths becomes MathML. Finally
``nh3`` removes everything that is not on its allow lists. No input raises an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.emphasis import tokenize as tokenize_emphasis
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from bythebook.language.text import clean, word_set
from bythebook.sources.markdown.maths import likely_maths_inline, maths_block
from bythebook.text.units import cells_of, is_row, is_rule_row, mark_code
from bythebook.types import AnswerSpan, Sentence

_LONGEST_CODE = 20_000  # characters; longer code is not highlighted
_LONGEST_MATHS = 2_000  # characters; longer maths is shown as source
_DEEPEST_MATHS = 40  # nested brackets

# A citation marker during parsing: its number between two private-use characters.
_OPEN, _CLOSE = "\ue0b7", "\ue0b8"
_MARK, _UNMARK = "\ue0b9", "\ue0ba"
_NO_MARKERS = dict.fromkeys(map(ord, (_OPEN, _CLOSE, _MARK, _UNMARK)))
_PLAIN = re.compile(r"[^`$*|\n\[\]]+")
_MARKER = re.compile(f"{_OPEN}([0-9]{{1,4}}){_CLOSE}")
_MARKERS_AT_END = re.compile(  # tried only where spaces or markers begin
    rf"(?:(?<!\s)\s++|(?<![\s{_CLOSE}]))((?:{_OPEN}[0-9]{{1,4}}{_CLOSE})++)\Z"
)

_MATHS_TAGS = word_set(
    "math menclose mfenced mfrac mi mmultiscripts mn mo mover mpadded mphantom mroot mrow ms "
    "mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover"
)
_MATHS_ATTRIBUTES = word_set(
    "accent accentunder columnalign columnlines columnspacing depth display displaystyle fence "
    "form height largeop linethickness lspace mathvariant maxsize minsize movablelimits notation "
    "rowlines rowspacing rspace scriptlevel separator stretchy symmetric voffset width"
)
ALLOWED_TAGS = _MATHS_TAGS | word_set(
    "blockquote br code em h3 h4 h5 h6 hr li mark ol p pre s span strong sup table tbody td th "
    "thead tr ul"
)
_TOP_HEADING, _LAST_HEADING = 3, 6  # the page itself uses the first two levels


def to_html(markdown: str) -> str:
    return _render(_without_markers(markdown))


def said_html(sentences: Sequence[Sentence], *, mark: AnswerSpan | None = None) -> str:
    """Render the sentences of an answer with citation markers, ``<sup data-cite="1">``.

    The span ``mark``, the short answer, is wrapped in ``<mark>``.
    """
    texts: list[str] = []
    for number, sentence in enumerate(sentences):
        text = _with_mark(sentence.text, mark if mark and mark.sentence == number else None)
        starts_run = sentence.lead == "\n\n" and number > 0 and sentences[number - 1].closes
        if starts_run or not texts:  # apart: two lists in a row are not one
            texts.append("")
        texts[-1] += sentence.lead + text + _markers(sentence)
    return "".join(_render(text.strip()) for text in texts)


def _without_markers(text: str) -> str:
    return text.translate(_NO_MARKERS)


def _with_mark(text: str, mark: AnswerSpan | None) -> str:
    """Mark the answer span, except in text with code or maths, where it would break the markup."""
    if mark is None or not _PLAIN.fullmatch(text):
        return _without_markers(text)
    parts = (text[: mark.start], text[mark.start : mark.end], text[mark.end :])
    before, marked, after = map(_without_markers, parts)
    return f"{before}{_MARK}{marked}{_UNMARK}{after}"


def _markers(sentence: Sentence) -> str:
    """Return the markers after a separator that keeps them on the line of the last word."""
    markers = "".join(f"{_OPEN}{number}{_CLOSE}" for number in sentence.markers)
    return sentence.gap.replace(" ", "\xa0") + markers if markers else ""


def _render(markdown: str) -> str:
    text = clean(markdown.encode("utf-8", "replace").decode())
    text = "\n".join(_whole_tables(text.splitlines()))
    try:
        made = _grammar().render(text)
    except (RecursionError, ValueError, IndexError, KeyError, TypeError):
        made = f"<p>{escape(_MARKER.sub('', text))}</p>"  # fallback: the source text
    made = made.replace(_MARK, "<mark>").replace(_UNMARK, "</mark>")
    return _cleaner().clean(_MARKER.sub("", made))  # drop markers that ended up within code


# --- the Markdown grammar of passages -------------------------------------------------------------


@cache
def _grammar() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough"])
    parser.disable(["code", "lheading", "reference", "html_block"])
    parser.disable(["escape", "entity", "autolink", "html_inline", "link", "image"])
    parser.block.ruler.before(
        "fence", "maths_block", maths_block, {"alt": ["paragraph", "blockquote", "list"]}
    )
    parser.inline.ruler.before("backticks", "marker", _marker)
    parser.inline.ruler.before("backticks", "maths_inline", likely_maths_inline)
    parser.inline.ruler.at("emphasis", _emphasis)
    parser.inline.add_terminator_char(_OPEN)
    return parser


def _emphasis(state: StateInline, silent: bool) -> bool:
    """Parse asterisks around words only; within words they are literal (products), as are all _."""
    if state.src[state.pos] != "*":
        return False
    end = state.pos
    while end < state.posMax and state.src[end] == "*":
        end += 1
    before, after = state.src[state.pos - 1 : state.pos], state.src[end : end + 1]
    if before.isalnum() and after.isalnum():
        if not silent:
            state.pending += state.src[state.pos : end]
        state.pos = end
        return True
    return tokenize_emphasis(state, silent)


def _marker(state: StateInline, silent: bool) -> bool:
    found = _MARKER.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.push("marker", "", 0).content = found[1]
    state.pos = found.end()
    return True


def _whole_tables(lines: Sequence[str]) -> Iterator[str]:
    """Repair tables cited row by row: move markers into the last cell, add the delimiter row."""
    before, columns = "", 0
    for line, is_code in mark_code(lines):
        row = None if is_code else _row(line)
        if before and row is None:
            before = ""
        elif before == "head" and row is not None:
            before = "rows"
            if not is_rule_row(row):
                yield "|" + "---|" * columns
        elif row is not None and not before:
            before, columns = "head", len(cells_of(row))
        yield line if row is None else row
    if before == "head":
        yield "|" + "---|" * columns


def _row(line: str) -> str | None:
    bare = line.strip()
    found = _MARKERS_AT_END.search(bare)
    cells = bare[: found.start()] if found else bare
    if len(cells) < 3 or not is_row(cells):
        return None
    return f"{cells[:-1].rstrip()} {found[1]} |" if found else cells


# --- tokens to HTML -------------------------------------------------------------------------------


class _Renderer(RendererHTML):
    """Renders our tokens; markdown-it calls the method that has the name of the token."""

    def heading_open(self, tokens: Sequence[Token], at: int, *_: object) -> str:
        level = min(int(tokens[at].tag[1:]) + _TOP_HEADING - 1, _LAST_HEADING)
        return f"<h{level}>" if tokens[at].nesting == 1 else f"</h{level}>\n"

    heading_close = heading_open

    def fence(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[at]
        language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
        return f"<pre><code>{_highlight(token.content, language)}</code></pre>\n"

    def maths_inline(self, tokens: Sequence[Token], at: int, *_: object) -> str:
        return _maths(tokens[at].content, display=len(tokens[at].markup) > 1)

    def maths_block(self, tokens: Sequence[Token], at: int, *_: object) -> str:
        return f"<p>{_maths(tokens[at].content, display=True)}</p>\n"

    def marker(self, tokens: Sequence[Token], at: int, *_: object) -> str:
        number = tokens[at].content
        return f'<sup data-cite="{number}">{number}</sup>'


def _highlight(code: str, language: str) -> str:
    if not language or len(code) > _LONGEST_CODE:
        return escape(code)
    from pygments import highlight  # noqa: PLC0415 - a tenth of a second, and few answers have code
    from pygments.formatters import HtmlFormatter  # noqa: PLC0415
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415
    from pygments.util import ClassNotFound  # noqa: PLC0415

    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except (ClassNotFound, ValueError):
        return escape(code)
    made: str = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return made


def _maths(source: str, *, display: bool) -> str:
    """Convert LaTeX to MathML; what the converter cannot parse is shown as source."""
    source = _MARKER.sub("", source).strip()
    as_written = f"<code>{escape(source)}</code>"
    if len(source) > _LONGEST_MATHS or _depth(source) > _DEEPEST_MATHS:
        return as_written
    from latex2mathml.converter import convert  # noqa: PLC0415 - few answers have maths

    try:
        made: str = convert(source, display="block" if display else "inline")
    except Exception:  # any converter error: the source stays readable
        return as_written
    return made


def _depth(source: str) -> int:
    deepest = depth = 0
    for char in source:
        depth += (char in "{(") - (char in "})")
        deepest = max(deepest, depth)
    return deepest


# --- sanitizing -----------------------------------------------------------------------------------


@cache
def _cleaner() -> nh3.Cleaner:
    """Create the sanitizer, once: this takes fifty times as long as cleaning a paragraph."""
    from pygments.token import STANDARD_TYPES  # noqa: PLC0415

    attributes = {tag: set(_MATHS_ATTRIBUTES) for tag in _MATHS_TAGS}
    return nh3.Cleaner(
        tags=set(ALLOWED_TAGS),
        clean_content_tags={"script", "style"},
        attributes={**attributes, "ol": {"start"}, "sup": {"data-cite"}},
        allowed_classes={"span": set(filter(None, STANDARD_TYPES.values()))},
        strip_comments=True,
    )
