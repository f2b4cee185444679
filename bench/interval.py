"""How sure a figure is: the 95 % interval of a median over rounds, by resampling them."""

import random
import statistics
from collections.abc import Sequence

RESAMPLED = 2000
ROUNDS_MIN = 11
"""Fewer rounds say too little for an interval."""


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median of the rounds' values (percentile bootstrap, fixed seed)."""
    draw = random.Random(0)
    medians = [statistics.median(draw.choices(values, k=len(values))) for _ in range(RESAMPLED)]
    low, *_, high = statistics.quantiles(medians, n=40, method="inclusive")
    return low, high


def beside(pairs: Sequence[tuple[float, float]], commit: str) -> str:
    """This tree beside a commit: the medians of both, and of their ratio round by round."""
    now, then = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratios = [one / other for one, other in pairs]
    low, high = interval(ratios)
    return (
        f"now {now:9.1f}  {commit} {then:9.1f}  "
        f"ratio {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f})"
    )
