"""Draw curves, bins and histograms as inline SVG. The style sheet sets the colours."""

from __future__ import annotations

from collections.abc import Sequence

from bythebook.drawing.markup import Markup, element
from bythebook.drawing.svg_plot import (
    LEFT,
    TOP,
    Axes,
    area,
    axis,
    bars,
    frame,
    label,
    line,
    picture,
    round_up,
)
from bythebook.evaluation.stats import Bin, CurvePoint

_BARS = 20
_TOO_FEW = 0.05  # share of the questions: the risk of very few answers is noise


def risk_coverage(
    curve: Sequence[CurvePoint], here: tuple[float, float] | None, *, min_score: float
) -> Markup:
    """Plot the share of wrong answers by coverage, with a point at the minimum score."""
    corners = [(point.coverage, point.risk) for point in curve if point.coverage >= _TOO_FEW]
    corners = corners or [(point.coverage, point.risk) for point in curve]
    highest = max(risk for _, risk in [*corners, *([here] if here else [])])
    axes = Axes(highest=round_up(highest))
    parts = [
        *frame(axes, "share of questions answered", "share of answers wrong"),
        element("path", d=area(axes, corners), class_="area"),
        element("path", d=line(axes, corners), class_="curve"),
    ]
    if here:
        x, y = axes.x(here[0]), axes.y(here[1])
        left = here[0] > 0.5
        parts += [
            element("line", x1=x, y1=axes.y(0), x2=x, y2=y, class_="drop"),
            element("circle", cx=x, cy=y, r=5.0, class_="here"),
            label(
                f"minimum score {min_score:g}: {here[1]:.1%} wrong",
                x + (-10 if left else 10),
                max(y - 10, TOP + 10),
                anchor="end" if left else "start",
                class_="strong",
            ),
        ]
    return picture(axes, "Risk–coverage curve", parts)


def reliability(
    bins: Sequence[Bin], title: str, *, across: str, upwards: str, counted: str
) -> Markup:
    """Plot the share that is right against the predicted one; a dot shows its number of cases."""
    axes = Axes()
    most = max((each.count for each in bins), default=1)
    parts = [
        *frame(axes, across, upwards),
        element("line", x1=axes.x(0), y1=axes.y(0), x2=axes.x(1), y2=axes.y(1), class_="ideal"),
        label("ideal", axes.x(0.3) - 6, axes.y(0.3) - 8, anchor="end"),
    ]
    for each in bins:
        x = axes.x(each.confidence)
        ends = (axes.y(each.confidence), axes.y(each.right))
        radius = 3 + 7 * (each.count / most) ** 0.5
        about = (
            f"{each.low:.1f} to {each.high:.1f}: {across} {each.confidence:.2f}, "
            f"right {each.right:.2f}, {each.count} {counted}"
        )
        parts += [
            element("line", x1=x, y1=ends[0], x2=x, y2=ends[1], class_="gap"),
            element("circle", element("title", about), cx=x, cy=ends[1], r=radius, class_="dot"),
            label(str(each.count), x, _beside(ends[1], radius), anchor="middle"),
        ]
    return picture(axes, title, parts)


def _beside(y: float, radius: float) -> float:
    """Return the baseline of a label above a dot, or below it at the upper edge."""
    above = y - radius - 4
    return above if above > TOP else y + radius + 13


def histogram(confidences: Sequence[float], *, min_score: float, answerable: bool) -> Markup:
    """Plot the number of questions by confidence; those below the minimum score are refused."""
    axes = Axes(height=150.0)
    counts = [0] * _BARS
    for confidence in confidences:
        counts[min(int(confidence * _BARS), _BARS - 1)] += 1
    most = max(counts)
    sort = "answerable" if answerable else "unanswerable"
    parts = [*axis(axes, "confidence")]
    parts += bars(axes, [count / most for count in counts], class_=f"bar {sort}")
    x = axes.x(min_score)
    parts += [
        element("line", x1=x, y1=TOP, x2=x, y2=axes.y(0), class_="drop"),
        label(f"minimum score {min_score:g}", x, TOP - 4, anchor="middle"),
        label(str(most), LEFT - 8, axes.y(1) + 4, anchor="end"),
        label("0", LEFT - 8, axes.y(0) + 4, anchor="end"),
    ]
    return picture(axes, f"Confidence of {len(confidences)} {sort} questions", parts)
