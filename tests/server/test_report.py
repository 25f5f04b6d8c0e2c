"""Questions become topics by their vectors, the same ones every time."""

from datetime import UTC, datetime

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.interfaces.conversations import Unanswered
from bythebook.providers.testing import FakeEmbedder
from bythebook.server.report import background, cluster, topics_of

_NOW = datetime(2026, 1, 2, tzinfo=UTC)


def _asked(text: str, refused: int = 1, unsure: int = 0) -> Unanswered:
    return Unanswered(text, refused, unsure, _NOW)


async def _topics(*questions: Unanswered) -> list[tuple[str, list[str]]]:
    vectors = await FakeEmbedder().embed([one.text for one in questions], role="query")
    found = topics_of(questions, vectors, apart=0.1, languages=["en"])
    return [(topic.label, [one.text for one in topic.questions]) for topic in found]


async def test_similar_questions_form_one_topic_labelled_by_shared_words() -> None:
    found = await _topics(
        _asked("price of a sailing kite", 3),
        _asked("kite sailing price"),
        _asked("how does a volcano erupt?"),
    )
    assert found == [
        ("kite · price · sailing", ["price of a sailing kite", "kite sailing price"]),
        ("how does a volcano erupt?", ["how does a volcano erupt?"]),
    ]


async def test_largest_topic_comes_first() -> None:
    found = await _topics(_asked("volcano"), _asked("harmonica", refused=0, unsure=5))
    assert [label for label, _ in found] == ["harmonica", "volcano"]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.floats(0.1, 0.99), st.integers(0, 1000))
def test_topics_partition_the_questions_deterministically(
    count: int, near: float, seed: int
) -> None:
    made = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)
    vectors = made / np.linalg.norm(made, axis=1, keepdims=True)
    weights = np.ones(count, dtype=np.float32)
    groups = cluster(vectors, weights, near=near)
    assert sorted(row for group in groups for row in group) == list(range(count))
    assert groups == cluster(vectors, weights, near=near)


def test_identical_questions_form_one_topic_at_any_threshold() -> None:
    vectors = np.eye(3, dtype=np.float32)[[0, 1, 0, 2, 1]]
    groups = cluster(vectors, np.ones(5, dtype=np.float32), near=0.99)
    assert groups == [[0, 2], [1, 4], [3]]


def test_threshold_adapts_to_the_similarity_of_page_titles() -> None:
    apart = np.eye(6, dtype=np.float32)
    alike = apart + 1.0
    alike /= np.linalg.norm(alike, axis=1, keepdims=True)
    assert background(apart) == 0.0
    assert background(alike) > 0.8
    assert background(apart[:2]) == 0.0
