"""All patterns of an operator are compared with a path at once; as each would be by itself."""

import sys
from types import FrameType

from hypothesis import given
from hypothesis import strategies as st

from assay.wrappers.matching import (
    PatternIndex,
    RouteRow,
    RouteTable,
    folded,
    folded_pattern,
    numbers,
)
from assay.wrappers.model import Terms

PARTS = st.sampled_from(["a", "b", "{x}", "{y}"])
ENDS = st.sampled_from(["a", "{x}", "", "*"])
PATTERNS = st.tuples(st.lists(PARTS, max_size=4), ENDS).map(lambda p: (*p[0], p[1]))
PATHS = st.lists(st.sampled_from(["a", "b", "c", "", "*", "{x}"]), max_size=6).map(tuple)


def fits(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """As conventions.md#wrapper has it, one pattern by itself."""
    if pattern[-1] == "*":
        pattern = pattern[:-1]
        if len(path) <= len(pattern):
            return False
        path = path[: len(pattern)]
    return len(pattern) == len(path) and all(
        one != "" if part.startswith("{") else part == one
        for part, one in zip(pattern, path, strict=True)
    )


def fits_folded(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    if pattern[-1:] == ("*",):
        pattern = pattern[:-1]
        path = path[: len(pattern)]
    return len(pattern) == len(path) and all(
        part.startswith("{") or part == one for part, one in zip(pattern, path, strict=True)
    )


@given(st.lists(PATTERNS, max_size=12), PATHS)
def test_those_are_found_that_fit_by_themselves(
    patterns: list[tuple[str, ...]], path: tuple[str, ...]
) -> None:
    found = list(numbers(PatternIndex(patterns).fitting(path)))
    assert found == [n for n, pattern in enumerate(patterns) if fits(pattern, path)]
    folded = [tuple(part for part in pattern if part) for pattern in patterns]
    found = list(numbers(PatternIndex(folded, is_folded=True).fitting(path)))
    assert found == [n for n, pattern in enumerate(folded) if fits_folded(pattern, path)]


@given(st.from_regex(r"[A-Za-z0-9._~!$&'()+,;=:@-]+", fullmatch=True))
def test_a_literal_is_folded_as_any_path_is(segment: str) -> None:
    assert folded_pattern((segment,)) == folded("/" + segment)


def test_a_thousand_long_patterns_cost_a_request_little() -> None:
    """They took 60 ms of everybody's time: 120 bytes, as often as the limit of wrappers allows."""
    places = 63
    rows = [
        RouteRow("GET", "/" + "/".join(["{p}"] * (places - 1) + [f"x{n}"]), f"{n}", Terms(price=1))
        for n in range(998)
    ]
    table = RouteTable([*rows, RouteRow("GET", "/*", "free")])
    calls = 0

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    path = "/" + "/".join(["a"] * places)
    sys.setprofile(count)
    try:
        found = table.match("GET", path)
    finally:
        sys.setprofile(None)
    assert found is not None
    assert found.value == "free"
    assert calls < 10_000
