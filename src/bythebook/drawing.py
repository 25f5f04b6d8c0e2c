"""Render the pages of reports from the templates in ``templates/``, with plots as inline SVG.

Every value is escaped, so text from the book is never markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bythebook.language.text import clean

# Characters that are invalid in XML, and lone surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 480.0, 62.0, 16.0, 14.0, 46.0
_ROUND = (0.02, 0.04, 0.08, 0.2, 0.4, 0.6, 0.8, 1.0)


def render(template: str, **values: object) -> str:
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("bythebook"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )


def _shown(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    if isinstance(value, str) and not isinstance(value, Markup):
        return clean(_CONTROLS.sub("\ufffd", value))
    return value


class Axes:
    """Mapping from the unit square to picture coordinates; the y axis may end below 1."""

    left, top, width = _LEFT, _TOP, _WIDTH

    def __init__(self, *, highest: float = 1.0, height: float = 320.0) -> None:
        self.highest = highest
        self.height = height

    @classmethod
    def above(cls, values: Iterable[float]) -> Axes:
        """Return axes that end at a round number with some space above the values."""
        most = max(values) * 1.1
        return cls(highest=next((end for end in _ROUND if most <= end), 1.0))

    def x(self, value: float) -> float:
        return _LEFT + value * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = min(value, self.highest) / self.highest
        return self.height - _BOTTOM - share * (self.height - _TOP - _BOTTOM)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)
