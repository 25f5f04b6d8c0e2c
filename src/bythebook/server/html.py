"""Convert the Markdown of answers and passages to HTML that is safe on any page.

Code is highlighted by classes, maths becomes MathML, links lead to the web, to an e-mail address or
into the book. Finally ``nh3`` removes everything that is not on its allow lists. No input raises an
exception.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, partial
from html import escape
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.parser_inline import RuleFuncInlineType
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline, image, link
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from bythebook.language.text import clean, word_set
from bythebook.sources.markdown.maths import likely_maths_inline, maths_block
from bythebook.text.links import is_safe_link
from bythebook.text.markdown import found_marks, in_order, markdown
from bythebook.text.units import cells_of, is_row, is_rule_row
from bythebook.types import AnswerSpan, Mark, MarkKind, Sentence

_LONGEST_CODE = 20_000  # characters; longer code is not highlighted
_LONGEST_MATHS = 2_000  # characters; longer maths is shown as source
_DEEPEST_MATHS = 40  # nested brackets
_DEEPEST = 10_000  # blocks within one another: before, the text is shown as it is

# A citation marker during parsing: its number between two signs. They are punctuation, so that
# they end no emphasis, of a script that no book is printed in.
_OPEN, _CLOSE, _MARK, _UNMARK, UNIT = "\U0001da87\U0001da88\U0001da89\U0001da8a\U0001da8b"
_OWN_LINK = f"link-{secrets.token_hex(8)}:"  # before the targets of links that are marks
_NO_MARKERS = dict.fromkeys(map(ord, (_OPEN, _CLOSE, _MARK, _UNMARK, UNIT)))
_PLAIN = re.compile(r"[^`$*|\n\[\]]+")
_MARKER = re.compile(f"{_OPEN}([0-9]{{1,4}}){_CLOSE}")
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
    "a blockquote br code em h3 h4 h5 h6 hr img li mark ol p pre s span strong sup table tbody td "
    "th thead tr ul"
)
_TOP_HEADING, _LAST_HEADING = 3, 6  # the page itself uses the first two levels


def to_html(text: str) -> str:
    """Convert Markdown as it was found, in which there are no links."""
    text = without_signs(text)
    return clean_html(render(markdown(text, found_marks(text)), _grammar()))


def with_own_links(marks: Iterable[Mark]) -> Iterator[Mark]:
    """Sign the links and images that are marks: nothing else becomes one."""
    for mark in marks:
        is_link = mark.kind in (MarkKind.LINK, MarkKind.IMAGE)
        yield mark._replace(target=_OWN_LINK + mark.target) if is_link else mark


def _is_own_link(url: str) -> bool:
    return url.startswith(_OWN_LINK) and is_safe_link(url.removeprefix(_OWN_LINK))


def said_html(sentences: Sequence[Sentence], *, mark: AnswerSpan | None = None) -> str:
    """Render the sentences of an answer with citation markers, ``<sup data-cite="1">``.

    The span ``mark``, the short answer, is wrapped in ``<mark>``.
    """
    texts: list[str] = []
    in_table = False
    for number, sentence in enumerate(sentences):
        text = _markdown_of(sentence, mark if mark and mark.sentence == number else None)
        starts_run = sentence.lead == "\n\n" and number > 0 and sentences[number - 1].closes
        if starts_run or not texts:  # apart: two lists in a row are not one
            texts.append("")
            in_table = False
        is_table = is_row(text.rpartition("\n")[2])
        if is_table:
            text = _rows(text, _markers(sentence), goes_on=in_table and sentence.lead == "\n")
        else:
            text += _markers(sentence)
        texts[-1] += sentence.lead + text
        in_table = is_table
    grammar = _grammar()
    return clean_html("".join(render(text.strip(), grammar) for text in texts))


def _rows(text: str, markers: str, *, goes_on: bool) -> str:
    """Return rows of a table with the markers in the last cell, and a header if they begin it."""
    lines = text.split("\n")
    has_header = len(lines) > 1 and is_rule_row(lines[1])
    if not (goes_on or has_header) and is_row(lines[0]):
        lines.insert(1, "|" + "---|" * len(cells_of(lines[0])))
    at = -1 if not is_rule_row(lines[-1]) else 0
    lines[at] = f"{lines[at].rstrip()[:-1].rstrip()} {markers.strip()} |"
    return "\n".join(lines)


def without_signs(text: str) -> str:
    return text.translate(_NO_MARKERS)


def _markdown_of(sentence: Sentence, span: AnswerSpan | None) -> str:
    """Return the text as Markdown with the answer span marked; one with code or maths has none."""
    text = sentence.text.translate(dict.fromkeys(_NO_MARKERS, " "))
    marks = found_marks(text) if sentence.marks is None else sentence.marks
    if span is not None and _PLAIN.fullmatch(text):
        signs = (span.start, _MARK), (span.end, _UNMARK)
        marks = in_order((*marks, *(Mark(at, at, MarkKind.INSERTED, sign) for at, sign in signs)))
    return markdown(text, with_own_links(marks))


def _markers(sentence: Sentence) -> str:
    """Return the markers after a separator that keeps them on the line of the last word."""
    markers = "".join(f"{_OPEN}{number}{_CLOSE}" for number in sentence.markers)
    return sentence.gap.replace(" ", "\xa0") + markers if markers else ""


def render(source: str, grammar: MarkdownIt, env: EnvType | None = None) -> str:
    """Return the HTML of Markdown; where that fails, its source."""
    source = clean(source.encode("utf-8", "replace").decode())
    try:
        made: str = grammar.render(source, {} if env is None else env)
    except (RecursionError, ValueError, IndexError, KeyError, TypeError):
        made = f"<p>{escape(_MARKER.sub('', source))}</p>"
    return made


def clean_html(html: str, cleaner: nh3.Cleaner | None = None) -> str:
    """Return the HTML without what is not allowed, and without markers that are within code."""
    html = html.replace(_MARK, "<mark>").replace(_UNMARK, "</mark>").replace(_OWN_LINK, "")
    return (cleaner or _cleaner()).clean(without_signs(_MARKER.sub("", html)))


# --- the Markdown grammar of passages -------------------------------------------------------------


def make_grammar(renderer: type[RendererHTML]) -> MarkdownIt:
    """Return a parser of what ``text/markdown.py`` writes."""
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=renderer)
    parser.options["maxNesting"] = _DEEPEST
    parser.enable(["table", "strikethrough"])
    parser.disable(["code", "lheading", "reference", "html_block"])
    parser.disable(["entity", "autolink", "html_inline"])
    parser.block.ruler.before(
        "fence", "maths_block", maths_block, {"alt": ["paragraph", "blockquote", "list"]}
    )
    for name, rule in (("link", link), ("image", image)):
        parser.inline.ruler.at(name, partial(_own_link, rule=rule))
    parser.inline.ruler.before("backticks", "marker", _marker)
    parser.inline.ruler.before("backticks", "maths_inline", likely_maths_inline)
    parser.inline.add_terminator_char(_OPEN)
    parser.validateLink = _is_own_link  # type: ignore[method-assign]
    return parser


@cache
def _grammar() -> MarkdownIt:
    return make_grammar(Renderer)


def _own_link(state: StateInline, silent: bool, *, rule: RuleFuncInlineType) -> bool:
    """Try a link only if one follows: each of "[[[[…" would be looked at again and again."""
    if state.env.get("linked") is not state.src:
        state.env["linked"], state.env["last_link"] = state.src, state.src.rfind(_OWN_LINK)
    return state.pos < state.env["last_link"] and rule(state, silent)


def _marker(state: StateInline, silent: bool) -> bool:
    found = _MARKER.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.push("marker", "", 0).content = found[1]
    state.pos = found.end()
    return True


# --- tokens to HTML -------------------------------------------------------------------------------


class Renderer(RendererHTML):
    """Renders our tokens; markdown-it calls the method that has the name of the token."""

    def heading_open(self, tokens: Sequence[Token], at: int, *_: object) -> str:
        level = min(int(tokens[at].tag[1:]) + _TOP_HEADING - 1, _LAST_HEADING)
        return f"<h{level}>" if tokens[at].nesting == 1 else f"</h{level}>\n"

    heading_close = heading_open

    def fence(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[at]
        language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
        return f"<pre><code>{_highlight(token.content, language)}</code></pre>\n"

    def image(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
        """Return an image with its description below it, which is text of the book."""
        words = self.renderInlineAsText(tokens[at].children, options, env)
        source = escape(str(tokens[at].attrGet("src") or ""))
        return f'<img src="{source}" alt=""><span class="caption">{escape(words)}</span>'

    def maths_inline(self, tokens: Sequence[Token], at: int, *_: object) -> str:
        return _maths(tokens[at].content, display=len(tokens[at].markup) > 1)

    def maths_block(
        self, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType
    ) -> str:
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
    return _maths_cleaner().clean(made)  # it does not escape what is in a text


def _depth(source: str) -> int:
    deepest = depth = 0
    for char in source:
        depth += (char in "{(") - (char in "})")
        deepest = max(deepest, depth)
    return deepest


# --- sanitizing -----------------------------------------------------------------------------------


_ATTRIBUTES = {"a": {"href"}, "img": {"src", "alt"}, "ol": {"start"}, "sup": {"data-cite"}}


@cache
def _maths_cleaner() -> nh3.Cleaner:
    return make_cleaner(_MATHS_TAGS, {})


@cache
def _cleaner() -> nh3.Cleaner:
    """Create the sanitizer, once: this takes fifty times as long as cleaning a paragraph."""
    from pygments.token import STANDARD_TYPES  # noqa: PLC0415

    return make_cleaner(
        ALLOWED_TAGS,
        _ATTRIBUTES,
        allowed_classes={"span": {"caption", *filter(None, STANDARD_TYPES.values())}},
    )


def make_cleaner(tags: Set[str], attributes: Mapping[str, set[str]], **options: Any) -> nh3.Cleaner:
    """Return a sanitizer that also lets maths through."""
    return nh3.Cleaner(
        tags=set(tags),
        clean_content_tags={"script", "style"},
        attributes={**{tag: set(_MATHS_ATTRIBUTES) for tag in _MATHS_TAGS}, **attributes},
        url_schemes={"http", "https", "mailto"},
        strip_comments=True,
        **options,
    )
