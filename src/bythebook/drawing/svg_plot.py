"""Build parts of an SVG plot from points in the unit square. The style sheet sets the colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bythebook.drawing.markup import Markup, element

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


def picture(axes: Axes, title: str, parts: Iterable[Markup]) -> Markup:
    box = f"0 0 {WIDTH:g} {axes.height:g}"
    return element("svg", element("title", title), *parts, viewBox=box, role="img")


def axis(axes: Axes, name: str) -> list[Markup]:
    ground = axes.y(0)
    ticks = [
        label(f"{tick / 4:g}", axes.x(tick / 4), ground + 18, anchor="middle") for tick in range(5)
    ]
    line = element("line", x1=axes.x(0), y1=ground, x2=axes.x(1), y2=ground, class_="axis")
    middle = axes.x(0.5)
    return [line, *ticks, label(name, middle, axes.height - 8, anchor="middle", class_="name")]


def frame(axes: Axes, across: str, upwards: str) -> list[Markup]:
    parts = []
    for tick in range(1, 5):
        value = axes.highest * tick / 4
        y = axes.y(value)
        parts += [
            element("line", x1=axes.x(0), y1=y, x2=axes.x(1), y2=y, class_="grid"),
            label(f"{value:.3g}", LEFT - 8, y + 4, anchor="end"),
        ]
    middle = (axes.y(0) + axes.y(axes.highest)) / 2
    turned = element(
        "text",
        upwards,
        class_="name",
        text_anchor="middle",
        transform=f"translate(13 {middle:g}) rotate(-90)",
    )
    return [*parts, *axis(axes, across), turned]


def label(content: str, x: float, y: float, *, anchor: str, class_: str | None = None) -> Markup:
    return element("text", content, x=x, y=y, text_anchor=anchor, class_=class_)


def line(axes: Axes, corners: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{axes.x(x):.1f} {axes.y(y):.1f}" for x, y in corners)


def area(axes: Axes, corners: Sequence[tuple[float, float]]) -> str:
    ground = axes.y(0)
    return (
        f"{line(axes, corners)}L{axes.x(corners[-1][0]):.1f} {ground:.1f}"
        f"L{axes.x(corners[0][0]):.1f} {ground:.1f}Z"
    )


def round_up(value: float) -> float:
    """Return the next of a few round numbers, with some space above the value."""
    steps = (0.02, 0.04, 0.08, 0.2, 0.4, 0.6, 0.8, 1.0)
    return next((step for step in steps if value * 1.1 <= step), 1.0)


def bars(
    axes: Axes, heights: Sequence[float], *, class_: str, ground: Sequence[float] = ()
) -> list[Markup]:
    """Return adjacent bars of equal width; ``ground`` gives their base values (for stacking)."""
    bases = ground or [0.0] * len(heights)
    width = max(axes.x(1 / len(heights)) - axes.x(0) - 2, 0.5) if heights else 0.0
    return [
        element(
            "rect",
            x=axes.x(index / len(heights)) + 1,
            y=axes.y(base + height),
            width=width,
            height=axes.y(base) - axes.y(base + height),
            class_=class_,
        )
        for index, (base, height) in enumerate(zip(bases, heights, strict=True))
    ]
