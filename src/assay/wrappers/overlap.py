"""Whether one config takes spellings of another one's path: what an operator is warned of."""

import asyncio
from collections.abc import Sequence
from typing import Final

from assay.wrappers.matching import folded_pattern, methods_for, rank_of
from assay.wrappers.model import ANY_METHOD, WrapperConfig

WARNINGS_MAX: Final = 20

COMPARED_AT_ONCE: Final = 10
"""Wrappers that one is compared with before others get their turn: about ten milliseconds."""


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


def asks_more_beside(strict: WrapperConfig, free: WrapperConfig) -> bool:
    """Whether the freer one's path takes spellings of the stricter one's."""
    return strict.terms.ask_more_than(free.terms) and is_walked_round(
        (strict.method, strict.path), (free.method, free.path)
    )


def warning_of(strict: WrapperConfig, free: WrapperConfig) -> str:
    """What its operator is told of such a pair."""
    return (
        f"{free.method} {free.path} asks for less than {strict.method} {strict.path}. A request"
        f" that matches {free.path} and differs from {strict.path} only in letter case, slashes,"
        " dots, spaces, `;` parameters or percent-encoding is treated as one of"
        f" {strict.path}."
    )


async def warnings_beside(config: WrapperConfig, others: Sequence[WrapperConfig]) -> list[str]:
    """What its operator is told of a wrapper beside each of the others."""
    found: list[str] = []
    for number, other in enumerate(others, 1):
        pairs = (config, other), (other, config)
        found += [warning_of(*pair) for pair in pairs if asks_more_beside(*pair)]
        if number % COMPARED_AT_ONCE == 0:
            await asyncio.sleep(0)
    more = len(found) - WARNINGS_MAX
    return found if more <= 0 else [*found[:WARNINGS_MAX], f"{more} more pairs are alike."]
