"""The extractive writer."""

from bythebook.answering.extractive import ExtractiveWriter
from bythebook.language.terms import Vocabulary
from bythebook.types import Evidence, Question
from tests.samples import evidence


async def _write(question: str, found: Evidence) -> str:
    writer = ExtractiveWriter(Vocabulary.of([hit.passage for hit in found.hits]))
    return "".join([piece async for piece in writer.write(Question(question), found, ())])


async def test_it_writes_the_sentence_that_answers() -> None:
    found = evidence("Its lid is red. A kite flies in the wind.", "A kettle boils water.")
    assert await _write("Where does a kite fly?", found) == "A kite flies in the wind. [1]"


async def test_a_sentence_that_leans_back_brings_what_it_leans_on() -> None:
    found = evidence("The bimetal strip bends when hot. It switches the kettle off.")
    text = await _write("What switches the kettle off?", found)
    assert text.startswith("The bimetal strip bends when hot. [1]")
    assert "It switches the kettle off. [1]" in text


async def test_an_echo_gives_way_to_what_says_more() -> None:
    found = evidence("What does a kite fly in? In the wind.", "The book does not say how it flies.")
    assert await _write("What does a kite fly in?", found) == "In the wind. [1]"


async def test_steps_come_as_the_whole_list() -> None:
    found = evidence("To build a kite:\n\n1. Cut two sticks.\n2. Tie them.\n3. Stretch paper.")
    text = await _write("How do I build a kite?", found)
    assert "1. Cut two sticks. [1]" in text
    assert "3. Stretch paper. [1]" in text


async def test_code_is_shown_when_it_is_asked_for() -> None:
    found = evidence("Run the kite node like this.\n\n```bash\nros2 run kite fly\n```")
    assert "ros2 run kite fly" in await _write("Show me the command to run the kite node", found)
    assert "```" not in await _write("What is the kite node?", found)


async def test_no_evidence_is_no_text() -> None:
    assert await _write("anything", Evidence()) == ""


async def test_code_between_steps_stays_with_them_and_labels_do_not() -> None:
    text = "To fly:\n\n1. Start the tool:\n\nTerminal\n\n```sh\nfly\n```\n\n2. Let go of the kite."
    shown = await _write("How do I fly a kite?", evidence(text))
    assert shown.index("1. Start the tool:") < shown.index("fly\n```") < shown.index("2. Let go")
    assert "Terminal" not in shown


async def test_only_the_best_place_gives_its_whole_list() -> None:
    exercises = "- Look at a kite.\n- Sing a song.\n- Dance."
    found = evidence("To build a kite:\n\n1. Cut sticks.\n2. Build the kite.", exercises)
    assert "Dance" not in await _write("How do I build a kite?", found)


async def test_the_best_passage_always_has_its_say() -> None:
    found = evidence("It rises on warm air.", *["A balloon is a balloon balloon."] * 3)
    assert "It rises on warm air. [1]" in await _write("Where is the balloon?", found)


async def test_a_row_comes_with_the_names_of_its_columns() -> None:
    found = evidence("| cloth | weight |\n|---|---|\n| nylon | 40 grams |\n| paper | 60 grams |")
    assert await _write("What is the weight of paper?", found) == (
        "cloth | weight [1]\npaper | 60 grams [1]"
    )


async def test_exercises_answer_nothing() -> None:
    from dataclasses import replace

    found = evidence("Explain why a kite flies.", "The wind lifts a kite, so it flies.")
    task = found.hits[0]
    place = replace(task.passage.place, section=("Exercises",))
    task = replace(task, passage=replace(task.passage, place=place))
    found = replace(found, hits=(found.hits[1], task))
    assert "Explain" not in await _write("Explain why a kite flies", found)
