"""The schemas of both databases, as the databases themselves report them once they are migrated."""

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import asyncpg

_COLUMNS = """
SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required,
       a.attidentity::text AS identity, pg_get_expr(d.adbin, d.adrelid) AS default
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_CONSTRAINTS = """
SELECT conname AS name, pg_get_constraintdef(oid) AS said FROM pg_constraint
WHERE conrelid = $1::oid AND contype <> 'n' ORDER BY contype, conname
"""
_INDEXES = """
SELECT pg_get_indexdef(i.indexrelid) AS said FROM pg_index i
WHERE i.indrelid = $1::oid AND NOT EXISTS
      (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid AND c.conrelid = i.indrelid)
ORDER BY i.indexrelid::regclass::text
"""
_TABLES = """
SELECT oid, relname AS name FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') ORDER BY relname
"""
_OTHERS = """
SELECT 'TRIGGER ' || pg_get_triggerdef(oid) AS said FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT 'FUNCTION ' || pg_get_functiondef(oid) FROM pg_proc
WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT 'VIEW ' || viewname || ' AS ' || definition FROM pg_views
WHERE schemaname = 'public'
UNION ALL SELECT 'SEQUENCE ' || sequencename || ' ' || data_type::text FROM pg_sequences
WHERE schemaname = 'public' ORDER BY said
"""


def sqlite(migrate: Callable[[Path], object]) -> str:
    """Every table with its indexes, by name; `migrate` puts a new database at a path."""
    with tempfile.TemporaryDirectory() as folder:
        migrate(path := Path(folder) / "assay.db")
        connection = sqlite3.connect(path)
        found = connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name"
        ).fetchall()
        connection.close()
    return "".join(f"{_trimmed(sql)};\n\n" for (sql,) in found)


def postgresql(url: str) -> str:
    """The same of a PostgreSQL: each column, constraint and index, then what is no table."""
    with ThreadPoolExecutor(1) as thread:  # the caller may have a running loop
        return thread.submit(asyncio.run, _read(url)).result()


async def _read(url: str) -> str:
    connection = await asyncpg.connect(url)
    try:
        parts = [await _table(connection, row) for row in await connection.fetch(_TABLES)]
        others = [f"{row['said'].strip()};\n" for row in await connection.fetch(_OTHERS)]
    finally:
        await connection.close()
    return "\n".join([*parts, *others])


async def _table(connection: Any, table: Any) -> str:  # noqa: ANN401 - the library has no types
    columns = [_column(row) for row in await connection.fetch(_COLUMNS, table["oid"])]
    bounds = [
        f"CONSTRAINT {row['name']} {row['said']}"
        for row in await connection.fetch(_CONSTRAINTS, table["oid"])
    ]
    indexes = [f"{row['said']};\n" for row in await connection.fetch(_INDEXES, table["oid"])]
    body = ",\n".join(f"    {line}" for line in (*columns, *bounds))
    return f"CREATE TABLE {table['name']} (\n{body}\n);\n{''.join(indexes)}"


def _column(row: Any) -> str:  # noqa: ANN401 - as above
    return " ".join(_words(row))


def _words(row: Any) -> Iterator[str]:  # noqa: ANN401 - as above
    yield row["name"]
    yield row["type"]
    if row["default"] is not None:
        yield f"DEFAULT {row['default']}"
    if row["identity"]:
        yield f"IDENTITY {row['identity']}"
    if row["required"]:
        yield "NOT NULL"


def _trimmed(sql: str) -> str:
    return "\n".join(line.rstrip() for line in sql.strip().splitlines())
