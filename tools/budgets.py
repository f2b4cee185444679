"""Prints how large the code is, beside the budgets of ADR 0044.

./.venv/bin/python tools/budgets.py

Counted is `src/assay` without migrations. A code line is one that is neither blank nor a comment
nor part of a docstring. `tests/architecture/test_budgets.py` lets no figure pass its limit.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/assay"

FUNCTION_LINES, FILE_LINES = 80, 600


@dataclass(frozen=True, slots=True)
class Budget:
    """What is wanted, and what is allowed today. Only a new feature raises a limit."""

    goal: int
    limit: int


BUDGETS: Mapping[str, Budget] = {
    "files": Budget(270, 480),
    "code lines": Budget(30_000, 83_500),
    f"functions over {FUNCTION_LINES} lines": Budget(0, 1),
    f"files over {FILE_LINES} lines": Budget(0, 3),
    "protocols": Budget(30, 96),
    "files of webhooks outside their folder": Budget(2, 2),
    "internal imports of a file, at the median": Budget(8, 8),
}
"""Why most goals are not reached: ADR 0044."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file of the package."""

    path: str
    lines: list[str]
    nodes: tuple[Any, ...]
    """All nodes of its syntax tree."""

    @property
    def functions(self) -> list[int]:
        """Lines of each function."""
        kinds = ast.FunctionDef | ast.AsyncFunctionDef
        nodes = [node for node in self.nodes if isinstance(node, kinds)]
        return [(node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes]

    @property
    def code_lines(self) -> int:
        """Lines with code."""
        docs = {
            line
            for node in self.nodes
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        return sum(
            bool(line.strip()) and not line.strip().startswith("#") and number not in docs
            for number, line in enumerate(self.lines, 1)
        )

    @property
    def protocols(self) -> int:
        """Classes that are protocols."""
        classes = [node for node in self.nodes if isinstance(node, ast.ClassDef)]
        return sum("Protocol" in {_name(base) for base in one.bases} for one in classes)

    @property
    def internal_imports(self) -> int:
        """Modules of the package that it imports."""
        nodes = (node for node in self.nodes if isinstance(node, ast.ImportFrom))
        return len({node.module for node in nodes if (node.module or "").startswith("assay.")})


def _name(base: ast.expr) -> str:
    base = base.value if isinstance(base, ast.Subscript) else base
    return base.id if isinstance(base, ast.Name) else ""


def sources() -> Iterator[Source]:
    """The files that count."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        if "migrations" not in path.parts:
            name = path.relative_to(PACKAGE).as_posix()
            yield Source(name, text.splitlines(), tuple(ast.walk(ast.parse(text))))


def measured() -> dict[str, int]:
    """The figure of each budget."""
    files = list(sources())
    functions = [lines for one in files for lines in one.functions]
    imports = sorted(one.internal_imports for one in files)
    hooks = [one for one in files if "webhook" in one.path and not one.path.startswith("webhooks/")]
    return {
        "files": sum(len(one.lines) > 2 for one in files),  # noqa: PLR2004 - an empty `__init__`
        "code lines": sum(one.code_lines for one in files),
        f"functions over {FUNCTION_LINES} lines": sum(n > FUNCTION_LINES for n in functions),
        f"files over {FILE_LINES} lines": sum(len(one.lines) > FILE_LINES for one in files),
        "protocols": sum(one.protocols for one in files),
        "files of webhooks outside their folder": len(hooks),
        "internal imports of a file, at the median": imports[len(imports) // 2],
    }


def main() -> None:
    """Print the table, and the lengths of functions, which have no budget."""
    found = measured()
    width = max(map(len, found))
    for name, budget in BUDGETS.items():
        reached = "reached" if found[name] <= budget.goal else ""
        sys.stdout.write(f"{name:{width}} {found[name]:7} {budget.goal:7} {reached}\n")
    lengths = sorted(lines for one in sources() for lines in one.functions)
    middle, long = lengths[len(lengths) // 2], lengths[int(len(lengths) * 0.95)]
    sys.stdout.write(
        f"{len(lengths)} functions: {middle} lines at the median, {long} at the 95th percentile,"
        f" {lengths[-1]} the longest\n"
    )


if __name__ == "__main__":
    main()
