"""Splits long computations into short slices, with a search that is split so. Pure."""

import re
from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

SLICE_CHARS = 4_096
"""Characters after which a computation yields: a few milliseconds."""

WINDOW_CHARS = 2_048
"""Positions at which `occurs` looks for a match at once."""

Sliced: TypeAlias = Generator[None, None, T]
"""A computation that yields after every slice and returns its result."""


def whole(work: Sliced[T]) -> T:
    """Return the result of `work`, computed at once."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


class Meter:
    """Counts the characters that a computation reads, and says when its slice is over."""

    def __init__(self, slice_chars: int = SLICE_CHARS) -> None:
        self.read = 0
        """Every reading counts: a text that two patterns read counts twice."""
        self._slice_chars = slice_chars
        self._since = 0

    def spend(self, chars: int) -> bool:
        """Count characters; return whether the slice is over."""
        self.read += chars
        self._since += chars
        if self._since < self._slice_chars:
            return False
        self._since = 0
        return True


def occurs(
    pattern: re.Pattern[str],
    text: str,
    meter: Meter,
    reach: int,
    accept: Callable[[re.Match[str]], bool] | None = None,
) -> Sliced[bool]:
    """Return whether the pattern matches somewhere such that `accept` allows it.

    It searches window by window. A match begins in its window and ends at most `reach` beyond. A
    match that ends where the view ends could be longer, so it counts only if the text ends there
    too.
    """
    at = 0
    while at < len(text):
        end = min(len(text), at + WINDOW_CHARS)
        seen = min(len(text), end + reach)
        for match in pattern.finditer(text, at, seen):
            if match.start() >= end:
                break
            is_whole = match.end() < seen or seen == len(text)
            if is_whole and (accept is None or accept(match)):
                return True
        if meter.spend(seen - at):
            yield
        at = end
    return False
