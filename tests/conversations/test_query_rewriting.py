"""Follow-ups get the earlier questions as context; self-contained questions do not."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.conversations.query_rewriting import interpret
from bythebook.language.tokens import estimate_tokens
from bythebook.retrieval.question_analysis import QUESTION_TOKENS
from bythebook.types import Message, Question, Role

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _history(*questions: str) -> list[Message]:
    return [
        message
        for question in questions
        for message in (
            Message(Role.USER, question, _NOW),
            Message(Role.ASSISTANT, "So it is. [1]", _NOW, 0.9),
        )
    ]


# What was asked, and what is asked now and means nothing without it.
_LEANING = [
    ("What is a topic?", "And how do I create one?"),
    ("What is a topic?", "what about its limits?"),
    ("What is a topic?", "Why?"),
    ("What is a topic?", "show me an example"),
    ("What is a topic?", "Can you give an example?"),
    ("What is a topic?", "How does it work?"),
    ("What is a topic?", "What is it used for?"),
    ("What is a topic?", "When should I use one?"),
    ("What is a topic?", "How do I list them?"),
    ("What is a topic?", "Tell me more"),
    ("What is a topic?", "What are the limitations?"),
    ("What is a topic?", "Is it fast?"),
    ("What is a topic?", "Can it lose messages?"),
    ("What is a topic?", "What does that mean?"),
    ("What is a topic?", "Why is this important?"),
    ("What are quality of service profiles?", "Which one is the default?"),
    ("What is URDF?", "How do I validate it?"),
    ("What is URDF?", "What are the alternatives?"),
    ("What is a digital twin?", "Why would I want one?"),
    ("What is domain randomisation?", "Does it always help?"),
    ("What is SLAM?", "What are its main steps?"),
    ("What is loop closure?", "How is that detected?"),
    ("Explain behaviour cloning", "what are the drawbacks"),
    ("Define sim-to-real gap.", "How do I measure it?"),
    ("What's an action server?", "How do I write one in C++?"),
    ("Tell me about lifecycle nodes", "When were they introduced?"),
    ("How do I create a topic?", "And how do I delete it?"),
    ("How do I create a topic?", "Why?"),
    ("How can I calibrate a camera?", "How often should I do that?"),
    ("How do nodes find each other?", "Can they do so over a network?"),
    ("Why does a kite need a tail?", "How long should it be?"),
    ("Which sensors does the robot have?", "How accurate are they?"),
    ("Who invented the kettle?", "When did this happen?"),
    ("What is photosynthesis?", "Where does it take place?"),
    ("What is a hash map?", "what about its complexity?"),
    ("How does garbage collection work?", "Can I turn it off?"),
    ("What is a monad?", "Give me a simpler example please"),
    ("What is a kettle?", "Who made this?"),
    ("What is a kettle?", "Which ones are best?"),
    ("What is a kettle?", "How hot does it get?"),
    ("What is a monad?", "More details please"),
    ("What is a monad?", "but why?"),
    ("What is a monad?", "how so?"),
    ("What is inflation?", "What causes it?"),
    ("What is a costmap?", "what layers does it have?"),
    ("What is a costmap?", "is that always so?"),
    ("What is a fallback?", "which is cheaper?"),
    ("How do I choose a step?", "whats the default?"),
    ("How do I assess a risk?", "what is the third step?"),
    ("What is AMCL? And the EKF?", "which of the two should I use?"),
    ("What is a bridge?", "which topic should it connect first?"),
]

# Fragments, and references to an enumeration: they may or may not continue what was asked.
_UNCLEAR = [
    "And in Python?",
    "and recall?",
    "in C++?",
    "What about services?",
    "and what about false reports?",
    "And without Haskell?",
    "and if the objects vary?",
    "when does the second one appear?",
    "what is the third argument for?",
    "Which is the default engine?",
]

# What was asked before does not matter to these.
_STANDING = [
    "How does a camera measure depth?",
    "What is a topic?",
    "And how does a camera measure depth?",
    "So what is a kettle?",
    "But when does a kettle boil?",
    "What is a topic and how do I create one?",
    "How does a robot know where it is?",
    "How do nodes find their peers?",
    "How long does it take to build a kite?",
    "Is it possible to run Gazebo without a GPU?",
    "Is it safe to touch a hot kettle?",
    "What does it mean when the robot stops?",
    "What does this book say about kites?",
    "Which robots are described in this chapter?",
    "Name a sensor that measures distance.",
    "Is a robot that flies called a drone?",
    "How does one create a topic?",
    "Which message type has at least one field?",
    "Name one of the planners.",
    "What are the limits of ripstop nylon?",
    "Show me an example of a launch file",
    "What are the advantages of quaternions?",
    "Why do wheels slip?",
    "How many degrees of freedom does the arm have?",
    "And when do I use an action?",
    "loop closure",
    "In which frame should a controller work?",
    "For which tasks is a GPU needed?",
    "ok thanks. what is a lifecycle node?",
    "Are robots that fly called drones?",
    "Do robots that walk fall over?",
    "Wie funktioniert ein Roboter?",
    "¿Qué es un tema?",
    "ROS 2 ٹاپک کیا ہے؟",
    "什么是话题？",
]


@pytest.mark.parametrize(("before", "now"), _LEANING)
def test_a_follow_up_gets_the_question_it_depends_on(before: str, now: str) -> None:
    [asked] = interpret(Question(now), _history(before))
    assert asked.text == now
    assert asked.context.rstrip("?") == before.rstrip("?")


@pytest.mark.parametrize("now", _UNCLEAR)
def test_an_unclear_question_is_interpreted_both_ways(now: str) -> None:
    with_context, alone = interpret(Question(now), _history("What is a topic?"))
    assert with_context == Question(now, context="What is a topic?")
    assert alone == Question(now)


@pytest.mark.parametrize("text", _STANDING)
@pytest.mark.parametrize("before", ["What is a monad?", "Is a monad like a burrito?"])
def test_a_self_contained_question_is_unchanged(text: str, before: str) -> None:
    question = Question(text)
    assert interpret(question, _history(before)) == (question,)


def test_chains_of_follow_ups_begin_with_the_last_question_that_stands_alone() -> None:
    history = _history("What is URDF?", "What is a topic?", "And how do I create one?", "Why?")
    [asked] = interpret(Question("How do I delete it?"), history)
    assert asked.context == "What is a topic? Why?"
    history = _history("How do I install it on Ubuntu?", "what about windows")
    asked, _ = interpret(Question("and on a mac?"), history)
    assert asked.context == "How do I install it on Ubuntu? what about windows?"


def test_a_pronoun_refers_to_the_selection() -> None:
    question = Question("What does this mean?", selection="A kite flies.")
    assert interpret(question, _history("What is a topic?")) == (question,)


def test_the_first_question_is_unchanged() -> None:
    question = Question("And what about it?")
    assert interpret(question, ()) == (question,)


_NOUNS = st.sampled_from(
    ["kettle", "quaternion", "launch file", "wheel odometry", "transform tree", "LiDAR", "gripper"]
)
_FORMS = st.sampled_from(
    [
        "What is a {0}?",
        "How does the {0} help the {1}?",
        "Why is a {0} better than a {1}?",
        "and how do I connect a {0} to the {1}?",
        "Explain the {0} and how it works",
        "When does the {0} stop, and why does it?",
        "Can I replace the {0} of a {1} if it breaks?",
    ]
)


@given(form=_FORMS, nouns=st.tuples(_NOUNS, _NOUNS), before=st.text(max_size=60))
def test_a_question_with_nouns_of_its_own_is_unchanged(
    form: str, nouns: tuple[str, str], before: str
) -> None:
    question = Question(form.format(*nouns))
    assert interpret(question, _history(before)) == (question,)


@given(now=st.text(max_size=60), before=st.lists(st.text(max_size=60), max_size=4))
def test_any_text_can_follow_any_history(now: str, before: list[str]) -> None:
    for asked in interpret(Question(now), _history(*before)):
        assert asked.text == now
        borrowed = set(asked.context.replace("?", " ").split())
        assert borrowed <= {word for text in before for word in text.replace("?", " ").split()}


def test_a_question_about_a_selection_gets_its_topic() -> None:
    selection = "A kite flies by lift. The wind pushes it upwards."
    leading = Question("What does this mean?", selection=selection, selection_only=False)
    [asked] = interpret(leading, _history("What is a kettle?"))
    assert asked.context == "A kite flies by lift."


def test_a_selection_only_question_is_unchanged() -> None:
    selection_only = Question("What does this mean?", selection="A kite flies by lift.")
    assert interpret(selection_only, ()) == (selection_only,)


@pytest.mark.parametrize("huge", ["topic " * 20_000, "x" * 120_000, "it? " * 30_000, "水" * 40_000])
def test_only_the_beginning_of_very_long_texts_is_used(huge: str) -> None:
    [alone] = interpret(Question(huge), [])
    assert huge.startswith(alone.text)
    assert estimate_tokens(alone.text) <= QUESTION_TOKENS
    for question, history in (
        (Question("Why does it?"), _history(*[huge] * 5)),
        (Question(huge), _history(huge)),
        (Question("Why does it?", selection=huge, selection_only=False), []),
    ):
        for asked in interpret(question, history):
            assert estimate_tokens(f"{asked.context} {asked.text}") <= 3 * QUESTION_TOKENS
            assert asked.selection == question.selection
