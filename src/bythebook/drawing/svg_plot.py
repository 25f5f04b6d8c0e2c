"""Build parts of an SVG plot from points in the unit square. The style sheet sets the colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from bythebook.drawing.markup import Markup, element, joined

WIDTH = 480.0
_HEIGHT = 320.0
LEFT, TOP = 62.0, 14.0
_RIGHT, _BOTTOM = 16.0, 46.0


class Axes:
    """Mapping from the unit square to picture coordinates; the y axis may end below 1."""

    def __init__(self, *, highest: float = 1.0, height: float = _HEIGHT) -> None:
        self.highest = highest
        self.height = height

    def x(self, value: float) -> float:
        return LEFT + value * (WIDTH - LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = min(value, self.highest) / self.highest
        return self.height - _BOTTOM - share * (self.height - TOP - _BOTTOM)


def picture(plane: Axes, title: str, parts: Iterable[Markup]) -> Markup:
    box = f"0 0 {WIDTH:g} {plane.height:g}"
    return element("svg", element("title", title), *parts, viewBox=box, role="img")


def axis(plane: Axes, name: str) -> list[Markup]:
    ground = plane.y(0)
    ticks = [
        label(f"{tick / 4:g}", plane.x(tick / 4), ground + 18, anchor="middle") for tick in range(5)
    ]
    line = element("line", x1=plane.x(0), y1=ground, x2=plane.x(1), y2=ground, class_="axis")
    middle = plane.x(0.5)
    return [line, *ticks, label(name, middle, plane.height - 8, anchor="middle", class_="name")]


def frame(plane: Axes, across: str, upwards: str) -> list[Markup]:
    parts = []
    for tick in range(1, 5):
        value = plane.highest * tick / 4
        y = plane.y(value)
        parts += [
            element("line", x1=plane.x(0), y1=y, x2=plane.x(1), y2=y, class_="grid"),
            label(f"{value:.3g}", LEFT - 8, y + 4, anchor="end"),
        ]
    middle = (plane.y(0) + plane.y(plane.highest)) / 2
    turned = element(
        "text",
        upwards,
        class_="name",
        text_anchor="middle",
        transform=f"translate(13 {middle:g}) rotate(-90)",
    )
    return [*parts, *axis(plane, across), turned]


def label(words: str, x: float, y: float, *, anchor: str, class_: str | None = None) -> Markup:
    return element("text", words, x=x, y=y, text_anchor=anchor, class_=class_)


def line(plane: Axes, corners: Sequence[tuple[float, float]]) -> str:
    x, y = corners[0]
    path = [f"M{plane.x(x):.1f} {plane.y(y):.1f}"]
    for _, (x, y) in pairwise(corners):
        path.append(f"L{plane.x(x):.1f} {plane.y(y):.1f}")
    return joined(*path)


def area(plane: Axes, corners: Sequence[tuple[float, float]]) -> str:
    ground = plane.y(0)
    return (
        f"{line(plane, corners)}L{plane.x(corners[-1][0]):.1f} {ground:.1f}"
        f"L{plane.x(corners[0][0]):.1f} {ground:.1f}Z"
    )


def round_up(value: float) -> float:
    """Return the next of a few round numbers, with some space above the value."""
    steps = (0.02, 0.04, 0.08, 0.2, 0.4, 0.6, 0.8, 1.0)
    return next((step for step in steps if value * 1.1 <= step), 1.0)


def bars(
    plane: Axes, heights: Sequence[float], *, class_: str, ground: Sequence[float] = ()
) -> list[Markup]:
    """Return adjacent bars of equal width; ``ground`` gives their base values (for stacking)."""
    made = []
    for place, height in enumerate(heights):
        foot = ground[place] if ground else 0.0
        top = plane.y(foot + height)
        made.append(
            element(
                "rect",
                x=plane.x(place / len(heights)) + 1,
                y=top,
                width=max(plane.x(1 / len(heights)) - plane.x(0) - 2, 0.5),
                height=plane.y(foot) - top,
                class_=class_,
            )
        )
    return made
