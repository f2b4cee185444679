"""Every path that the configuration and the pages name exists."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "docs", "tools", "bench", "requirements", ".ci")
"""Whatever begins with one of these is a path of ours, in any text."""

STARTS = (ROOT, ROOT / "src", ROOT / "src/assay")
"""What a path may be written from, beside the folder of the page that names it."""

NOT_OURS = frozenset({"tools/call", "tools/list"})
"""Methods of MCP."""

SCRIPTS = (".ci/run", "assay", "requirements/lock", "requirements/runtime.txt", "tools/release")
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if page.name != "CHANGELOG.md"  # names what was there at its time
)

_SEGMENT = r"[\w.*<>{},-]+"
_PATH = re.compile(rf"(?<![\w/.:*<>{{}}%$~@=-])(?:{_SEGMENT}/)+(?:{_SEGMENT})?")
_SOURCE = re.compile(r"\.(?:py|md|mjs|toml)$")
_MODULE = re.compile(r"(?m)^ *(assay(?:\.[\w*]+)*)$")


def paths_in(text: str) -> Iterator[str]:
    """What can be nothing but a path of ours: it begins with our folder, or ends as a source."""
    for found in _PATH.findall(re.sub(r"\$\{?(?:root|ROOT)\}?/", "", text)):
        path = found.rstrip(".,")
        is_ours = path.split("/")[0] in FOLDERS or _SOURCE.search(path)
        if is_ours and path not in NOT_OURS:
            yield path


def exists(path: str, *starts: Path) -> bool:
    """Whether something is there, whatever stands for `<name>`, `*` or `{one,another}`."""
    alternatives = re.search(r"\{([^{}]*)\}", path)
    if alternatives:
        before, after = path[: alternatives.start()], path[alternatives.end() :]
        each = alternatives[1].split(",")
        return all(exists(f"{before}{one}{after}", *starts) for one in each)
    pattern = re.sub(r"<[^<>]*>", "*", path).rstrip("/")
    if "*" not in pattern:
        return any((start / pattern).exists() for start in starts)
    return any(next(start.glob(pattern), None) is not None for start in starts)


def missing_in(name: str) -> list[str]:
    """The paths a text names that lead nowhere."""
    starts = (*STARTS, (ROOT / name).parent)
    text = (ROOT / name).read_text("utf-8")
    return sorted({path for path in paths_in(text) if not exists(path, *starts)})


@cache
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def configured() -> Iterator[str]:
    """The paths of pyproject.toml, each where its tool looks for it."""
    tool = project()["tool"]
    yield project()["project"]["readme"]
    yield from tool["hatch"]["build"]["targets"]["wheel"]["packages"]
    yield from tool["ruff"]["src"]
    yield from tool["ruff"]["lint"]["per-file-ignores"]
    yield from tool["pyright"]["include"]
    yield from tool["pytest"]["ini_options"]["testpaths"]
    yield from tool["pytest"]["ini_options"]["pythonpath"]
    yield from (f"src/{name}" for name in tool["coverage"]["run"]["source"])


def test_every_path_of_the_configuration_exists() -> None:
    assert [path for path in configured() if not exists(path, ROOT)] == []


def test_every_module_of_the_arrows_exists() -> None:
    """The tool itself is silent about a module that is forbidden to nobody."""
    modules = set(_MODULE.findall((ROOT / ".importlinter").read_text("utf-8")))
    assert "assay.gate.decision" in modules
    paths = {module: module.replace(".", "/") for module in modules}
    sources = ROOT / "src"
    found = {m for m, p in paths.items() if exists(p, sources) or exists(f"{p}.py", sources)}
    assert sorted(modules - found) == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_path_of_a_script_exists(name: str) -> None:
    assert missing_in(name) == []


def test_every_path_of_a_page_exists() -> None:
    assert {page: missing for page in PAGES if (missing := missing_in(page))} == {}


def test_every_file_that_a_page_names_without_its_folder_exists() -> None:
    names = {path.name for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    assert "service.py" in names
    named = {page: re.findall(r"`(\w+\.py)`", (ROOT / page).read_text("utf-8")) for page in PAGES}
    wrong = {page: sorted(set(found) - names) for page, found in named.items()}
    assert {page: found for page, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    "text",
    [
        "see `tests/common/unit/test_gone.py::test_x`",
        ".venv/bin/python bench/gone.py",
        "| a probe | `trust/gone/<name>.py` |",
        "[layout](decisions/0099-gone.md)",
        'src = ["src/gone/**"]',
        "under docs/gone/, too",
        "`src/assay/{kit,gone}/**`",
    ],
)
def test_a_path_that_leads_nowhere_is_noticed(text: str) -> None:
    (path,) = [one for one in paths_in(text) if "gone" in one]
    assert not exists(path, *STARTS)


@pytest.mark.parametrize(
    "text",
    ["/docs/docs.js", "https://a.example/docs/x.md", "text/plain", "swagger/v1/swagger.json"],
)
def test_what_is_no_path_of_ours_is_left_alone(text: str) -> None:
    assert list(paths_in(text)) == []
