"""Count the words of a Markdown source that a reader sees, by a scan of its lines.

The scan shares nothing with the grammar, so that what the grammar or a later step loses shows as
missing words. Where a line could be text or markup, it is not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bythebook.language.text import words

_FENCE = re.compile(
    r"(?:\s*(?:>|(?:[*+:-]|\d+[.)])(?=\s)))*+\s*(`{3,}+(?=[^`]*\Z)|~{3,}+|:{3,}+)(.*)"
)
# Directives of MyST with text inside.
_BOX = re.compile(
    r"\{(?:note|warning|tip|important|hint|caution|danger|attention|admonition|exercise|solution"
    r"|dropdown|epigraph|prf:)[\w-]*+\}"
)
# Elements that are whole on a line of an HTML block.
_ELEMENT = re.compile(
    r"(?i)<(t[dh]|p|li|d[dt]|h[1-6]|(?:fig)?caption)\b(?:\"[^\"<]*\"|'[^'<]*'|[^<>{}\"'])*+>"
    r"((?:[^<]|<(?!/?\1\b))*+)</\1>"
)
_CODE_SPAN = re.compile(r"(?<!`)(`++)(.*?)(?<!`)\1(?!`)")
_ROLE = re.compile(r"\{[\w:.+-]+\}(`++).*?(?<!`)\1(?!`)|\A\+{3}.*")  # of MyST: a title; a break
_MARK = re.compile(r"\A(?:[\s>*+-]*(?:\d+[.)]|\[[xX]\])(?:\s|\Z))+")  # number of an item, done task
# What a reader does not see, or sees as something else; what is further in comes first.
_MARKUP = (
    r"<!--.*|\{/\*.*?(?:\*/\}|\Z)|\\(?!\{[#/]).|&#?\w+;|\$[^$]*\$",
    r"\{(?:[^{}]|\{[^{}]*\})*+\}",
    r"!\[(?:[^\[\]]|\[[^\[\]]*\])*\](?:\((?:\"[^\"]*\"|\([^()]*\)|[^()])*+\)|(?!\())",  # images
    r"(?:\]\[[^\[\]]*|\[\^[^\[\]]*)\](?:\([^()]*\))?|\]\([^()]*(?:\([^()]*\)[^()]*)*\)",
    r"</?[A-Za-z_$][^<>]*>|https?://[^\s<]+",
)
_SIGNS = ("`", "*", "_", "[", "<", "{", "\\", "$", "&", "://", "+++", "](")  # of code, markup
_OPEN = re.compile(r"(?:[`{]|</?[A-Za-z_$]|\]\().*")  # what may go on in the next line
_BLOCK = re.compile(r"\s*(?:(?:[*+-]|#{1,6}+)\s|\Z)")  # what begins here ends a paragraph
# Stars in a word, with the word, as they may be of a product; other emphasis.
_EMPHASIS = re.compile(r"(?<![\w*])\**+\w++\*++\w[\w*]*|\*+|(?<!\w)_+|_+(?!\w)")
# Definitions of links and footnotes, options of directives, modules, Liquid, tags, formulas.
_NO_TEXT = re.compile(
    r"[\s>*+-]*+(?:\d+[.)]\s+)?(?:\[[^\[\]]+\]:|\([\w-]+\)=|%)"
    r"|\s*+(?::[\w-]|(?:import|export)\b|\$\$|[<\\{}()\[\]]|[\s:|-]*+$)"
)


def source_words(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the words of the lines that are text for sure: paragraphs, headings, lists, code."""
    return tuple(word for line in _texts(lines) for word in words(line))


def _texts(lines: Sequence[str]) -> Iterator[str]:
    fence = end = ""  # what ends the open code or comment
    is_markup = goes_on = False  # in a block of markup; after a line whose markup is still open
    boxes: list[str] = []  # the fences of open directives with text
    for line in lines:
        mark = _FENCE.match(line)
        goes_on = not _BLOCK.match(line) and (goes_on or bool(mark and _text_of(mark[2])[1]))
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
        elif is_markup or goes_on or _NO_TEXT.match(line):
            is_markup = not goes_on
            end = _open_comment(line)
            yield from (_text_of(text)[0] for text in _elements(line))
        else:
            end = _open_comment(line)
            text, goes_on = _text_of(line)
            yield text


def _elements(line: str) -> list[str]:
    """Return the texts of elements that are whole on this line, without comments and braces."""
    is_plain = "<!--" not in line and "{" not in line
    return [found[2] for found in _ELEMENT.finditer(line)] if is_plain else []


def _text_of(line: str) -> tuple[str, bool]:
    """Return the text of a line, and whether markup may go on in the next line."""
    if not any(map(line.__contains__, _SIGNS)):
        return _MARK.sub("", line, count=1), False
    line = _ROLE.sub(" ", line)
    rest = _MARK.sub("", _CODE_SPAN.sub(" ", line), count=1)
    spans = () if "$" in line or "{" in rest else _CODE_SPAN.findall(line)  # sure ones
    for markup in _MARKUP:
        rest = re.sub(markup, " ", rest)
    closed = _OPEN.sub("", rest)
    return " ".join([_EMPHASIS.sub("", closed), *(code for _, code in spans)]), closed != rest


def _open_comment(line: str) -> str:
    """Return what ends a comment that begins on this line and does not end on it, or ""."""
    for start, end in (("<!--", "-->"), ("{/*", "*/}")):
        if start in line and end not in line.rpartition(start)[2]:
            return end
    return ""
