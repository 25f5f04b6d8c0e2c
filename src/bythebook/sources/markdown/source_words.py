"""Count the words of a Markdown source that a reader sees, by a scan of its lines.

The scan shares nothing with the grammar, so that what the grammar or a later step loses shows as
missing words. Where a line could be text or markup, it is not counted.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from bythebook.language.text import words

_FENCE = re.compile(r"[\s>*+-]*(?:\d+[.)]\s*)?(`{3,}|~{3,}|:{3,})(.*)")
# Directives of MyST with text inside.
_BOX = re.compile(
    r"\{(?:note|warning|tip|important|hint|caution|danger|attention|admonition|exercise|solution"
    r"|dropdown|epigraph|prf:)[\w-]*+\}"
)
# Elements that are whole on a line of an HTML block.
_ELEMENT = re.compile(
    r"<(t[dh]|p|li|d[dt]|h[1-6]|(?:fig)?caption)\b[^<>{}]*+>((?:[^<]|<(?!/?\1\b))*+)</\1>", re.I
)
_CODE_SPAN = re.compile(r"(?<!`)`([^`]*)`(?!`)")
_ROLE = re.compile(r"\{[\w:.-]+\}`[^`]*`")  # of MyST: shows a title, a number or a formula
_NUMBER = re.compile(r"\A(?:[\s>*+-]*\d+[.)](?:\s|\Z))+")  # of items
# Comments, tags, images, targets of links, braces, escapes, marks of footnotes, URLs, formulas.
_MARKUP = re.compile(
    r"<!--.*|</?[A-Za-z][^<>]*>?|!\[(?:[^\[\]]|\[[^\[\]]*\])*\](?:\((?:\"[^\"]*\"|\([^()]*\)|[^()])*+\))?|\]\([^()]*(?:\([^()]*\)[^()]*)?\)|\]\[[^\[\]]*\]"
    r"|\{[^{}]*\}|\\.|\[\^[^\[\]]*\]|&\w+;|https?://\S+|\$[^$]*\$"
)
_SIGNS = ("`", "*", "_", "[", "<", "{", "\\", "$", "&", "://")  # of code, markup and emphasis
_EMPHASIS = re.compile(r"\*+|(?<!\w)_+|_+(?!\w)")  # also inside of a word: **H**ypertext
# Definitions of links and footnotes, options of directives, modules, Liquid, tags, formulas.
_NO_TEXT = re.compile(
    r"\s*+(?:\[[^\[\]]+\]:|:[\w-]|(?:import|export)\b|\$\$|[%<\\{}()\[\]]|[\s:|-]*+$)"
)


def source_words(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the words of the lines that are text for sure: paragraphs, headings, lists, code."""
    return tuple(word for line in _texts(lines) for word in words(line))


def _texts(lines: Sequence[str]) -> Iterator[str]:
    fence = end = ""  # what ends the open code or comment
    is_markup = False  # inside a block that begins with a tag, a module, a formula or a definition
    boxes: list[str] = []  # the fences of open directives with text
    for line in lines:
        mark = _FENCE.match(line)
        if end:
            end = "" if end in line else end
        elif fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence, is_markup = "", False
            elif not is_markup:
                yield line
        elif mark and boxes and mark[1] == boxes[-1] and not mark[2].strip():
            boxes.pop()
        elif mark:
            if _BOX.match(mark[2]):
                boxes.append(mark[1])
            elif mark[1][0] != ":":
                fence, is_markup = mark[1], "{" in mark[2]  # a directive
        elif not line.strip():
            is_markup = False
        elif is_markup or _NO_TEXT.match(line):
            is_markup = True
            end = _open_comment(line)
            yield from (_text_of(text) for text in _elements(line))
        else:
            end = _open_comment(line)
            yield _text_of(line)


def _elements(line: str) -> list[str]:
    """Return the texts of elements that are whole on this line, without comments and braces."""
    is_plain = "<!--" not in line and "{" not in line
    return [found[2] for found in _ELEMENT.finditer(line)] if is_plain else []


def _text_of(line: str) -> str:
    if not any(map(line.__contains__, _SIGNS)):
        return _NUMBER.sub("", line, count=1)
    line = _ROLE.sub(" ", line)
    code = " ".join(_CODE_SPAN.findall(line))
    rest = _MARKUP.sub(" ", _NUMBER.sub("", _CODE_SPAN.sub(" ", line), count=1))
    return f"{_EMPHASIS.sub('', html.unescape(rest))} {code}"


def _open_comment(line: str) -> str:
    """Return what ends a comment that begins on this line and does not end on it, or ""."""
    for start, end in (("<!--", "-->"), ("{/*", "*/}")):
        if start in line and end not in line.rpartition(start)[2]:
            return end
    return ""
