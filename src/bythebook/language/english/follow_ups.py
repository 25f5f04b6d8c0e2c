"""Words and patterns that show whether an English question depends on the one before it."""

from __future__ import annotations

import re


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


PERSONAL_PRONOUNS = _set("it its they them their theirs")
DEMONSTRATIVES = _set("this that these those")
ONE = _set("one ones")
BEFORE_VERB = _set("to i you we they it can't cannot don't")
OBJECT_PRONOUNS = _set("it them this these those")
ARTICLES = _set("a an the")
AUXILIARIES_BEFORE_ONE = _set("does do did should can could would must may might shall will is")
QUANTIFIERS_BEFORE_ONE = _set("least most than no any every each exactly only just or")
# Before one of these, "this" is a pronoun; before any other word, it is a determiner.
AFTER_PRONOUN = _set(
    "work works mean means happen happens matter matters help helps affect affects differ differs "
    "compare compares relate relates apply applies look looks come comes go goes cause causes "
    "require requires need needs depend depends fail fails run runs change changes improve break "
    "take takes cost costs exist solve solves different important useful true possible necessary "
    "safe better worse correct right wrong done made called good bad one ones"
)
# Words about the form of an answer, or that fit any topic: they do not name a topic.
GENERIC_WORDS = _set(
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
EXPLETIVE_IT = re.compile(
    r"\bit\s+(?:(?:really|ever|always|still|be|a|an)\s+)*"
    r"(?:take|takes|took|mean|means|matter|matters|cost|costs|help|make\s+sense|possible|true|"
    r"necessary|important|safe|better|best|easy|easier|hard|harder|difficult|ok|okay|good|bad|"
    r"worth|normal|common|recommended|required|useful|enough|likely|right|wrong|allowed|idea|"
    r"good\s+idea|bad\s+idea)\s+(?:to|that|if|when|whether|building|using|having)\b",
    re.IGNORECASE,
)
DEFINITION_QUESTION = re.compile(  # of a question without its final punctuation
    r"\W*(?:and\s+|so\s+|but\s+)?(?:(?:what|who)(?:['’]s|\s+is|\s+are|\s+was|\s+were)|define|"
    r"explain|describe|tell\s+me\s+about|what\s+does)\s++(?:an?\s++|the\s++)?+(?P<term>[^?!.,;]+?)"
    r"(?:(?<!\s)\s++(?:mean|stand\s+for|do|for|used\s+for))?",
    re.IGNORECASE,
)
FRAGMENT = re.compile(
    r"\s*(?:(?:and|but|or|so|what\s+about|how\s+about|also)\s+)+"
    r"(?:in|on|with|without|for|from|at|by|under|over|during|using|inside|outside|instead\s+of|"
    r"after|before|between)\b",
    re.IGNORECASE,
)
WHAT_ABOUT = re.compile(r"\s*(?:(?:and|but|or|so)\s+)?(?:what|how)\s+about\s+", re.IGNORECASE)
