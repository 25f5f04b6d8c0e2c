"""Curves, bins and values in, inline SVG out. Colours are the style sheet's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from bythebook.evaluate.markup import Markup, element, joined
from bythebook.evaluate.stats import Bin, CurvePoint

_WIDTH, _HEIGHT = 480.0, 320.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 16.0, 14.0, 46.0
_BARS = 20
_TOO_FEW = 0.05  # of the questions: what is wrong of a handful jumps up and down


class _Plane:
    """The unit square's place on the picture; the ordinate may stop below 1."""

    def __init__(self, *, highest: float = 1.0, height: float = _HEIGHT) -> None:
        self.highest = highest
        self.height = height

    def x(self, value: float) -> float:
        return _LEFT + value * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = min(value, self.highest) / self.highest
        return self.height - _BOTTOM - share * (self.height - _TOP - _BOTTOM)


def risk_coverage(
    curve: Sequence[CurvePoint], here: tuple[float, float] | None, *, floor: float
) -> Markup:
    """How much is wrong of what is answered, the surest first; a point where the floor stands."""
    corners = [(point.coverage, point.risk) for point in curve if point.coverage >= _TOO_FEW]
    corners = corners or [(point.coverage, point.risk) for point in curve]
    highest = max(risk for _, risk in [*corners, *([here] if here else [])])
    plane = _Plane(highest=_round_up(highest))
    parts = [
        *_frame(plane, "share of questions answered", "share of answers wrong"),
        element("path", d=_area(plane, corners), class_="area"),
        element("path", d=_line(plane, corners), class_="curve"),
    ]
    if here:
        x, y = plane.x(here[0]), plane.y(here[1])
        left = here[0] > 0.6
        parts += [
            element("line", x1=x, y1=plane.y(0), x2=x, y2=y, class_="drop"),
            element("circle", cx=x, cy=y, r=5.0, class_="here"),
            _label(
                f"floor {floor:g}: {here[1]:.1%} wrong",
                x + (-10 if left else 10),
                max(y - 10, _TOP + 10),
                anchor="end" if left else "start",
                class_="strong",
            ),
        ]
    return _picture(plane, "Risk–coverage curve", parts)


def reliability(bins: Sequence[Bin]) -> Markup:
    """What was said against what was; the wider the dot, the more questions."""
    plane = _Plane()
    most = max((each.count for each in bins), default=1)
    parts = [
        *_frame(plane, "confidence", "share of answers right"),
        element("line", x1=plane.x(0), y1=plane.y(0), x2=plane.x(1), y2=plane.y(1), class_="ideal"),
        _label("as sure as right", plane.x(0.3) - 6, plane.y(0.3) - 8, anchor="end"),
    ]
    for each in bins:
        x = plane.x(each.confidence)
        ends = (plane.y(each.confidence), plane.y(each.right))
        radius = 3 + 7 * (each.count / most) ** 0.5
        about = (
            f"{each.low:.1f} to {each.high:.1f}: said {each.confidence:.2f}, "
            f"was {each.right:.2f}, {each.count} questions"
        )
        parts += [
            element("line", x1=x, y1=ends[0], x2=x, y2=ends[1], class_="gap"),
            element("circle", element("title", about), cx=x, cy=ends[1], r=radius, class_="dot"),
        ]
    return _picture(plane, "Reliability diagram", parts)


def histogram(confidences: Sequence[float], *, floor: float, answerable: bool) -> Markup:
    """How many questions had how much confidence; those below the floor are refused."""
    plane = _Plane(height=150.0)
    counts = [0] * _BARS
    for confidence in confidences:
        counts[min(int(confidence * _BARS), _BARS - 1)] += 1
    most = max(counts)
    sort = "answerable" if answerable else "unanswerable"
    parts = [*_axis(plane, "confidence")]
    for place, count in enumerate(counts):
        top = plane.y(count / most)
        parts.append(
            element(
                "rect",
                x=plane.x(place / _BARS) + 1,
                y=top,
                width=plane.x(1 / _BARS) - plane.x(0) - 2,
                height=plane.y(0) - top,
                class_=f"bar {sort}",
            )
        )
    x = plane.x(floor)
    parts += [
        element("line", x1=x, y1=_TOP, x2=x, y2=plane.y(0), class_="drop"),
        _label(f"floor {floor:g}", x, _TOP - 4, anchor="middle"),
        _label(str(most), _LEFT - 8, plane.y(1) + 4, anchor="end"),
        _label("0", _LEFT - 8, plane.y(0) + 4, anchor="end"),
    ]
    return _picture(plane, f"Confidence of {len(confidences)} {sort} questions", parts)


# --- pieces --------------------------------------------------------------------------------------


def _picture(plane: _Plane, title: str, parts: Iterable[Markup]) -> Markup:
    box = f"0 0 {_WIDTH:g} {plane.height:g}"
    return element("svg", element("title", title), *parts, viewBox=box, role="img")


def _axis(plane: _Plane, name: str) -> list[Markup]:
    ground = plane.y(0)
    ticks = [
        _label(f"{tick / 4:g}", plane.x(tick / 4), ground + 18, anchor="middle")
        for tick in range(5)
    ]
    line = element("line", x1=plane.x(0), y1=ground, x2=plane.x(1), y2=ground, class_="axis")
    middle = plane.x(0.5)
    return [line, *ticks, _label(name, middle, plane.height - 8, anchor="middle", class_="name")]


def _frame(plane: _Plane, across: str, upwards: str) -> list[Markup]:
    parts = []
    for tick in range(1, 5):
        value = plane.highest * tick / 4
        y = plane.y(value)
        parts += [
            element("line", x1=plane.x(0), y1=y, x2=plane.x(1), y2=y, class_="grid"),
            _label(f"{value:.3g}", _LEFT - 8, y + 4, anchor="end"),
        ]
    middle = (plane.y(0) + plane.y(plane.highest)) / 2
    turned = element(
        "text",
        upwards,
        class_="name",
        text_anchor="middle",
        transform=f"translate(13 {middle:g}) rotate(-90)",
    )
    return [*parts, *_axis(plane, across), turned]


def _label(words: str, x: float, y: float, *, anchor: str, class_: str | None = None) -> Markup:
    return element("text", words, x=x, y=y, text_anchor=anchor, class_=class_)


def _line(plane: _Plane, corners: Sequence[tuple[float, float]]) -> str:
    x, y = corners[0]
    path = [f"M{plane.x(x):.1f} {plane.y(y):.1f}"]
    for _, (x, y) in pairwise(corners):
        path.append(f"L{plane.x(x):.1f} {plane.y(y):.1f}")
    return joined(*path)


def _area(plane: _Plane, corners: Sequence[tuple[float, float]]) -> str:
    ground = plane.y(0)
    return (
        f"{_line(plane, corners)}L{plane.x(corners[-1][0]):.1f} {ground:.1f}"
        f"L{plane.x(corners[0][0]):.1f} {ground:.1f}Z"
    )


def _round_up(value: float) -> float:
    """The next of a few round numbers, with some air above."""
    steps = (0.02, 0.04, 0.08, 0.2, 0.4, 0.6, 0.8, 1.0)
    return next((step for step in steps if value * 1.1 <= step), 1.0)
