"""Find the operators, flags and keywords of code: ``:=``, ``!.``, ``--verbose``, ``-v``, ``in``.

In prose, most signs are punctuation and keywords are stop words. There, a sign is a term only where
it stands alone or within a name, and a stop word only in quotes, after a dot or before a word such
as "operator".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bythebook.language.english.lexicon import CODE_NOUNS, DETERMINERS
from bythebook.language.stopwords import FUNCTION_WORDS

_LONGEST = 4  # signs of an operator, such as ">>>="; longer runs are lines and borders
_FEW = 5  # words of inline code, as in "for (const a of b)"; longer code may be a sentence
_SIGNS = re.compile(r"[!#$%&*+\-./:<=>?@^|~]+")
_OPENING, _CLOSING = frozenset(" \t\n\"'“‘`([{,;"), frozenset(" \t\n\"'”’`)]},;")
_NAME = re.compile(r"[A-Za-z]\w*(?:-\w+)*")
# Parts of names, addresses and tags: "a.b", "../a", "https://a", "</b>".
_JOINING = re.compile(r"[-./:<>]|[<:.]*/+>?")
# Also punctuation: "yes!", "and/or", "well ... no".
_PUNCTUATION = re.compile(r"[^=]|([-./*!?])\1+")
_WITH_MEMBER = re.compile(r"(.*[^.:])[.:]")  # "!." before the name of a member, "?:" before a type
_BACKTICKS = re.compile(r"(?<!`)`+([^`\n]+)`+")
_WORD = re.compile(r"\w+")
_NEAR = 40  # characters before a sign, in which the word before it is looked for
_MARKED = re.compile(r"""(?<![^\s(])["'“‘](\w+)["'”’]|(?<=[.@#:%])([a-z]+)\b""")
_BEFORE_NOUN = re.compile(
    rf"(\b(?:the|an?) )?\b(\w+) (?=(?:{'|'.join(sorted(CODE_NOUNS))})\b)", re.IGNORECASE
)


def code_terms(text: str, *, is_code: bool = True, asks: bool = False) -> list[str]:
    """Return the operators and flags of a piece of code, or that a text in prose names.

    In a question (``asks``), signs that are also punctuation count only if it is about them.
    """
    terms: list[str] = []
    text = text if is_code else text.rstrip(" \n.!?")
    for run in _SIGNS.finditer(text):
        before, after = text[run.start() - 1 : run.start()], text[run.end() : run.end() + 1]
        opens, closes = not before or before in _OPENING, not after or after in _CLOSING
        is_clear = is_code or not _PUNCTUATION.fullmatch(run[0])
        if opens and closes:
            counts = is_clear or not asks or _is_subject(text, run)
        else:
            counts = is_clear and (is_code or not opens) and not _JOINING.fullmatch(run[0])
        if opens and (name := _NAME.match(text, run.end())):
            terms.append((run[0] + name[0]).lower())
        if counts and len(run[0]) <= _LONGEST:
            member = _WITH_MEMBER.fullmatch(run[0])
            terms += [run[0], *member.groups()] if member else [run[0]]
    return terms


def prose_code_terms(prose: str, *, asks: bool = False) -> list[str]:
    """Return the operators and flags of a text in prose, also those in backticks."""
    quoted = [term for span in _BACKTICKS.finditer(prose) for term in code_terms(span[1])]
    return quoted + code_terms(_BACKTICKS.sub(" ` ", prose), is_code=False, asks=asks)


def inline_words(code: str) -> list[str]:
    """Return the words of inline code, of which the stop words are keywords."""
    words = _WORD.findall(code)
    return words if len(words) <= _FEW else []


def marked_words(prose: str) -> Iterator[str]:
    """Yield the words that are keywords of code by the way they are written, if stop words."""
    for span in _BACKTICKS.finditer(prose):
        yield from inline_words(span[1])
    for marked in _MARKED.finditer(prose):
        yield marked[1] or marked[2]
    for article, word in _BEFORE_NOUN.findall(prose):
        if article or word.lower() not in DETERMINERS:
            yield word


def _is_subject(text: str, run: re.Match[str]) -> bool:
    """Return whether a question is about the signs: after "does", before "operator", in quotes."""
    if text[run.start() - 1 : run.start()] not in ("", " "):
        return True
    following = _WORD.search(text, run.end())
    if following and following[0].lower() in CODE_NOUNS:
        return True
    before = _WORD.findall(text[max(0, run.start() - _NEAR) : run.start()])
    is_named = not before or before[-1].lower() in FUNCTION_WORDS["en"]
    return is_named and run[0][0] not in "-/"  # these also stand between two function words
