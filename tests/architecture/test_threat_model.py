"""`docs/dev/threat-model.md` promises tests: each of them exists."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/dev/threat-model.md"
NODE_ID = re.compile(r"`(tests/[\w./-]+\.py)::(\w+)`")
ROW = re.compile(r"(?m)^\| [A-Z]+\d+ \|.*$")


def promised() -> list[tuple[str, str]]:
    return NODE_ID.findall(PAGE.read_text("utf-8"))


@cache
def names_in(file: str) -> frozenset[str]:
    """The names of a file's test functions, and of those in its classes; empty: no such file."""
    path = ROOT / file
    if not path.exists():
        return frozenset()
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(n.name for n in nodes if isinstance(n, kinds) and n.name.startswith("test_"))


def test_every_test_that_is_named_exists() -> None:
    missing = [f"{file}::{name}" for file, name in promised() if name not in names_in(file)]
    assert missing == []


def test_every_threat_has_a_defence_and_a_test() -> None:
    rows = ROW.findall(PAGE.read_text("utf-8"))
    assert len(rows) >= 40
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 5, row
        assert all(cells), row
        assert all(NODE_ID.fullmatch(one) for one in cells[4].split(", ")), row
        assert set(cells[2].split(", ")) <= {"1", "2", "3", "4", "5", "6"}, row


def test_every_threat_has_a_number_of_its_own() -> None:
    numbers = [row.split("|")[1].strip() for row in ROW.findall(PAGE.read_text("utf-8"))]
    assert len(numbers) == len(set(numbers))


def test_every_actor_and_every_boundary_is_named() -> None:
    text = PAGE.read_text("utf-8").lower()
    actors = ["anonymous", "operator", "agent", "upstream", "chain node", "facilitator"]
    actors += ["neighbour process", "proxy in front", "admin"]
    assert [name for name in actors if name not in text] == []


def test_a_test_that_does_not_exist_would_be_noticed() -> None:
    assert names_in("tests/no_such_file.py") == frozenset()
    assert "test_no_such_test" not in names_in("tests/architecture/test_threat_model.py")
    assert "test_every_test_that_is_named_exists" in names_in(
        "tests/architecture/test_threat_model.py"
    )
