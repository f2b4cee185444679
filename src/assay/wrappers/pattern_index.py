"""Which of an operator's patterns fit a path: all of them are compared at once. Pure.

A pattern is one bit of a number; for each place of a path there is the number of those that take a
segment there. A thousand patterns of 64 segments cost 64 steps, and not 64,000: the maker of such
patterns would otherwise hold up everybody with each request.
"""

from collections.abc import Iterable, Iterator, Sequence


class PatternIndex:
    """Patterns, known by their numbers in the order in which they were given."""

    def __init__(
        self, patterns: Iterable[tuple[str, ...]] = (), *, is_folded: bool = False
    ) -> None:
        """Of folded patterns a parameter takes an empty segment too, and a prefix nothing at all.

        A slash at the end means nothing there.
        """
        self._is_folded = is_folded
        self._all = 0
        self._literal: list[dict[str, int]] = []
        self._parameter: list[int] = []
        self._prefix = [0]
        self._end = [0]
        for pattern in patterns:
            self.add(pattern)

    def add(self, pattern: tuple[str, ...]) -> None:
        """One more, of the next number."""
        bit = self._all + 1
        self._all |= bit
        for _ in range(len(self._parameter), len(pattern)):
            self._literal.append({})
            for places in (self._parameter, self._prefix, self._end):
                places.append(0)
        for place, part in enumerate(pattern):
            if part == "*" and place == len(pattern) - 1:
                self._prefix[place] |= bit
                return
            if part.startswith("{"):
                self._parameter[place] |= bit
            else:
                literal = self._literal[place]
                literal[part] = literal.get(part, 0) | bit
        self._end[len(pattern)] |= bit

    def fitting(self, segments: Sequence[str]) -> int:
        """The patterns that fit a path of these segments, one bit each."""
        left, found = self._all, 0
        for place, segment in enumerate(segments):
            if place >= len(self._parameter):
                return found
            found |= left & self._prefix[place]
            takes = self._literal[place].get(segment, 0)
            if segment or self._is_folded:
                takes |= self._parameter[place]
            left &= takes
            if not left:
                return found
        count = len(segments)
        if count < len(self._end):
            found |= left & self._end[count]
            if self._is_folded:
                found |= left & self._prefix[count]
        return found


def numbers(bits: int) -> Iterator[int]:
    """The numbers of the bits that are set, from the smallest on."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
