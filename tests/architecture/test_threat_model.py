"""The threat model and the guarantees, in `docs/dev`, promise tests: each of them exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.syntax import nodes

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/dev/threat-model.md"
GUARANTEES = ROOT / "docs/dev/guarantees.md"
NODE_ID = re.compile(r"`(tests/[\w./-]+\.py)::(\w+)`")
ROW = re.compile(r"(?m)^\| [A-Z]+\d+ \|.*$")


AREAS = {"Security", "Money", "Grade", "Privacy", "Availability"}


def promised(page: Path) -> list[tuple[str, str]]:
    return NODE_ID.findall(page.read_text("utf-8"))


@cache
def names_in(file: str) -> frozenset[str]:
    """The names of a file's test functions, and of those in its classes; empty: no such file."""
    path = ROOT / file
    if not path.exists():
        return frozenset()
    found = nodes(path.read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(n.name for n in found if isinstance(n, kinds) and n.name.startswith("test_"))


@pytest.mark.parametrize("page", [PAGE, GUARANTEES], ids=lambda page: page.stem)
def test_every_test_that_is_named_exists(page: Path) -> None:
    missing = [f"{file}::{name}" for file, name in promised(page) if name not in names_in(file)]
    assert missing == []


def test_every_guarantee_says_where_it_is_made_and_names_a_test() -> None:
    """What none proves is listed by itself, with the reason."""
    sections = dict(
        re.findall(r"(?ms)^## ([^\n]+)\n(.*?)(?=^## |\Z)", GUARANTEES.read_text("utf-8"))
    )
    unproven = sections.pop("Not yet proven")
    assert set(sections) == AREAS
    rows = [
        row for text in sections.values() for row in re.findall(r"(?m)^\| ([^|]+ \|.+)\|$", text)
    ]
    rows = [row for row in rows if not row.startswith("promise |")]
    assert 40 <= len(rows) <= 100
    for row in rows:
        promise, source, tests = (cell.strip() for cell in row.split("|"))
        assert promise.endswith("."), row
        assert re.fullmatch(r"\[[^]]+\]\([^)]+\)", source), row
        assert all(NODE_ID.fullmatch(one) for one in tests.split(", ")), row
    assert not NODE_ID.search(unproven)
    assert len(re.findall(r"(?m)^\| [^|-]+ \| [^|]+ \|$", unproven)) > 1


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
