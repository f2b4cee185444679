"""Cases of a test: the first of them in every run, all of them in the slow suite."""

from collections.abc import Iterable
from typing import Any

import pytest


def first_then_slow(cases: Iterable[Any], first: int = 1) -> list[Any]:
    """Mark all cases but the first ones slow. For cases that each take seconds to set up."""
    return [
        case if number < first else pytest.param(*_values(case), marks=pytest.mark.slow)
        for number, case in enumerate(cases)
    ]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
