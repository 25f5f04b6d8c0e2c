"""Words and patterns that show whether an English question depends on the one before it."""

from __future__ import annotations

import re

from bythebook.language.english.lexicon import FOLLOW_UP_WORDS

PERSONAL_PRONOUNS = FOLLOW_UP_WORDS["personal_pronouns"]
DEMONSTRATIVES = FOLLOW_UP_WORDS["demonstratives"]
ONE = FOLLOW_UP_WORDS["one"]
BEFORE_VERB = FOLLOW_UP_WORDS["before_verb"]
SUBJECT_PRONOUNS = FOLLOW_UP_WORDS["subject_pronouns"]
INTERROGATIVES = FOLLOW_UP_WORDS["interrogatives"]
AUXILIARIES = FOLLOW_UP_WORDS["auxiliaries"]
OBJECT_PRONOUNS = FOLLOW_UP_WORDS["object_pronouns"]
ARTICLES = FOLLOW_UP_WORDS["articles"]
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
FRAGMENT = re.compile(  # the beginning of a question that may continue the one before
    r"\s*(?:(?:and|but|or|so|also|what\s+about|how\s+about|in|on|with|without|for|from|at|by|"
    r"under|over|during|using|inside|outside|instead\s+of|after|before|between)\s+)+",
    re.IGNORECASE,
)
SENTENCE = re.compile(  # words that only a whole sentence has
    r"\b(?:what|which|who|whose|how|why|when|where|do|does|did|is|are|was|were|can|could|should|"
    r"would|will|must|may|might|has|have|had|explain|describe|define|show|tell)\b",
    re.IGNORECASE,
)
ENUMERATED = re.compile(  # "the second one", "the other", "the last two"
    r"\bthe\s+(?:other|others|two|three|latter|former|first|second|third|fourth|fifth|last|next|"
    r"previous)\b|^\W*(?:and\s+|so\s+|but\s+)?which\s+(?:is|are|was|were|should|do|does)\b",
    re.IGNORECASE,
)
