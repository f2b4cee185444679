"""Runs the unit tests of the pure modules, and fails unless they reach every branch of each.

./assay check pure

Pure modules are those of the contract `pure` in `.importlinter`: `model.py` of each feature, the
rules of grades and of reputation, and the like. Its tests are the files in the `unit` folder of its
own feature that import it. Only those run, and only pure modules are traced, for the sake of time.
"""

import ast
import configparser
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def pure_modules() -> list[str]:
    """The files of the modules that the contract names, as paths below the checkout."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", "utf-8")
    named = contracts["importlinter:contract:pure"]["source_modules"].split()
    found = [p for name in named for p in (ROOT / "src").glob(name.replace(".", "/") + ".py")]
    return sorted({p.relative_to(ROOT).as_posix() for p in found})


def tests_of(modules: list[str]) -> list[str]:
    """The unit tests that import a pure module of their own feature."""
    names = {path.removeprefix("src/").removesuffix(".py").replace("/", ".") for path in modules}
    found: list[str] = []
    for path in sorted((ROOT / "tests").glob("*/unit/test_*.py")):
        feature = f"assay.{path.parent.parent.name}."
        own = {name for name in names if name.startswith(feature)}
        if own.intersection(_imported(ast.parse(path.read_text("utf-8")))):
            found.append(str(path))
    return found


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


def main() -> None:
    """Run the tests; ends with the status of pytest."""
    modules = pure_modules()
    traced = "\n  ".join(modules)
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "coverage.ini"
        settings.write_text(
            f"[run]\nbranch = true\ndata_file = {folder}/data\ninclude =\n  {traced}\n"
            "[report]\nfail_under = 100\nshow_missing = true\nskip_covered = true\n"
            "exclude_also =\n  if TYPE_CHECKING:\n  : +\\.\\.\\.$\n  assert_never\\(\n",
            "utf-8",
        )
        command = [*(sys.executable, "-m", "pytest", "-q"), *sys.argv[1:], *tests_of(modules)]
        command += ["--cov", f"--cov-config={settings}", "--cov-report=term-missing:skip-covered"]
        sys.exit(subprocess.run(command, cwd=ROOT, check=False).returncode)  # noqa: S603 - our own words


if __name__ == "__main__":
    main()
