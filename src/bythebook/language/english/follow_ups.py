"""Words and patterns that show whether an English question depends on the one before it."""

from __future__ import annotations

import re

from bythebook.language.english.lexicon import FOLLOW_UP_WORDS

PERSONAL_PRONOUNS = FOLLOW_UP_WORDS["personal_pronouns"]
DEMONSTRATIVES = FOLLOW_UP_WORDS["demonstratives"]
ONE = FOLLOW_UP_WORDS["one"]
BEFORE_VERB = FOLLOW_UP_WORDS["before_verb"]
OBJECT_PRONOUNS = FOLLOW_UP_WORDS["object_pronouns"]
ARTICLES = FOLLOW_UP_WORDS["articles"]
AUXILIARIES_BEFORE_ONE = FOLLOW_UP_WORDS["auxiliaries_before_one"]
QUANTIFIERS_BEFORE_ONE = FOLLOW_UP_WORDS["quantifiers_before_one"]
AFTER_PRONOUN = FOLLOW_UP_WORDS["after_pronoun"]
GENERIC_WORDS = FOLLOW_UP_WORDS["generic_words"]
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
