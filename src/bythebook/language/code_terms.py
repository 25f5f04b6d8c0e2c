"""Find the operators, flags and keywords of code: ``:=``, ``!.``, ``--verbose``, ``-v``, ``in``.

In prose, a sign is a term only where it stands alone or within a name, and a stop word only in
quotes, after a dot or before a word such as "operator".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bythebook.language.english.lexicon import DETERMINERS, either
from bythebook.language.stopwords import is_stop_word
from bythebook.language.text import words

_LONGEST = 4  # signs of an operator, such as ">>>="; longer runs are lines and borders
_FEW = 5  # words of inline code, as in "for (const a of b)"; longer code may be a sentence
_SIGNS = re.compile(r"[!#$%&*+\-./:<=>?@^|~]+")
_OPENING, _CLOSING = frozenset(" \t\n\"'“‘`([{,;"), frozenset(" \t\n\"'”’`)]},;")
_NAME = re.compile(r"[A-Za-z]\w*(?:-\w+)*")
_JOINING = re.compile(r"[-./:<>]|[<:.]*/+>?")  # "a.b", "../a", "https://a", "</b>"
_PUNCTUATION = re.compile(r"[^=]|([-./*!?])\1+")  # in prose: "yes!", "and/or", "well ... no"
_WITH_MEMBER = re.compile(r"(.*[^.:])[.:]")  # "!." before the name of a member, "?:" before a type
_BACKTICKS = re.compile(r"(?<!`)`+([^`\n]+)`+")
_MARKED = re.compile(r"""(?<![^\s(])["'“‘](\w+)["'”’]|(?<=[.@#:%])([a-z]+)\b""")
_OF_NOUN = re.compile(rf" (?:{either('code_nouns')})\b", re.IGNORECASE)
_BEFORE_NOUN = re.compile(rf"(\b(?:the|an?) )?\b(\w+)(?={_OF_NOUN.pattern})", re.IGNORECASE)


def code_terms(code: str, language: str) -> list[str]:
    """Return the operators, flags and, of inline code, keywords."""
    inline = words(code)
    return _signs(code) + keywords(inline if len(inline) <= _FEW else (), language)


def prose_code_terms(prose: str, language: str, *, asks: bool = False) -> list[str]:
    """Return the operators, flags and keywords that a text names.

    In a question (``asks``), signs that are also punctuation count only if it is about them.
    """
    terms = [term for span in _BACKTICKS.findall(prose) for term in code_terms(span, language)]
    named = [quoted or member for quoted, member in _MARKED.findall(prose)]
    for article, word in _BEFORE_NOUN.findall(prose):
        named += [word] if article or word.lower() not in DETERMINERS else []
    signs = _signs(_BACKTICKS.sub(" ` ", prose).rstrip(" \n.!?"), is_code=False, asks=asks)
    return terms + signs + keywords(named, language)


def keywords(named: Iterable[str], language: str) -> list[str]:
    """Return the terms of stop words in code, unlike those in prose; others are terms anyway."""
    return [f"`{word.lower()}" for word in named if is_stop_word(word, language)]


def _signs(text: str, *, is_code: bool = True, asks: bool = False) -> list[str]:
    terms: list[str] = []
    for run in _SIGNS.finditer(text):
        before, after = text[run.start() - 1 : run.start()], text[run.end() : run.end() + 1]
        opens, closes = not before or before in _OPENING, not after or after in _CLOSING
        counts = is_code or not _PUNCTUATION.fullmatch(run[0])
        if opens and closes:
            counts = counts or not asks or _is_subject(text, run)
        else:
            counts = counts and (is_code or not opens) and not _JOINING.fullmatch(run[0])
        if opens and (name := _NAME.match(text, run.end())):
            terms.append((run[0] + name[0]).lower())
        if counts and len(run[0]) <= _LONGEST:
            member = _WITH_MEMBER.fullmatch(run[0])
            terms += [run[0], *member.groups()] if member else [run[0]]
    return terms


def _is_subject(text: str, run: re.Match[str]) -> bool:
    """Return whether a question is about the signs: after "does", before "operator", in quotes."""
    if text[run.start() - 1 : run.start()] not in ("", " ") or _OF_NOUN.match(text, run.end()):
        return True
    before = words(text[: run.start()])
    names_it = not before or is_stop_word(before[-1], "en")
    return names_it and run[0][0] not in "-/"  # these also stand between two function words
