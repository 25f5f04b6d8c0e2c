"""The extractive writer."""

from dataclasses import replace

from bythebook.answering.extractive import ExtractiveWriter
from bythebook.language.terms import Vocabulary
from bythebook.retrieval.echo_filter import adds_information
from bythebook.retrieval.question_analysis import analyze
from bythebook.types import Evidence, Question
from tests.support.samples import evidence


def _write(question: str, found: Evidence) -> str:
    hits = tuple(
        replace(hit, unit_informative=adds_information(question, hit.passage)) for hit in found.hits
    )
    asked = analyze(Question(question), Vocabulary.of([hit.passage for hit in hits]))
    quotes = ExtractiveWriter().extract(asked, replace(found, hits=hits))
    return "".join(f"{q.lead}{q.text} [{hits.index(q.hit) + 1}]" for q in quotes)


def test_quotes_are_parts_of_their_passages() -> None:
    found = evidence("Info\n\n- Cut two sticks. Use spruce.\n- Tie them.\n\n```sh\nfly kite\n```")
    asked = analyze(Question("How do I fly a kite?"), Vocabulary())
    quotes = list(ExtractiveWriter().extract(asked, found))
    assert [q.text for q in quotes][:2] == ["- Cut two sticks.", "Use spruce."]
    assert all(q.quote in q.hit.passage.text for q in quotes)


def test_extracts_the_sentence_that_answers() -> None:
    found = evidence("Its lid is red. A kite flies in the wind.", "A kettle boils water.")
    assert _write("Where does a kite fly?", found) == "A kite flies in the wind. [1]"


def test_adds_the_antecedent_of_a_pronoun() -> None:
    found = evidence("The bimetal strip bends when hot. It switches the kettle off.")
    text = _write("What switches the kettle off?", found)
    assert text.startswith("The bimetal strip bends when hot. [1]")
    assert "It switches the kettle off. [1]" in text


def test_prefers_informative_sentences_to_echoes() -> None:
    found = evidence("What does a kite fly in? In the wind.", "The book does not say how it flies.")
    assert _write("What does a kite fly in?", found) == "In the wind. [1]"


def test_shows_all_steps_of_a_procedure() -> None:
    found = evidence("To build a kite:\n\n1. Cut two sticks.\n2. Tie them.\n3. Stretch paper.")
    text = _write("How do I build a kite?", found)
    assert "1. Cut two sticks. [1]" in text
    assert "3. Stretch paper. [1]" in text


def test_shows_code_only_if_asked_for() -> None:
    found = evidence("Run the kite node like this.\n\n```bash\nros2 run kite fly\n```")
    assert "ros2 run kite fly" in _write("Show me the command to run the kite node", found)
    assert "```" not in _write("What is the kite node?", found)


def test_extracts_nothing_without_evidence() -> None:
    assert _write("anything", Evidence()) == ""


def test_keeps_code_between_steps_but_not_its_label() -> None:
    text = "To fly:\n\n1. Start the tool:\n\nTerminal\n\n```sh\nfly\n```\n\n2. Let go of the kite."
    shown = _write("How do I fly a kite?", evidence(text))
    assert shown.index("1. Start the tool:") < shown.index("fly\n```") < shown.index("2. Let go")
    assert "Terminal" not in shown


def test_shows_a_whole_list_only_of_the_best_hit() -> None:
    exercises = "- Look at a kite.\n- Sing a song.\n- Dance."
    found = evidence("To build a kite:\n\n1. Cut sticks.\n2. Build the kite.", exercises)
    assert "Dance" not in _write("How do I build a kite?", found)


def test_always_quotes_the_best_hit() -> None:
    found = evidence("It rises on warm air.", *["A balloon is a balloon balloon."] * 3)
    assert "It rises on warm air. [1]" in _write("Where is the balloon?", found)


def test_shows_a_table_row_with_its_header() -> None:
    found = evidence("| cloth | weight |\n|---|---|\n| nylon | 40 grams |\n| paper | 60 grams |")
    assert _write("What is the weight of paper?", found) == (
        "cloth | weight [1]\npaper | 60 grams [1]"
    )


def test_avoids_exercises() -> None:
    found = evidence("Explain why a kite flies.", "The wind lifts a kite, so it flies.")
    task = found.hits[0]
    place = replace(task.passage.place, section=("Exercises",))
    task = replace(task, passage=replace(task.passage, place=place))
    found = replace(found, hits=(found.hits[1], task))
    assert "Explain" not in _write("Explain why a kite flies", found)
