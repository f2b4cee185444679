"""Syntax trees that many rules look at: each source is parsed and walked once a process."""

import ast
import gc
from functools import cache
from typing import Any


@cache
def parsed(source: str) -> ast.Module:
    """The syntax tree of a source. Nobody changes it."""
    collecting = gc.isenabled()
    gc.disable()  # it would look at all earlier trees again and again: three quarters of the time
    try:
        return ast.parse(source)
    finally:
        if collecting:
            gc.enable()


@cache
def nodes(source: str) -> tuple[Any, ...]:
    """All nodes of a source."""
    return tuple(ast.walk(parsed(source)))


def forget() -> None:
    """Free the trees: half a gigabyte for the whole of the project."""
    nodes.cache_clear()
    parsed.cache_clear()
