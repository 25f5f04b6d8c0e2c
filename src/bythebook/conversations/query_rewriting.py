"""Rewrite follow-ups into self-contained questions that can be searched without the history.

Rules for English. A question depends on its history if it has no topic of its own ("Why?", "Show
me an example"), if a pronoun has no antecedent in it ("How do I create one?"), or if it is a
sentence fragment ("And in Python?"). Any other question is left unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from bythebook.language.sentences import split_units
from bythebook.language.terms import terms_of
from bythebook.language.tokens import shortened
from bythebook.retrieval.question_analysis import QUESTION_TOKENS
from bythebook.types import Message, Question, Role

_FAR_BACK = 6  # maximum exchanges in a chain of follow-ups

_TOKEN = re.compile(r"\w+(?:[-.+#/]\w+)*[+#]*|[^\w\s]")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ALWAYS = _set("it its they them their theirs")
_POINTING = _set("this that these those")
_COUNTING = _set("one ones")
_VERB_FOLLOWS = _set("to i you we they it can't cannot don't")
_OBJECTS = _set("it them this these those")
_ARTICLES = _set("a an the")
_ASKING_OF_ONE = _set("does do did should can could would must may might shall will is")
_COUNTED = _set("least most than no any every each exactly only just or")
# Before one of these, "this" is a pronoun; before any other word, it is a determiner.
_PREDICATES = _set(
    "work works mean means happen happens matter matters help helps affect affects differ differs "
    "compare compares relate relates apply applies look looks come comes go goes cause causes "
    "require requires need needs depend depends fail fails run runs change changes improve break "
    "take takes cost costs exist solve solves different important useful true possible necessary "
    "safe better worse correct right wrong done made called good bad one ones"
)
# Words about the form of an answer, or that fit any topic: they do not name a topic.
_GENERIC = _set(
    "example examples instance sample samples detail details more else further again please "
    "elaborate continue simpler simply shorter briefly summary summarise summarize recap short "
    "why how so ok okay yes really sure thanks thank also go deeper clarify clarification "
    "code snippet reason reasons case cases work works happen happens important matter matters "
    "advantage advantages disadvantage disadvantages benefit benefits drawback drawbacks limit "
    "limits limitation limitations downside downsides upside pros cons alternative alternatives "
    "requirement requirements prerequisite prerequisites difference differences step steps "
    "consequence consequences risk risks option options default defaults syntax meaning purpose "
    "type types kind kinds part parts cost costs way ways get let know understand sense "
    "another different differently words terms first second next last true possible necessary "
    "one ones thing things"
)
_EXPLETIVE = re.compile(
    r"\bit\s+(?:(?:really|ever|always|still|be|a|an)\s+)*"
    r"(?:take|takes|took|mean|means|matter|matters|cost|costs|help|make\s+sense|possible|true|"
    r"necessary|important|safe|better|best|easy|easier|hard|harder|difficult|ok|okay|good|bad|"
    r"worth|normal|common|recommended|required|useful|enough|likely|right|wrong|allowed|idea|"
    r"good\s+idea|bad\s+idea)\s+(?:to|that|if|when|whether|building|using|having)\b",
    re.IGNORECASE,
)
_DEFINITION = re.compile(  # of a question without its final punctuation
    r"\W*(?:and\s+|so\s+|but\s+)?(?:(?:what|who)(?:['’]s|\s+is|\s+are|\s+was|\s+were)|define|"
    r"explain|describe|tell\s+me\s+about|what\s+does)\s++(?:an?\s++|the\s++)?+(?P<term>[^?!.,;]+?)"
    r"(?:(?<!\s)\s++(?:mean|stand\s+for|do|for|used\s+for))?",
    re.IGNORECASE,
)
_LONGEST_TERM = 5  # words
_PIECE = re.compile(
    r"\s*(?:(?:and|but|or|so|what\s+about|how\s+about|also)\s+)+"
    r"(?:in|on|with|without|for|from|at|by|under|over|during|using|inside|outside|instead\s+of|"
    r"after|before|between)\b",
    re.IGNORECASE,
)
_INSTEAD = re.compile(r"\s*(?:(?:and|but|or|so)\s+)?(?:what|how)\s+about\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    lower: str
    tells: bool  # is a searchable term
    follows: str  # the preceding word, in lower case
    precedes: str  # the following word

    @property
    def is_verb(self) -> bool:
        """Whether it is in a verb's position: "to create", "do I create", "causes it"."""
        has_object = self.precedes in _OBJECTS and self.follows not in _ARTICLES
        return self.tells and (self.follows in _VERB_FOLLOWS or has_object)

    @property
    def names(self) -> bool:
        """Whether it may be the topic of the question; in "how long", "long" is not."""
        qualifies = self.follows == "how" or self.lower in _GENERIC
        return self.tells and not self.is_verb and not qualifies


