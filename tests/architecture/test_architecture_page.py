"""`docs/dev/architecture.md` names packages, files and definitions: each of them is there."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.live_service import start_test_service
from tests.support.syntax import parsed
from tests.support.tracing import tracing

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src/assay"
PAGE = (ROOT / "docs/dev/architecture.md").read_text("utf-8")
ROW = re.compile(r"(?m)^\| (\d+) \| \[`([^`]+)`\]\(([^)]+)\)((?: `[\w.]+`)*) \| (.+) \|$")
WALKS = {
    "a gate call answered from memory": 30,
    "a paid x402 call": 100,
    "an evaluation": 120,
}
"""The walks, and how many rows each has at least."""


def section(heading: str) -> str:
    """The text below a heading, up to the next one of its kind."""
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@cache
def defined(path: Path) -> frozenset[str]:
    """The functions and classes of a module, and the methods of its classes."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found: set[str] = set()
    for node in parsed(path.read_text("utf-8")).body:
        if isinstance(node, functions):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (one.name for one in node.body if isinstance(one, functions))
            found |= {node.name, *(f"{node.name}.{name}" for name in methods)}
    return frozenset(found)


def wrong_in(row: tuple[str, ...]) -> Iterator[str]:
    """What does not hold of one row of a walk."""
    _, file, link, names, sentence = row
    path = SOURCES / file
    if not path.exists() or link != f"../../src/assay/{file}":
        yield file
        return
    for name in re.findall(r"`([\w.]+)`", names):
        if name not in defined(path):
            yield f"{file}: {name}"
    if not re.fullmatch(r"[A-Z][^.]*(?:\.[^ ][^.]*)*\.", sentence):
        yield f"{file}: not one sentence: {sentence}"


@pytest.mark.parametrize("walk", WALKS)
def test_every_file_and_name_of_a_walk_is_there(walk: str) -> None:
    rows = ROW.findall(section(f"Walk: {walk}"))
    assert len(rows) >= WALKS[walk]
    assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1))
    assert [wrong for row in rows for wrong in wrong_in(row)] == []


def test_no_row_of_a_walk_is_left_unread() -> None:
    assert len(re.findall(r"(?m)^\| \d+ \|", PAGE)) == len(ROW.findall(PAGE))


def test_the_packages_are_those_of_the_layers_in_their_order() -> None:
    contract = (ROOT / ".importlinter").read_text("utf-8")
    layers = contract.partition("\nlayers =\n")[2].partition("\n\n")[0]
    packages = [name for line in layers.splitlines() for name in line.strip().split(" | ")]
    packages = [name for name in packages if name]
    assert len(packages) > 20
    table, picture = section("Packages"), PAGE.partition("```mermaid")[2].partition("```")[0]
    assert re.findall(r"(?m)^\| \[`(\w+)`\]", table) == packages
    boxes = ">".join(re.findall(r"</b>(.+?)\"\]", picture))
    assert re.findall(r"\w{3,}|db", boxes.replace("br/", "")) == packages


@pytest.mark.parametrize(
    "row",
    [
        ("1", "gate/gone.py", "../../src/assay/gate/gone.py", "", "Is gone."),
        ("1", "gate/service.py", "../../src/assay/gate/model.py", "", "Is linked wrongly."),
        ("1", "gate/service.py", "../../src/assay/gate/service.py", " `Gate.gone`", "Is gone."),
        ("1", "gate/service.py", "../../src/assay/gate/service.py", "", "Is one. Is two."),
    ],
)
def test_a_wrong_row_is_noticed(row: tuple[str, ...]) -> None:
    assert len(list(wrong_in(row))) == 1


async def test_a_gate_call_from_memory_runs_the_files_of_its_walk(tmp_path: Path) -> None:
    """The application alone, which is without the connection and its parser."""
    async with start_test_service(tmp_path / "data") as service:
        headers = await service.operator() | await service.session()
        for _ in range(2):
            await service.gate(headers)
        with tracing() as trace:
            answer = await service.gate(headers)
    assert answer.json()["cached"] is True
    walked = {row[1] for row in ROW.findall(section("Walk: a gate call answered from memory"))}
    ran = trace.files.keys()
    assert len(ran) > 20
    assert ran - walked == set()
