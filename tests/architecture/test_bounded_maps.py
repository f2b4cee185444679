"""Every collection that outlives a call has a bound, and says so in docs/dev/maps.md."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.syntax import nodes

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "assay").rglob("*.py"))
TABLE = ROOT / "docs" / "dev" / "maps.md"

GROWING = frozenset(
    {
        "dict",
        "set",
        "OrderedDict",
        "defaultdict",
        "Counter",
        "deque",
        "ChainMap",
        "WeakValueDictionary",
        "WeakKeyDictionary",
    }
)


def _name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    if isinstance(node, ast.Lambda):
        return _name(node.body)
    if isinstance(node, ast.Call):
        return _name(node.func)
    if isinstance(node, ast.Dict | ast.DictComp):
        return "dict"
    if isinstance(node, ast.Set | ast.SetComp):
        return "set"
    return getattr(node, "id", getattr(node, "attr", ""))


def _of_init(method: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(method):
        if isinstance(node, ast.Assign | ast.AnnAssign) and _name(node.value) in GROWING:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Attribute):
                    yield target.attr


def _of_class(node: ast.ClassDef) -> Iterator[str]:
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and member.name == "__init__":
            yield from _of_init(member)
        elif isinstance(member, ast.AnnAssign) and isinstance(member.value, ast.Call):
            factories = [k.value for k in member.value.keywords if k.arg == "default_factory"]
            if factories and _name(factories[0]) in GROWING and isinstance(member.target, ast.Name):
                yield member.target.id


def collections_of(source: str) -> list[str]:
    """`Class.attribute` of everything that may grow."""
    classes = [n for n in nodes(source) if isinstance(n, ast.ClassDef)]
    return [f"{one.name}.{attribute}" for one in classes for attribute in _of_class(one)]


def endless_caches_of(source: str) -> list[str]:
    """Functions with arguments whose results are remembered without a bound."""
    found: list[str] = []
    for node in nodes(source):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        has_arguments = bool(node.args.args or node.args.kwonlyargs or node.args.vararg)
        for decorator in node.decorator_list:
            sized = isinstance(decorator, ast.Call) and any(
                isinstance(k.value, ast.Constant) and isinstance(k.value.value, int)
                for k in decorator.keywords
            )
            if has_arguments and _name(decorator) in {"cache", "lru_cache"} and not sized:
                found.append(node.name)
    return found


def test_every_collection_that_outlives_a_call_has_a_bound_in_the_table() -> None:
    found = {
        f"{path.relative_to(ROOT / 'src').as_posix()}:{name}"
        for path in SOURCES
        for name in collections_of(path.read_text("utf-8"))
    }
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", TABLE.read_text("utf-8"), re.MULTILINE)
    listed = dict(rows)
    assert len(listed) == len(rows)
    assert sorted(found - listed.keys()) == [], "add a bound, and a row to docs/dev/maps.md"
    assert sorted(listed.keys() - found) == [], "remove the row from docs/dev/maps.md"


def test_no_function_remembers_without_a_bound() -> None:
    assert [path.name for path in SOURCES if endless_caches_of(path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "line",
    [
        "self.a = {}",
        "self.a: dict[str, int] = {}",
        "self.a = dict()",
        "self.a = OrderedDict[str, int]()",
        "self.a = collections.defaultdict(list)",
        "self.a = {n: 1 for n in range(3)}",
        "self.a = set()",
        "self.a = weakref.WeakValueDictionary()",
    ],
)
def test_a_new_map_is_noticed(line: str) -> None:
    assert collections_of(f"class C:\n    def __init__(self):\n        {line}\n") == ["C.a"]
    assert collections_of(f"class C:\n    def ask(self):\n        {line}\n") == []


def test_a_field_that_is_a_map_is_noticed() -> None:
    row = "a: dict[str, int] = field(default_factory=dict[str, int])"
    assert collections_of(f"class C:\n    {row}\n") == ["C.a"]


def test_a_cache_without_a_bound_is_noticed() -> None:
    assert endless_caches_of("@cache\ndef ask(x): ...") == ["ask"]
    assert endless_caches_of("@lru_cache(maxsize=None)\ndef ask(x): ...") == ["ask"]
    assert endless_caches_of("@lru_cache(maxsize=4)\ndef ask(x): ...") == []
    assert endless_caches_of("@cache\ndef ask(): ...") == []
