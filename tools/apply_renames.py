"""Moves modules of the package to the places that `tools/renames.toml` gives them.

./.venv/bin/python tools/apply_renames.py

Moves each file with git and rewrites imports, dotted names in strings, and paths in sources, pages
and configuration. What has moved already is left alone, so that the program can be run again, on
another branch as well. Formatting is left to `./assay check fix`.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tools/renames.toml"
PACKAGE = "assay"

FROZEN = ("CHANGELOG.md", "UPGRADING.md", "requirements/", "tests/golden/", "tools/renames.toml")
"""History, locks and golden files say what was."""

TEXTS = (".py", ".md", ".toml", ".importlinter", ".ini", "ci/run", "tools/release")


def main() -> None:
    """Move and rewrite everything; prints how many files changed."""
    table = tomllib.loads(TABLE.read_text("utf-8"))
    modules, packages = (
        {f"{PACKAGE}.{old}": f"{PACKAGE}.{new}" for old, new in table[kind].items()}
        for kind in ("modules", "packages")
    )
    for old, new in modules.items():
        move(place(old).with_suffix(".py"), place(new).with_suffix(".py"))
    stays = {place(new).with_suffix(".py") for new in modules.values()}
    for old, new in packages.items():
        for held in sorted(place(old).iterdir() if place(old).is_dir() else ()):
            if held.is_file() and held not in stays:
                move(held, place(new) / held.name)
    for old in table["dissolved"]:
        if (place(f"{PACKAGE}.{old}") / "__init__.py").exists():
            git("rm", "-q", str(place(f"{PACKAGE}.{old}") / "__init__.py"))
    rewriter = Rewriter(modules, packages)
    changed = [path for path in texts() if rewriter.rewrite(path)]
    sys.stdout.write(f"{len(changed)} files rewritten\n")


def move(source: Path, target: Path) -> None:
    """Move a file, if it has not moved already."""
    if source == target or not source.exists():
        return
    if target.exists():
        raise SystemExit(f"{target} is there already: {source} cannot move to it")
    target.parent.mkdir(parents=True, exist_ok=True)
    git("mv", str(source), str(target))


def place(module: str) -> Path:
    """The folder of a package; of a module, its file without the ending."""
    return ROOT / "src" / Path(*module.split("."))


def texts() -> Iterator[Path]:
    """Every file that may name a module."""
    for name in git("ls-files", "-z").split("\0"):
        is_frozen = name.startswith(FROZEN) or "/migrations/versions/" in name
        if name.endswith(TEXTS) and not is_frozen and (ROOT / name).is_file():
            yield ROOT / name


def git(*words: str) -> str:
    """What git prints."""
    command = ["git", *words]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603 - our own words


class Rewriter:
    """Puts new names of modules in place of old ones."""

    def __init__(self, modules: Mapping[str, str], packages: Mapping[str, str]) -> None:
        self._moved = {**modules, **packages}
        self._dotted = re.compile(rf"(?<![\w.]){any_of(self._moved)}(?![\w])")
        self._files = {f"{path_of(old)}.py": f"{path_of(new)}.py" for old, new in modules.items()}
        self._file = re.compile(
            rf"((?<![\w.-])(?:src/)?{PACKAGE}/|(?<![\w./-])){any_of(self._files)}(?!\w)"
        )
        self._folders = {path_of(old): path_of(new) for old, new in packages.items()}
        self._folder = re.compile(rf"(?<![\w.-])((?:src/)?{PACKAGE}/){any_of(self._folders)}(?!\w)")

    def rewrite(self, path: Path) -> bool:
        """Whether the file changed."""
        before = path.read_text("utf-8")
        text = self._imports(before) if path.suffix == ".py" else before
        text = self._dotted.sub(lambda found: self._moved[found[1]], text)
        text = self._file.sub(lambda found: f"{found[1]}{self._files[found[2]]}", text)
        text = self._folder.sub(lambda found: f"{found[1]}{self._folders[found[2]]}", text)
        if text != before:
            path.write_text(text, "utf-8")
        return text != before

    def _imports(self, text: str) -> str:
        """Statements that import modules by their last names; all others are dotted names."""
        lines = text.splitlines(keepends=True)
        for node in reversed(list(ast.walk(ast.parse(text)))):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                fresh = self._import(node.module, node.names)
                if fresh is not None:
                    indent = " " * node.col_offset
                    old = "".join(lines[node.lineno - 1 : node.end_lineno])
                    reason = re.search(r"  # .*", old)
                    tail = f"{reason[0].rstrip()}\n" if reason else "\n"
                    lines[node.lineno - 1 : node.end_lineno] = [
                        "".join(f"{indent}{one}{tail}" for one in fresh)
                    ]
        return "".join(lines)

    def _import(self, module: str, names: list[ast.alias]) -> list[str] | None:
        modules = [one for one in names if f"{module}.{one.name}" in self._moved]
        if not modules:
            return None
        rest = [one for one in names if one not in modules]
        fresh = [f"from {module} import {', '.join(map(ast.unparse, rest))}"] if rest else []
        for one in modules:
            package, _, name = self._moved[f"{module}.{one.name}"].rpartition(".")
            called = one.asname or one.name
            fresh.append(f"from {package} import {name}" + (f" as {called}" * (called != name)))
        return fresh


def any_of(names: Iterable[str]) -> str:
    """A pattern of any of the names, the longest first."""
    return f"({'|'.join(re.escape(name) for name in sorted(names, key=len, reverse=True))})"


def path_of(module: str) -> str:
    """The path of a module inside the package, without its ending."""
    return "/".join(module.split(".")[1:])


if __name__ == "__main__":
    main()
