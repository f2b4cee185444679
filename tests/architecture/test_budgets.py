"""The code gets no larger than its budgets allow (ADR 0044)."""

from functools import cache

import pytest
from tools.budgets import BUDGETS, Source, measured

from tests.support.syntax import nodes

figures = cache(measured)


def test_no_figure_is_above_its_limit() -> None:
    found = figures()
    assert found.keys() == BUDGETS.keys()
    assert {name: n for name, n in found.items() if n > BUDGETS[name].limit} == {}


def test_a_limit_follows_its_figure_down() -> None:
    """A limit that is far above its figure guards nothing: a tenth is room enough."""
    found = figures()
    assert {n: b for n, b in BUDGETS.items() if b.limit > max(found[n] * 1.1, b.goal)} == {}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('"""Says\nwhat.\n"""\n\nx = 1  # why\n# a comment\n', 1),
        ('def f():\n    """Says."""\n    return """two\nlines"""\n', 3),
    ],
)
def test_docstrings_comments_and_blank_lines_are_no_code(text: str, lines: int) -> None:
    assert Source("x.py", text.splitlines(), nodes(text)).code_lines == lines
