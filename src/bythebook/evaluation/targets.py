"""Parse targets (``name=value``) and check whether the figures reach them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bythebook.errors import InvalidInput
from bythebook.evaluation.metrics import METRICS, Evaluation, metric_of


@dataclass(frozen=True, slots=True)
class Target:
    """Minimum that a figure must reach, or maximum if lower is better."""

    name: str
    limit: float
    at_most: bool

    @property
    def sign(self) -> str:
        return "≤" if self.at_most else "≥"


@dataclass(frozen=True, slots=True)
class TargetResult:
    target: Target
    value: float | None  # None: not measured by the question set

    @property
    def met(self) -> bool:
        value, limit = self.value, self.target.limit
        return value is not None and (value <= limit if self.target.at_most else value >= limit)


def read_target(text: str) -> Target:
    name, _, value = text.partition("=")
    metric = metric_of(name.strip())
    if metric is None:
        raise InvalidInput(
            f"There is no figure {name.strip()!r}.",
            hint=f"Use {', '.join(METRICS)}; most also with a kind: refused.off_book.",
        )
    try:
        limit = float(value)
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        raise InvalidInput(f"The bar {text!r} has no number.", hint="Write --bar answered=.93")
    return Target(name.strip(), limit, metric.lower_is_better)


def check_targets(targets: Sequence[Target], evaluation: Evaluation) -> tuple[TargetResult, ...]:
    return tuple(TargetResult(target, evaluation.value(target.name)) for target in targets)
