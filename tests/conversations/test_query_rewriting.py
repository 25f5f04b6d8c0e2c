"""Follow-ups are rewritten; self-contained questions are not."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.conversations.query_rewriting import rewrite_follow_up
from bythebook.language.terms import terms_of
from bythebook.language.tokens import estimate_tokens
from bythebook.retrieval.question_analysis import QUESTION_TOKENS
from bythebook.types import Citation, Message, Place, Question, Role

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_PLACE = Place("a.md", "Cameras", "/a", "m", "c", ("Depth cameras",))
_CITATION = Citation(1, "f" * 64, _PLACE, "quote", "/a", "/a", 0.9)


def _history(*questions: str, cited: bool = False) -> list[Message]:
    citations = (_CITATION,) if cited else ()
    return [
        message
        for question in questions
        for message in (
            Message(Role.USER, question, _NOW),
            Message(Role.ASSISTANT, "So it is. [1]", _NOW, 0.9, citations),
        )
    ]


# What was asked, what is asked now, and the terms that the search must get on top.
_LEANING = [
    ("What is a topic?", "And how do I create one?", "topic"),
    ("What is a topic?", "what about its limits?", "topic"),
    ("What is a topic?", "Why?", "topic"),
    ("What is a topic?", "show me an example", "topic"),
    ("What is a topic?", "Can you give an example?", "topic"),
    ("What is a topic?", "How does it work?", "topic"),
    ("What is a topic?", "What is it used for?", "topic"),
    ("What is a topic?", "When should I use one?", "topic"),
    ("What is a topic?", "How do I list them?", "topic"),
    ("What is a topic?", "Tell me more", "topic"),
    ("What is a topic?", "What are the limitations?", "topic"),
    ("What is a topic?", "Is it fast?", "topic"),
    ("What is a topic?", "Can it lose messages?", "topic"),
    ("What is a topic?", "What does that mean?", "topic"),
    ("What is a topic?", "Why is this important?", "topic"),
    ("What is a topic?", "And in Python?", "topic"),
    (
        "What are quality of service profiles?",
        "Which one is the default?",
        "quality service profile",
    ),
    ("What is URDF?", "How do I validate it?", "urdf"),
    ("What is URDF?", "What are the alternatives?", "urdf"),
    ("What is a digital twin?", "Why would I want one?", "digital twin"),
    ("What is domain randomisation?", "Does it always help?", "domain randomisation"),
    ("What is SLAM?", "What are its main steps?", "slam"),
    ("What is loop closure?", "How is that detected?", "loop closure"),
    ("Explain behaviour cloning", "what are the drawbacks", "behaviour cloning"),
    ("Define sim-to-real gap.", "How do I measure it?", "sim-to-real gap"),
    ("What's an action server?", "How do I write one in C++?", "action server"),
    ("Tell me about lifecycle nodes", "When were they introduced?", "lifecycle nodes"),
    ("How do I create a topic?", "And how do I delete it?", "topic"),
    ("How do I create a topic?", "And in C++?", "create topic"),
    ("How do I create a topic?", "What about services?", "create"),
    ("How do I create a topic?", "Why?", "create topic"),
    ("How can I calibrate a camera?", "How often should I do that?", "camera"),
    ("How do nodes find each other?", "Can they do so over a network?", "nodes find"),
    ("Why does a kite need a tail?", "How long should it be?", "kite need tail"),
    ("Which sensors does the robot have?", "How accurate are they?", "sensors robot"),
    ("Who invented the kettle?", "When did this happen?", "invented kettle"),
    ("What is photosynthesis?", "Where does it take place?", "photosynthesis"),
    ("What is a hash map?", "what about its complexity?", "hash map"),
    ("How does garbage collection work?", "Can I turn it off?", "garbage collection"),
    ("What is a monad?", "Give me a simpler example please", "monad"),
    ("What is a kettle?", "Who made this?", "kettle"),
    ("What is a kettle?", "Which ones are best?", "kettle"),
    ("What is a kettle?", "How hot does it get?", "kettle"),
    ("What is a monad?", "More details please", "monad"),
    ("What is a monad?", "but why?", "monad"),
    ("What is a monad?", "how so?", "monad"),
    ("What is a monad?", "And without Haskell?", "monad"),
    ("What is inflation?", "What causes it?", "inflation"),
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
    "What about kites?",
    "Are robots that fly called drones?",
    "Do robots that walk fall over?",
    "Wie funktioniert ein Roboter?",
    "¿Qué es un tema?",
    "ROS 2 ٹاپک کیا ہے؟",
    "什么是话题？",
]


@pytest.mark.parametrize(("before", "now", "wanted"), _LEANING)
def test_a_follow_up_gets_the_topic_it_depends_on(before: str, now: str, wanted: str) -> None:
    asked = rewrite_follow_up(Question(now), _history(before)).text
    borrowed = set(terms_of(asked)) - set(terms_of(now))
    assert borrowed == set(terms_of(wanted))


@pytest.mark.parametrize("text", _STANDING)
@pytest.mark.parametrize("before", ["What is a monad?", "Is a monad like a burrito?"])
def test_a_self_contained_question_is_unchanged(text: str, before: str) -> None:
    question = Question(text)
    assert rewrite_follow_up(question, _history(before)) == question


def test_rewriting_replaces_the_pronoun() -> None:
    asked = rewrite_follow_up(Question("And how do I create one?"), _history("What is a topic?"))
    assert asked.text == "And how do I create the topic?"


def test_chains_of_follow_ups_are_resolved() -> None:
    history = _history("What is a topic?", "And how do I create one?", "Why?")
    asked = rewrite_follow_up(Question("How do I delete it?"), history)
    assert "topic" in asked.text
    other = rewrite_follow_up(
        Question("How big is it?"), _history("What is a topic?", "What is URDF?")
    )
    assert "URDF" in other.text
    assert "topic" not in other.text


def test_what_about_keeps_the_verb_and_drops_the_old_topic() -> None:
    asked = rewrite_follow_up(
        Question("What about services?"), _history("How do I create a topic?")
    )
    assert asked.text == "What about services? create"


def test_the_cited_heading_is_the_topic_if_the_question_named_none() -> None:
    asked = rewrite_follow_up(Question("How do I use one?"), _history("What else?", cited=True))
    assert "Depth cameras" in asked.text


def test_a_pronoun_refers_to_the_selection() -> None:
    question = Question("What does this mean?", selection="A kite flies.")
    assert rewrite_follow_up(question, _history("What is a topic?")) == question


def test_the_first_question_is_unchanged() -> None:
    question = Question("And what about it?")
    assert rewrite_follow_up(question, ()) == question


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
    assert rewrite_follow_up(question, _history(before)) == question


@given(now=st.text(max_size=60), before=st.lists(st.text(max_size=60), max_size=4))
def test_any_text_can_follow_any_history(now: str, before: list[str]) -> None:
    asked = rewrite_follow_up(Question(now), _history(*before)).text
    borrowed = set(terms_of(asked)) - set(terms_of(now))
    assert borrowed <= {term for text in before for term in terms_of(text)} | set(terms_of("the"))


def test_a_question_about_a_selection_gets_its_topic() -> None:
    selection = "A kite flies by lift. The wind pushes it upwards."
    leading = Question("What does this mean?", selection=selection, selection_only=False)
    asked = rewrite_follow_up(leading, _history("What is a kettle?")).text
    assert "kite" in asked
    assert "kettle" not in asked


def test_a_selection_only_question_is_unchanged() -> None:
    selection_only = Question("What does this mean?", selection="A kite flies by lift.")
    assert rewrite_follow_up(selection_only, ()) == selection_only


@pytest.mark.parametrize("huge", ["topic " * 20_000, "x" * 120_000, "it? " * 30_000, "水" * 40_000])
def test_only_the_beginning_of_very_long_texts_is_used(huge: str) -> None:
    alone = rewrite_follow_up(Question(huge), [])
    assert huge.startswith(alone.text)
    assert estimate_tokens(alone.text) <= QUESTION_TOKENS
    for question, history in (
        (Question("Why does it?"), _history(*[huge] * 5)),
        (Question(huge), _history(huge)),
        (Question("Why does it?", selection=huge, selection_only=False), []),
    ):
        text = rewrite_follow_up(question, history).text
        assert estimate_tokens(text) <= 2 * QUESTION_TOKENS + 3
        assert rewrite_follow_up(question, history).selection == question.selection
