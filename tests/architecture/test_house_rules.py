"""The house's rules as code: arrows, sizes, plugins, docs."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import assay.evaluation.signals
import assay.registries.families
from assay.common.plugins import load_plugins
from assay.evaluation.model import SignalName
from assay.probing.probes import PROBES
from tests.support.syntax import nodes, parsed

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 50
LONG_FILES = {
    "assay/chains/networks.py": "a table: one row a chain",
    "assay/settings.py": "a list: one entry a setting",
    "assay/app/__init__.py": "the composition root: every part is named in this room only",
}
LONG_FUNCTIONS = {
    "assay/cli/check.py:check": "a command: one argument an option",
    "assay/cli/sell.py:sell": "a command: one argument an option",
    "assay/cli/wrapper_import.py:import_document": "a command: one argument an option",
    "assay/cli/wrappers.py:add": "a command: one argument an option",
    "assay/cli/wrappers.py:edit": "a command: one argument an option",
    "assay/db/migrations/versions/0001_first.py:upgrade": "a schema, table by table",
    "assay/db/migrations/versions/0002_wrappers.py:upgrade": "a schema, table by table",
    "assay/db/migrations/versions/0003_evidence.py:upgrade": "a schema, table by table",
    "assay/app/__init__.py:_compose": "the composition root names everything once, in order",
}


SLEEP_MAX_S = 0.3
CLOCKS = frozenset({"monotonic", "perf_counter", "time"})
SLEEPING = {
    "tests/payments/ledger/test_gas_store.py": 2,
    "tests/e2e/test_e2e_crash_matrix.py": 1,
    "tests/e2e/test_e2e_facilitator.py": 1,
    "tests/e2e/test_e2e_paid_in_step.py": 4,
    "tests/e2e/test_e2e_paying_callers.py": 1,
    "tests/e2e/test_e2e_proxy_conformance.py": 4,
    "tests/e2e/test_e2e_wrapper_proxy.py": 2,
    "tests/support/fakes/push_agents.py": 1,
    "tests/webhooks/test_webhooks_crash_http.py": 3,
    "tests/wrappers/test_wrap_left_unread_http.py": 1,
    "tests/wrappers/test_wrap_repeats_http.py": 2,
    "tests/support/callers.py": 1,
}
"""Files of tests with longer sleeps, and how many; to become waits for what is waited for."""

TIMED = {
    "tests/net/test_http_egress_replies.py": 1,
    "tests/chains/test_http_rpc_endpoints.py": 2,
    "tests/webhooks/test_http_webhooks.py": 1,
    "tests/common/test_shared_window.py": 1,
    "tests/e2e/test_e2e_operator_commands.py": 1,
    "tests/e2e/test_e2e_shared_limits.py": 2,
    "tests/e2e/test_e2e_wrapper_proxy.py": 3,
    "tests/app/solana/test_solana_liveness.py": 1,
    "tests/wrappers/test_wrap_repeats_http.py": 1,
}
"""Files of tests that compare the real clock, and how often; to become counts of what is done."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT / "src").as_posix()


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in nodes(path.read_text("utf-8")):
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
    assert [n for n, text in texts.items() if text and not ast.get_docstring(parsed(text))] == []


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
    missing = [n for n in PROBES if f"`{n}`" not in text]
    assert missing == []


def test_the_locks_name_no_address() -> None:
    for lock in (ROOT / "requirements").glob("*.txt"):
        text = lock.read_text("utf-8")
        assert "://" not in text, lock.name
        assert re.search(r"(?m)^\s*--(index|extra-index|find-links|trusted)", text) is None


def test_help_does_not_import_the_service() -> None:
    """What makes `assay --help` answer at once."""
    code = (
        "import sys; from assay.cli.main import build\n"
        "build()(['--help']); build()(['accounts', '--help'])\n"
        "print([m for m in ('fastapi', 'sqlalchemy', 'pydantic', 'httpx2', 'mcp', 'a2a', 'eth_abi')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "src", capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


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


def long_sleeps(text: str) -> list[int]:
    """Lines that sleep for a fixed time of `SLEEP_MAX_S` or more."""
    return [
        node.lineno
        for node in nodes(text)
        if isinstance(node, ast.Call)
        and called(node) == "sleep"
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, int | float)
        and node.args[0].value >= SLEEP_MAX_S
    ]


def clock_assertions(text: str) -> list[int]:
    """Lines of assertions about what a real clock reads, directly or by a name it was put into."""
    tree = nodes(text)
    read = {
        target.id
        for node in tree
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp)
        for part in ast.walk(node.value)
        if isinstance(part, ast.Call) and called(part) in CLOCKS and not part.args
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.op, ast.Sub)
    }
    return [
        node.lineno
        for node in tree
        if isinstance(node, ast.Assert)
        for compared in ast.walk(node.test)
        if isinstance(compared, ast.Compare)
        and any(
            (isinstance(part, ast.Call) and called(part) in CLOCKS and not part.args)
            or (isinstance(part, ast.Name) and part.id in read)
            for part in ast.walk(compared)
        )
    ]


def called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


OTHER_CLOCKS = ("tests/simulation/*.py", "tests/payments/*.py", "tests/ground_truth/*.py")


def found_in_tests(rule: Callable[[str], list[int]]) -> dict[str, int]:
    """How often a rule is broken, by file.

    The clocks of `tests/simulation` and `tests/payments` are not the real one; agents of
    `tests/ground_truth` are slow.
    """
    files = [
        path
        for path in (ROOT / "tests").rglob("*.py")
        if not any(path.match(folder) for folder in OTHER_CLOCKS)
    ]
    counted = {p.relative_to(ROOT).as_posix(): len(rule(p.read_text("utf-8"))) for p in files}
    return {name: count for name, count in counted.items() if count}


def test_tests_wait_for_what_happens_and_not_for_a_time() -> None:
    """`tests.support.eventually` waits; what hangs until it is cancelled is its `never`."""
    assert found_in_tests(long_sleeps) == SLEEPING


def test_no_test_asserts_how_long_something_took() -> None:
    """A busy machine is no fault of the code."""
    assert found_in_tests(clock_assertions) == TIMED


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("import time\ntime.sleep(0.3)", [2]),
        ("async def a():\n    await asyncio.sleep(5)", [2]),
        ("time.sleep(0.05)\nawait asyncio.sleep(EVERY_S)", []),
        ("eventually(lambda: seen)\nawait never()", []),
    ],
)
def test_a_long_sleep_is_seen(text: str, lines: list[int]) -> None:
    assert long_sleeps(text) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("begun = time.monotonic()\nassert time.monotonic() - begun < 2", [2]),
        ("took = time.perf_counter() - begun\nassert took < 2", [2]),
        ("assert 0.8 < loop.time() - begun_s < 3", [1]),
        ("assert clock.now() - begun < DAY", []),
        ("begun = time.monotonic()\nassert meter.read <= 48 * len(text)", []),
    ],
)
def test_an_assertion_about_the_clock_is_seen(text: str, lines: list[int]) -> None:
    assert clock_assertions(text) == lines
