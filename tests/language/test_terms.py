"""Terms and their weights."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.language.terms import Vocabulary, term_evidence, term_id, terms_of
from tests.support.samples import passage


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nodes publish messages", ["node", "publish", "messag"]),
        ("What is a node?", ["node"]),
        ("café Café CAFÉ", ["cafe"] * 3),
        ("spin_once", ["spin_onc", "spin"]),
        ("QoSProfile", ["qosprofil", "qo", "s", "profil"]),
        ("C++ and C#", ["c++", "c#"]),
        ("What's wrong? It doesnt work, don’t ask", ["wrong", "work", "ask"]),
        ("the robot's arm, type 't", ["robot", "arm", "type", "t"]),
        ("深層学習", ["深層", "層学", "学習"]),
        ("क्षत्रिय हिन्दी", ["क्षत्रिय", "हिन्दी"]),
        ("روبوٹ كتاب", ["روبوٹ", "کتاب"]),
    ],
)
def test_words_of_every_script_become_terms(text: str, expected: list[str]) -> None:
    assert terms_of(text) == expected


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("de", "Was sind die Bäume der Kinder?", "Der Baum des Kindes"),
        ("fr", "Les générations", "une génération"),
        ("es", "¿Cuáles son las canciones?", "la canción"),
        ("it", "le nazioni", "la nazione"),
        ("pt", "Quais são os livros?", "o livro"),
        ("nl", "de bomen", "het bomen"),
        ("ru", "Где находятся книги?", "находится книга"),
        ("ar", "الكتاب", "كتاب"),
        ("hi", "किताबें", "किताब"),
    ],
)
def test_inflected_words_share_a_stem(language: str, one: str, other: str) -> None:
    assert set(terms_of(one, language)) == set(terms_of(other, language))


@given(st.text(max_size=200), st.sampled_from(["en", "de", "ar", "hi", "ru", "ur", "zh", "", "xx"]))
def test_no_text_is_an_error(text: str, language: str) -> None:
    assert all(terms_of(text, language))


def test_question_is_tokenised_like_the_book() -> None:
    german = [passage(text, language="de") for text in ("Die Bäume wachsen.", "Ein Haus steht.")]
    asked = Vocabulary.of(german).ask("Wo ist ein Baum?")
    vocabulary = Vocabulary.of(german)
    assert term_evidence(asked, vocabulary.weigh(german[0]))[1] > 0.6
    assert term_evidence(asked, vocabulary.weigh(german[1]))[1] == 0


def test_question_is_tokenised_in_its_own_language() -> None:
    german, english = passage("Die Bäume wachsen.", language="de-AT"), passage("Trees are blooming")
    vocabulary = Vocabulary.of([german, german, english])
    assert vocabulary.languages == ("de", "en")
    for question, meant in (
        ("When do the trees bloom?", english),
        ("Wo ist ein Baum?", german),
    ):
        assert term_evidence(vocabulary.ask(question), vocabulary.weigh(meant))[1] > 0.6


def test_rare_languages_of_a_book_are_ignored_for_questions() -> None:
    passages = [passage("Trees")] * 40 + [passage("Arbres", language="fr")]
    assert Vocabulary.of(passages).languages == ("en",)


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    passages = [passage(f"robot number {n}", section="S") for n in range(9)] + [passage("kite")]
    vocabulary = Vocabulary.of(passages)
    assert vocabulary.idf(term_id("kite")) > vocabulary.idf(term_id("robot")) > 0


def test_a_heading_counts_as_well_as_the_text() -> None:
    vocabulary = Vocabulary.of([passage("a text", section="Kites"), passage("another")])
    assert term_id("kite") in vocabulary.weigh(passage("a text", section="Kites"))


def test_term_evidence_is_a_share_of_the_question_terms() -> None:
    vocabulary = Vocabulary.of([passage("kite wind"), passage("kettle")])
    weights = vocabulary.weigh(passage("kite wind"))
    full = term_evidence(vocabulary.ask("kite wind"), weights)
    half = term_evidence(vocabulary.ask("kite zeppelin"), weights)
    assert full[1] == 1
    assert 0 < half[1] < full[1]
    assert 0 < half[0] < full[0] <= 1
    assert term_evidence({}, weights) == (0.0, 0.0)


def test_vocabulary_round_trips_through_bytes() -> None:
    vocabulary = Vocabulary.of([passage("kite wind"), passage("Kessel", language="de")])
    assert Vocabulary.from_bytes(vocabulary.to_bytes()) == vocabulary
