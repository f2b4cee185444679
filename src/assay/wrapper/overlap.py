"""Whether one config takes spellings of another one's path: what an operator is warned of. Pure."""

from assay.wrapper.match import folded_pattern, methods_for, rank_of
from assay.wrapper.model import ANY_METHOD


def is_walked_round(strict: tuple[str, str], free: tuple[str, str]) -> bool:
    """Whether some spelling of the first one's path matches the second one as it is spelled.

    Both are method and path of a config; the path of the first is no less exact.
    """
    first, second = (tuple(path[1:].split("/")) for _, path in (strict, free))
    core, other = folded_pattern(first), folded_pattern(second)
    if not _methods_overlap(strict[0], free[0]) or rank_of(core) > rank_of(other):
        return False
    return not _fits_pattern(first, second) and _patterns_overlap(core, other)


def _methods_overlap(one: str, other: str) -> bool:
    return ANY_METHOD in {one, other} or one in methods_for(other) or other in methods_for(one)


def _fits_pattern(pattern: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether the pattern matches every path that the other one does, as it is spelled."""
    if pattern[-1] == "*":
        return other[: len(pattern) - 1] == pattern[:-1] and len(other) >= len(pattern)
    return len(pattern) == len(other) and all(
        mine == theirs or (mine.startswith("{") and theirs not in {"", "*"})
        for mine, theirs in zip(pattern, other, strict=True)
    )


def _patterns_overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two folded patterns fit one path."""
    for mine, theirs in zip(one, other, strict=False):
        if "*" in {mine, theirs}:
            return True
        if mine != theirs and not mine.startswith("{") and not theirs.startswith("{"):
            return False
    longer = one if len(one) > len(other) else other
    rest = longer[min(len(one), len(other)) :]
    return rest in {(), ("*",)}
