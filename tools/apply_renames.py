"""Moves modules and renames what they define, as `tools/renames.toml` says.

./.venv/bin/python tools/apply_renames.py

Moves each file with git and rewrites imports, dotted names in strings, and paths in sources, pages
and configuration. A name is renamed in the module that defines it and where it is imported from
there, never anywhere else. What is done already is left alone, so that the program can be run
again, on another branch as well. Formatting is left to `./assay check fix`.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
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
    names = {f"{PACKAGE}.{old}": new for old, new in table["names"].items()}
    changed = {path for path in texts() if rewriter.rewrite(path)}
    changed |= {path for path in texts() if path.suffix == ".py" and rename_in(path, names)}
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


def rename_in(path: Path, names: Mapping[str, str]) -> bool:
    """Rename what a module defines or imports; whether the file changed."""
    before = path.read_text("utf-8")
    tree = ast.parse(before)
    plain, members = _renamed(tree, module_at(path), names)
    text = before
    if plain or members:
        text = "".join(_tokens(before, plain, members))
    for old, new in names.items():
        module, _, name = old.partition(":")
        text = re.sub(rf"(?<![\w.]){re.escape(module)}\.{name}(?!\w)", f"{module}.{new}", text)
    if text != before:
        path.write_text(text, "utf-8")
    return text != before


def _renamed(
    tree: ast.Module, module: str, names: Mapping[str, str]
) -> tuple[Mapping[str, str], Mapping[tuple[str, str], str]]:
    """Names with their new ones, and the same for members of modules that are imported whole."""
    plain = {
        old.partition(":")[2]: new for old, new in names.items() if old.partition(":")[0] == module
    }
    members: dict[tuple[str, str], str] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        for alias in node.names:
            new = names.get(f"{node.module}:{alias.name}")
            if new is not None:
                plain[alias.name] = new
            whole = f"{node.module}.{alias.name}"
            members |= {
                (alias.asname or alias.name, old.partition(":")[2]): new
                for old, new in names.items()
                if old.partition(":")[0] == whole
            }
    return plain, members


def _tokens(
    text: str, plain: Mapping[str, str], members: Mapping[tuple[str, str], str]
) -> Iterator[str]:
    """The text again, with new names; in strings where they stand between backticks or alone."""
    quoted = re.compile(rf"(?<=`){any_of(plain)}(?=[`.(\[])") if plain else None
    annotation = re.compile(rf"(?<![\w.]){any_of(plain)}(?!\w)") if plain else None
    lines = text.splitlines(keepends=True)
    row, column = 1, 0
    before: list[str] = ["", ""]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        (start_row, start_column), (end_row, end_column) = token.start, token.end
        while row < start_row:
            yield lines[row - 1][column:]
            row, column = row + 1, 0
        if row == start_row and row <= len(lines):
            yield lines[row - 1][column:start_column]
        word = token.string
        if token.type == tokenize.NAME:
            is_member = before[1] == "."
            found = members.get((before[0], word)) if is_member else plain.get(word)
            word = found or word
        elif token.type in {tokenize.STRING, tokenize.COMMENT} and quoted and annotation:
            word = quoted.sub(lambda found: plain[found[1]], word)
            if re.fullmatch(r"[\"'][\w.\[\], |]*[\"']", word) and before[1] in {
                ":",
                ">",
                "[",
                "|",
                ",",
            }:
                word = annotation.sub(lambda found: plain[found[1]], word)
        yield word
        if token.type not in {tokenize.NL, tokenize.COMMENT}:
            before = [before[1], token.string]
        row, column = end_row, end_column


def module_at(path: Path) -> str:
    """The module that a file of the package is."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    inside = parts[1:] if parts[0] == "src" else parts
    return ".".join(inside[:-1] if inside[-1] == "__init__" else inside)


def any_of(names: Iterable[str]) -> str:
    """A pattern of any of the names, the longest first."""
    return f"({'|'.join(re.escape(name) for name in sorted(names, key=len, reverse=True))})"


def path_of(module: str) -> str:
    """The path of a module inside the package, without its ending."""
    return "/".join(module.split(".")[1:])


if __name__ == "__main__":
    main()