def rewrite_follow_up(question: Question, history: Sequence[Message]) -> Question:
    """Return the question with the context it depends on, from the selection or the history.

    A selection takes precedence over the history. If the answer is restricted to the selection,
    nothing is added. Only the beginning of a very long question, selection or message is used.
    """
    asked = shortened(question.text, QUESTION_TOKENS)
    selected = question.selection is not None
    if (selected and question.selection_only) or not (selected or history):
        text = asked
    else:
        selection = shortened(question.selection or "", QUESTION_TOKENS)
        text = _resolve(asked, _topic_of_selection(selection) or _context(history))
    return question if text == question.text else replace(question, text=text)


def _topic_of_selection(selection: str) -> str:
    """Return the first sentence, which usually names the topic of a passage."""
    units = split_units(selection)
    return selection[units[0].start : units[0].end] if units else selection


def _context(history: Sequence[Message]) -> str:
    """Return the last question, rewritten like all before it.

    If it names no topic, the heading that its answer cites is appended.

    After "What is a topic?", "And how do I create one?" is "And how do I create the topic?".
    """
    recent = list(history[-2 * _FAR_BACK :])
    context = ""
    for message, answer in pairwise([*recent, recent[-1]]):
        if message.role is not Role.USER:
            continue
        context = _resolve(shortened(message.content, QUESTION_TOKENS), context)
        context = shortened(context, QUESTION_TOKENS)
        if answer.citations and not any(word.names for word in _words(context)):
            context = f"{context} {answer.citations[0].place.topic}"
    return context


def _resolve(text: str, context: str) -> str:
    words = _words(text)
    free = next(_free_pronouns(words, text), None)
    if free is not None:
        return _with_topic(text, free, _topic(context))
    if _PIECE.match(text) or not any(word.names for word in words):
        return _with_words(text, [word for word in _words(context) if word.tells])
    if _INSTEAD.match(text):
        return _with_words(text, [word for word in _words(context) if word.is_verb])
    return text


def _free_pronouns(words: Sequence[_Word], text: str) -> Iterator[_Word]:
    """Yield the pronouns without an antecedent in their own question."""
    if _EXPLETIVE.search(text):
        return
    for word in words:
        if word.names:
            return
        if _is_pronoun(word):
            yield word


def _is_pronoun(word: _Word) -> bool:
    if word.lower in _ALWAYS:
        return True
    if word.lower in _COUNTING:
        alone = not word.precedes or not terms_of(word.precedes)
        return alone and word.follows not in _COUNTED | _ASKING_OF_ONE and word.precedes != "of"
    if word.lower in _POINTING:
        predicate = word.precedes in _PREDICATES or word.precedes.endswith("ed")
        return predicate or not terms_of(word.precedes)
    return False


def _topic(context: str) -> str:
    """Return the topic of a question: the term it asks to define, or the words that may name it."""
    defined = _DEFINITION.fullmatch(context.rstrip().rstrip("?.!").rstrip())
    if defined and len(defined["term"].split()) <= _LONGEST_TERM:
        return defined["term"].strip("\"'“”‘’`*")
    return " ".join(word.text for word in _words(context) if word.names)


def _with_topic(text: str, pronoun: _Word, topic: str) -> str:
    if not topic:
        return text
    end = pronoun.start + len(pronoun.text)
    return f"{text[: pronoun.start]}the {topic}{text[end:]}"


def _with_words(text: str, words: Sequence[_Word]) -> str:
    known = set(terms_of(text))
    borrowed = [
        w.text for w in words if w.lower not in _GENERIC and not known >= {*terms_of(w.text)}
    ]
    return f"{text} {' '.join(dict.fromkeys(borrowed))}" if borrowed else text


def _words(text: str) -> list[_Word]:
    found = list(_TOKEN.finditer(text))
    lower = ["", *(match[0].lower().replace("’", "'") for match in found), ""]
    return [
        _Word(
            match[0],
            match.start(),
            lower[n],
            bool(terms_of(match[0])),
            lower[n - 1],
            lower[n + 1] if lower[n + 1][:1].isalnum() else "",
        )
        for n, match in enumerate(found, 1)
    ]
