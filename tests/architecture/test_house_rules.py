"""The house's rules as code: arrows, sizes, plugins, docs."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import assay.evaluation.signals
import assay.probing.probes
import assay.registries.families
from assay.common.plugins import load_plugins
from assay.evaluation.model import SignalName

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 50
LONG_FILES = {
    "assay/chains/networks.py": "a table: one row a chain",
    "assay/cli/main.py": "a list: one entry a command",
    "assay/settings.py": "a list: one entry a setting",
    "assay/app/__init__.py": "the composition root: every part is named in this room only",
}
LONG_FUNCTIONS = {
    "assay/cli/main.py:build": "a list: one entry a command",
    "assay/db/migrations/versions/0001_first.py:upgrade": "a schema, table by table",
    "assay/db/migrations/versions/0002_wrappers.py:upgrade": "a schema, table by table",
    "assay/db/migrations/versions/0003_evidence.py:upgrade": "a schema, table by table",
    "assay/app/__init__.py:_compose": "the composition root names everything once, in order",
}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT / "src").as_posix()


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def test_data_flows_one_way() -> None:
    """Every contract of `.importlinter` holds."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_is_longer_than_a_reader_holds_in_mind() -> None:
    long = {name_of(p) for p in SOURCES if len(p.read_text("utf-8").splitlines()) > FILE_LINES_MAX}
    assert long - set(LONG_FILES) == set()


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{name_of(path)}:{name}"
        for path in SOURCES
        for name, lines in functions(path)
        if lines > FUNCTION_LINES_MAX
    }
    assert long - set(LONG_FUNCTIONS) == set()


def test_no_exception_outlives_its_reason() -> None:
    lengths = {name_of(p): len(p.read_text("utf-8").splitlines()) for p in SOURCES}
    assert all(lengths.get(name, 0) > FILE_LINES_MAX for name in LONG_FILES)
    long = {f"{name_of(p)}:{n}" for p in SOURCES for n, size in functions(p) if size > 50}
    assert set(LONG_FUNCTIONS) <= long


def test_migrations_use_nothing_of_the_package() -> None:
    """A step that was released does the same for ever, whatever the code has become since."""
    versions = ROOT / "src/assay/db/migrations/versions"
    imports = re.compile(r"^\s*(?:from|import) assay\b", re.MULTILINE)
    assert imports.search("from assay.common import ids")
    found = [path.name for path in versions.glob("*.py") if imports.search(path.read_text("utf-8"))]
    assert found == []


def test_nothing_unfinished_is_left() -> None:
    mark = re.compile(r"TODO|FIXME|NotImplementedError|XXX")
    assert [name_of(path) for path in SOURCES if mark.search(path.read_text("utf-8"))] == []


def test_every_module_says_what_it_is_for() -> None:
    texts = {name_of(path): path.read_text("utf-8") for path in SOURCES}
    assert [n for n, text in texts.items() if text and not ast.get_docstring(ast.parse(text))] == []


@pytest.mark.parametrize(
    ("package", "attribute", "names"),
    [
        (assay.evaluation.signals, "SIGNAL", set(SignalName)),
        (assay.registries.families, "FAMILY", {"evm", "solana"}),
    ],
)
def test_the_loaded_plugins_are_the_ones_we_know_of(
    package: ModuleType, attribute: str, names: set[str]
) -> None:
    """So that a lost file is noticed. Source: interface.md#enumerated-values."""
    assert set(load_plugins(package, attribute, object)) == names


def test_every_probe_is_documented() -> None:
    text = (ROOT / "docs/probes.md").read_text("utf-8")
    missing = [
        n for n in load_plugins(assay.probing.probes, "PROBE", object) if f"`{n}`" not in text
    ]
    assert missing == []


def test_the_locks_name_no_address() -> None:
    for lock in (ROOT / "requirements").glob("*.txt"):
        text = lock.read_text("utf-8")
        assert "://" not in text, lock.name
        assert re.search(r"(?m)^\s*--(index|extra-index|find-links|trusted)", text) is None


def test_help_does_not_import_the_service() -> None:
    """What makes `assay --help` answer at once."""
    code = (
        "import sys; from assay.__main__ import Web\n"
        "from assay.cli.main import build; build(Web())\n"
        "print([m for m in ('fastapi', 'sqlalchemy', 'pydantic', 'httpx2', 'mcp', 'a2a', 'eth_abi')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "src", capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_serving_imports_no_agent_library_before_it_needs_one() -> None:
    """mcp and a2a cost most of a second; they are for the first evaluation, not for the start."""
    code = (
        "import sys; import assay.app, assay.app.web; "
        "print([m for m in ('mcp', 'a2a', 'httpx', 'web3', 'eth_account') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "src", capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
