"""Split prose into sentences."""

from __future__ import annotations

import re

from bythebook.language.stopwords import FUNCTION_WORDS
from bythebook.language.text import word_set

# Sentence-ending punctuation, repeated or not, with closing quotes and brackets. The first group
# must be followed by a space; the second (Chinese, Japanese) need not.
_STOP = re.compile(
    r"(?:(?<![.!?…؟۔।॥։።᙮])[.!?…؟۔।॥։።᙮]++[\"'”’»)\]}›」』$]*+(?=\s|\Z))"
    r"|(?:[。！？｡]+[」』”’）)\]\"'»]*)"
)
# Inline formulas and code. "$5 or $6" is no formula: a blank is beside a dollar sign.
_FORMULA = re.compile(
    r"\$\$[^$\n]++\$\$|(?<!\$)\$(?![\s$])[^$\n]{1,400}(?<!\s)\$(?!\d)|\\\([^\n]{1,400}?\\\)"
    r"|`[^`\n]++`"
)
_WORD_BEFORE = re.compile(r"(?<![\w.])[\w.]*+\Z")
_WORD_AFTER = re.compile(r"\w+")
_OPENERS = "\"'“‘«([{‹「『*_¿¡"
_NEVER_LAST = word_set(
    "e.g i.e cf vs viz approx ca dr mr mrs ms prof fig figs eq eqs sec secs ch chap vol pp "
    "ed eds resp incl excl gen col lt sgt rev hon pres gov sen rep ph.d no nos art ref refs tab "
    "dept est p a.k.a"
)
_NEEDS_NUMBER = word_set("no nos p pp fig figs eq eqs sec secs ch chap vol art ref refs tab")
# Abbreviations that may end a sentence, next to those known by their form ("U.S.", "hrs.").
_RARELY_LAST = word_set("al inc co corp st ave univ jan feb mar apr aug sept oct nov dec mon wed")
_BY_FORM = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]|[B-DF-HJ-NP-TV-XZ][b-df-hj-np-tv-xz]{1,4}")
_BEFORE_NAME = word_set("by see with after from für von par de")
# Words that stand with a capital at the start of a sentence only, seldom in a name.
_STARTERS = FUNCTION_WORDS["en"] | word_set(
    "however therefore thus hence moreover furthermore although though because since when while if "
    "here there then note consider suppose let first second third finally similarly also yet now "
    "today later instead nevertheless meanwhile besides unlike like many most some all both each "
    "every several such one two three another other under over between among during before after "
    "until despite without within given figure table section chapter see assume use using due"
)
_HAS_WORD = re.compile(  # or a symbol that is no emoji
    r"\w|[^\s\w!-/:-@\[-`{-~—–…·•\u2600-\u27bf\u2b00-\u2bff\u200d\ufe0f\U0001f000-\U0001faff]"
)
_NEAR = 200  # characters: a sentence has a word in them


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each sentence. A line end always ends a sentence."""
    spans: list[tuple[int, int]] = []
    offset = 0
    for line in text.splitlines(keepends=True):
        end = offset + len(line)
        begin = offset
        has_signs = "$" in line or "`" in line or "\\" in line
        formulas = _FORMULA.finditer(text, offset, end) if has_signs else iter(())
        formula = next(formulas, None)
        for stop in _STOP.finditer(text, offset, end):
            while formula and formula.end() < stop.end():
                formula = next(formulas, None)
            if formula and formula.start() < stop.start() and stop.end() < formula.end():
                continue
            if _ends_sentence(text, begin, stop, end):
                _add_trimmed(spans, text, begin, stop.end())
                begin = stop.end()
        _add_trimmed(spans, text, begin, end)
        offset = end
    return spans


def _add_trimmed(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    bare = piece.lstrip()
    if bare and _HAS_WORD.search(bare):
        first = end - len(bare)
        spans.append((first, first + len(bare.rstrip())))


def _ends_sentence(text: str, begin: int, stop: re.Match[str], end: int) -> bool:
    if not _HAS_WORD.search(text, max(begin, stop.start() - _NEAR), stop.start()):
        return False  # "[...] is a list"
    after = text[stop.end() : min(end, stop.end() + 40)].lstrip().lstrip(_OPENERS)
    following = after[:1]
    mark = stop.group()
    if not following or mark[0] in "。！？｡":
        return True
    if following.islower() or following in ".,;:":
        return False  # "approx. five", "(why?) because", "node.js is", ". . ."
    if mark in ("…", "...") and text[stop.start() - 1 : stop.start()] in (" ", ","):
        return False  # "1, 2, ... N"
    if mark[0] != "." or mark.startswith(".."):
        return True
    return not _is_abbreviation(text[max(begin, stop.start() - 40) : stop.start()], after)


def _is_abbreviation(before: str, after: str) -> bool:
    match = _WORD_BEFORE.search(before)
    written = match.group() if match else ""
    word = written.lower()
    first = _WORD_AFTER.match(after)
    begins = first is not None and after[0].isupper() and first.group().lower() in _STARTERS
    if word in _NEEDS_NUMBER and written != "P":  # "p. 5", but "Alyssa P. Hacker"
        return after[0].isdigit() or word not in ("no", "p", "art", "ch", "tab", "ref")
    if word in _NEVER_LAST:
        return True
    if word.isdigit():
        return before.strip() == word  # a leading "1." is a number, not a sentence
    earlier = before[: len(before) - len(written)].split()
    if len(word) == 1 and word.isalpha():
        return _is_initial(written, earlier, after, begins=begins)
    # "The U.S. Senate" and "Mt. Everest", but "in the U.S. It"
    return not begins and bool(word in _RARELY_LAST or _BY_FORM.fullmatch(written))


def _is_initial(letter: str, earlier: list[str], after: str, *, begins: bool) -> bool:
    """Tell "J. Smith", "Roe v. Wade" and "z. B. Öl" from "vitamin C. It" and "12 V. Then"."""
    if (letter == "v" and not begins) or not earlier or (after[1:2] == "." and after[0].isalpha()):
        return True
    *_, before, beside = ("", *(word.lstrip(_OPENERS) for word in earlier))
    is_second = len(beside) == 2 and beside[1] == "."  # "J. R. Miller"
    named = before if beside in ("and", "&", "und", "et") else beside  # not "A and B. Both"
    is_named = beside in _BEFORE_NAME or (len(named) > 1 and named[0].isupper())
    return not begins and (is_second or (letter.isupper() and is_named))
