"""What a question compares."""

import pytest

from bythebook.language.english.comparisons import compared


@pytest.mark.parametrize(
    ("question", "sides"),
    [
        ("What is the difference between a topic and a service?", ("topic", "service")),
        ("How does a service differ from an action?", ("service", "action")),
        ("How is SDF different from URDF?", ("SDF", "URDF")),
        ("urdf vs sdf, whats the difference?", ("urdf", "sdf")),
        ("Compare lidar and depth cameras", ("lidar", "depth cameras")),
        ("ODE vs Bullet vs DART, which engine should I take?", ("ODE", "Bullet", "DART")),
        ("kalman filter or particle filter, which one?", ("kalman filter", "particle filter")),
        ("maximal versus generalised coordinates", ("maximal", "generalised coordinates")),
    ],
)
def test_the_sides_of_a_comparison_are_found(question: str, sides: tuple[str, ...]) -> None:
    assert compared(question) == sides


@pytest.mark.parametrize(
    "question",
    [
        "What is a node?",
        "Do I use a topic or a service here",
        "should I measure a parameter of my robot or rather randomise it? when which?",
        "What is the relation between it and that?",
        "",
    ],
)
def test_other_questions_compare_nothing(question: str) -> None:
    assert compared(question) == ()
