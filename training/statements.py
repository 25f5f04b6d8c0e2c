"""Make declarative sentences from questions with answers, and edited copies of sentences, by rule.

The rules prefer to return nothing over returning a sentence that reads badly. They exist because
passage-level claims with labels are rare: a question with its answer becomes a true statement; an
unanswerable question with the answer of its answerable twin becomes a false one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

_AUXILIARIES = (
    "did does do is are was were has have had can could will would should may might must"
).split()
_BE = {"is", "are", "was", "were"}
_PREPOSITIONS = (
    "in on at from to by for with of during under after before through into about".split()
)
_PARTICIPLE = re.compile(
    r"\b(?:\w{3,}ed|known|made|born|held|found|built|given|taken|written|located|used|called|seen|"
    r"won|led|sent|set|spoken|drawn|grown|shown|chosen|thought|said|put|based|needed|allowed|able)\b"
)
_WH = re.compile(
    r"^(what|which|who|whom|whose|when|where|how many|how much|how long|how old)\b", re.I
)
_YEAR = re.compile(r"\b1\d{3}\b|\b20\d\d\b")
_NUMBER = re.compile(r"\d[\d,.]*")
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][\w'-]+(?: (?:of |the |de )?[A-Z][\w'-]+)*")


def statement(question: str, answer: str) -> str | None:
    """Return "X opened in 1950." for "When did X open?" and "1950"; None if no rule fits."""
    words = question.strip().rstrip("?. ").split()
    answer = answer.strip().rstrip(".")
    if not 4 <= len(words) <= 22 or not answer or len(answer.split()) > 14:
        return None
    before: list[str] = []
    if words[0].lower() in _PREPOSITIONS:  # "In what year did X open?"
        before, words = [words[0].lower()], words[1:]
    match = _WH.match(" ".join(words))
    if not match:
        return None
    asked = match[1].lower()
    rest = " ".join(words)[match.end() :].split()
    position = next((i for i, word in enumerate(rest[:6]) if word.lower() in _AUXILIARIES), None)
    noun = rest[:position] if position is not None else []
    if position is None:
        return _subject_statement(asked, rest, answer) if not before else None
    auxiliary, tail = rest[position].lower(), rest[position + 1 :]
    if not tail:
        return None
    if asked in ("how many", "how much"):
        answer = " ".join([answer, *noun]) if noun and noun[-1] not in answer else answer
    if auxiliary in _BE and asked in ("what", "who", "which") and not before and not noun:
        return _copula_statement(auxiliary, tail, answer)
    if (
        noun
        and not before
        and auxiliary not in ("did", "does", "do")
        and tail[0].lower() not in ("the", "a", "an", "his", "her", "their", "its")
        and not tail[0][0].isupper()
    ):
        return _finish([answer, auxiliary, *tail])  # the noun was the subject: "Which city is …"
    place = _place(asked, before, answer)
    if auxiliary in ("did", "does", "do"):
        clause = _with_auxiliary(auxiliary, tail)
        return _finish([*clause, *place]) if clause and place else None
    split = next((i for i, word in enumerate(tail) if i and _PARTICIPLE.fullmatch(word)), None)
    if split is None:
        return None
    return _finish([*tail[:split], auxiliary, *tail[split:], *place]) if place else None


def _subject_statement(asked: str, rest: Sequence[str], answer: str) -> str | None:
    if asked == "who" and rest:
        return _finish([answer, *rest])
    if asked in ("what", "which") and len(rest) > 2:
        verb = next(
            (
                i
                for i, w in enumerate(rest[:3])
                if re.fullmatch(r"\w{2,}(?:ed|s)", w) and (i or w.endswith("ed"))
            ),
            None,
        )
        if verb is not None:
            return _finish([answer, *rest[verb:]])
    if asked in ("how many", "how much") and len(rest) > 2:
        return _finish([answer, *rest])
    return None


def _copula_statement(auxiliary: str, tail: list[str], answer: str) -> str | None:
    split = next((i for i, word in enumerate(tail) if i and _PARTICIPLE.fullmatch(word)), None)
    if split is not None and tail[-1].lower() in _PREPOSITIONS:
        return _finish([*tail[:split], auxiliary, *tail[split:], answer])
    if tail[-1].lower() in _PREPOSITIONS:
        return None
    if _PARTICIPLE.fullmatch(tail[0]):
        return _finish([answer, auxiliary, *tail])
    return _finish([*tail, auxiliary, answer])


def _with_auxiliary(auxiliary: str, tail: list[str]) -> list[str]:
    """Place "did" before the verb if capitals tell it from the subject, or else return []."""
    verb = next((i for i, word in enumerate(tail) if word[0].islower()), 0)
    if not 1 <= verb <= 3 or tail[verb] in ("of", "the", "and", "de", "in"):
        return []
    return [*tail[:verb], auxiliary, *tail[verb:]]


def _place(asked: str, before: list[str], answer: str) -> list[str]:
    first = answer.split(maxsplit=1)[0].lower()
    if before:
        return [*before, answer] if first != before[0] else [answer]
    if first in _PREPOSITIONS or asked in ("what", "which", "who", "whom", "how many", "how much"):
        return [answer]
    if asked == "when":
        return ["in" if _YEAR.search(answer) and not re.match(r"\w+ \d", answer) else "on", answer]
    return ["in", answer] if asked == "where" else [answer]


def _finish(words: Sequence[str]) -> str | None:
    text = " ".join(words)
    text = text[0].upper() + text[1:] + "."
    return text if 4 <= len(text.split()) <= 40 else None


def answer_type(answer: str) -> str:
    """Return a coarse type, so that a wrong answer can be of the same one."""
    if _YEAR.search(answer):
        return "year"
    if _NUMBER.search(answer):
        return "number"
    if answer[:1].isupper():
        return "name"
    return "words" if len(answer.split()) > 2 else "word"


_OPPOSITES = [
    pair.split("/")
    for pair in (
        "more/less increase/decrease increases/decreases increased/decreased first/last "
        "before/after "
        "always/never all/some north/south east/west largest/smallest larger/smaller higher/lower "
        "highest/lowest most/least oldest/newest earlier/later above/below early/late major/minor "
        "including/excluding with/without many/few often/rarely strong/weak rich/poor upper/lower "
        "success/failure allowed/forbidden best/worst hot/cold long/short high/low fast/slow "
        "faster/slower begin/end began/ended enter/leave inside/outside true/false public/private "
        "same/different maximum/minimum positive/negative left/right input/output sender/receiver"
    ).split()
]
_OPPOSITE = {a: b for pair in _OPPOSITES for a, b in (pair, pair[::-1])}
_VERB_NOT = re.compile(
    r"\b(is|are|was|were|can|could|will|would|should|must|has been|have been)\b(?! not)"
)
_NOT = re.compile(r"\b(is|are|was|were|can|could|will|would|should|must|did|does|do) not\b")


def lies(sentence: str, paragraph: str, chance: random.Random) -> list[str]:
    """Return false copies of a sentence: other numbers, names or order, negated, or opposite."""
    made: list[str] = []
    numbers = list(_NUMBER.finditer(sentence))
    if numbers:
        number = chance.choice(numbers)
        made.append(
            sentence[: number.start()]
            + _other_number(number[0], paragraph, chance)
            + sentence[number.end() :]
        )
    names = list(_NAME.finditer(sentence))
    others = [
        name for name in set(_NAME.findall(paragraph)) if name not in sentence and len(name) > 3
    ]
    if names and others:
        name = chance.choice(names)
        made.append(
            sentence[: name.start()] + chance.choice(sorted(others)) + sentence[name.end() :]
        )
    if len(names) >= 2 and names[0][0] != names[-1][0]:
        one, two = names[0], names[-1]
        made.append(
            sentence[: one.start()]
            + two[0]
            + sentence[one.end() : two.start()]
            + one[0]
            + sentence[two.end() :]
        )
    if _NOT.search(sentence):
        made.append(_NOT.sub(r"\1", sentence, count=1))
    elif match := _VERB_NOT.search(sentence):
        negated = match[0].replace("been", "never been")
        negated = negated if negated != match[0] else f"{match[0]} not"
        made.append(sentence[: match.start()] + negated + sentence[match.end() :])
    opposites = [m for m in re.finditer(r"\b[a-z]+\b", sentence) if m[0] in _OPPOSITE]
    if opposites:
        word = chance.choice(opposites)
        made.append(sentence[: word.start()] + _OPPOSITE[word[0]] + sentence[word.end() :])
    return [text for text in made if text != sentence]


def _other_number(number: str, paragraph: str, chance: random.Random) -> str:
    others = [
        other
        for other in _NUMBER.findall(paragraph)
        if len(other) == len(number) and other != number
    ]
    if others and chance.random() < 0.5:
        return chance.choice(others)
    digits = list(number)
    places = [i for i, digit in enumerate(digits) if digit.isdigit()]
    place = chance.choice(places)
    digits[place] = chance.choice([d for d in "123456789" if d != digits[place]])
    return "".join(digits)


_ASIDE = re.compile(r" ?\([^()]*\)|, (?:which|who|where|including|such as)[^,.]*(?=[,.])")
_LEAD = re.compile(
    r"^((?:In|On|At|During|After|Before|By|Since|Under|For|With|From|As|When|While|Although)\b"
    r"[^,]{3,60}), (\w[^.]{15,})\.$"
)


def truths(sentence: str) -> list[str]:
    """Return reworded copies of a sentence that follow from it."""
    made = []
    if (shorter := _ASIDE.sub("", sentence)) != sentence and len(shorter.split()) > 4:
        made.append(shorter)
    if match := _LEAD.match(sentence):
        main = match[2][0].upper() + match[2][1:]
        made.append(f"{main} {match[1][0].lower()}{match[1][1:]}.")
        if not match[1].startswith(("When", "While", "Although", "If")):
            made.append(f"{main}.")
    return made
