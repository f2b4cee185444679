"""Says which migrations a database lacks and what each does to its tables, and runs none.

What a migration does is read from its file: its description, and the operations that it calls.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

_EFFECTS: Final = {
    "create_table": "makes the table {}",
    "add_column": "adds columns to {}: locks it, and rewrites no row",
    "create_index": "makes indexes of {}: reads all its rows, and writers of it wait meanwhile",
    "drop_index": "removes indexes of {}: locks it",
}
"""On PostgreSQL; SQLite locks its whole file. Columns with a constant default rewrite nothing.
Source: PostgreSQL manual, ALTER TABLE and CREATE INDEX."""

_OTHER: Final = "runs statements of its own, which may read or change every row: see its file"
_UNNAMED: Final = "tables that its file names"
_TABLE_FIRST: Final = frozenset({"create_table", "add_column"})


class SchemaTooNew(RuntimeError):
    """The database was created by a newer version of the service."""


@dataclass(frozen=True, slots=True)
class PlannedMigration:
    """A migration that the database lacks."""

    revision: str
    says: Sequence[str]
    """Its own description: what it is for, and what it does."""
    effects: Sequence[str]
    """What it does to each table, in plain words."""


def configured(**attributes: object) -> "Config":
    """Return the configuration for Alembic's commands."""
    # Imported only when needed: it costs a start a tenth of a second.
    from alembic.config import Config  # noqa: PLC0415

    config = Config(attributes=attributes)
    config.set_main_option("script_location", "assay.db:migrations")
    config.set_main_option("path_separator", "os")
    return config


def scripts() -> "ScriptDirectory":
    """Return the migrations of this version."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    return ScriptDirectory.from_config(configured())


def current_revision(connection: Connection, known: "ScriptDirectory") -> str | None:
    """Return the database's revision; None if it has no schema. Raises `SchemaTooNew`."""
    from alembic.runtime.migration import MigrationContext  # noqa: PLC0415

    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in {one.revision for one in known.walk_revisions()}:
        raise SchemaTooNew(
            f"the database is at schema {current}, newer than this version of Assay: upgrade Assay"
        )
    return current


def planned(known: "ScriptDirectory", current: str | None) -> Sequence[PlannedMigration]:
    """Return what a database at this revision lacks, in the order in which it would run."""
    lacking = [*known.iterate_revisions("head", current or "base")]
    return [_planned(one.revision, Path(one.path)) for one in reversed(lacking)]


def _planned(revision: str, path: Path) -> PlannedMigration:
    module = ast.parse(path.read_text("utf-8"))
    [upgrade] = [
        node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "upgrade"
    ]
    says = [ast.get_docstring(module), ast.get_docstring(upgrade)]
    return PlannedMigration(
        revision, [" ".join(one.split()) for one in says if one], _effects(module)
    )


def _effects(module: ast.Module) -> Sequence[str]:
    """Return each effect once, tables that it makes first."""
    calls = [*_calls(module)]
    made = {table for name, table in calls if name == "create_table"}
    found: dict[str, None] = {}
    for kind, effect in _EFFECTS.items():
        for name, table in calls:
            if name == kind and (kind == "create_table" or table not in made):
                found[effect.format(table)] = None
    if any(name not in _EFFECTS for name, _ in calls):
        found[_OTHER] = None
    return [*found]


def _calls(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each operation with its table. Another one than those of tables has none."""
    for node in ast.walk(module):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, of = node.func.attr, node.func.value
        is_operation = isinstance(of, ast.Name) and of.id == "op" and name not in {"f", "get_bind"}
        if not is_operation and name != "execute":
            continue
        place = 0 if name in _TABLE_FIRST else 1
        given = node.args[place] if len(node.args) > place else None
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            yield name, given.value
        else:
            yield name, _UNNAMED
