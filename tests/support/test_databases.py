"""A database that is lent again is as new."""

import subprocess

from tests.support.databases import lent_postgresql, migrated_postgresql
from tests.support.postgres import postgres

_TABLES = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
)
_AUDIT_ENTRY = (
    "INSERT INTO audit (id, at_us, actor_kind, client, request_id, action, operator_id, target,"
    " details) VALUES ('i', 1, 'admin', '', '', 'a', 'o', 't', '{}') RETURNING seq"
)


def rows_of(url: str) -> dict[str, int]:
    """How many rows each table has."""
    tables = postgres().ask(_TABLES, url).split()
    counts = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for name in tables)  # noqa: S608 - names of the schema
    return {
        name: int(count)
        for name, _, count in (line.partition("|") for line in postgres().ask(counts, url).split())
    }


def test_a_lent_database_comes_back_with_the_rows_of_a_new_one_and_counts_from_one() -> None:
    with lent_postgresql() as first:
        before = postgres().ask(_AUDIT_ENTRY, first)
    with lent_postgresql() as second:
        assert second == first
        assert rows_of(second) == rows_of(migrated_postgresql())
        assert postgres().ask(_AUDIT_ENTRY, second) == before == "1"


def test_a_database_with_another_schema_is_lent_to_nobody() -> None:
    with lent_postgresql() as first:
        postgres().ask("ALTER TABLE operators ADD COLUMN more text", first)
    with lent_postgresql() as second:
        assert second != first


def test_a_database_that_somebody_holds_is_lent_to_nobody() -> None:
    with lent_postgresql() as first:
        command = [postgres().program("psql"), "-qXAt", first]
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write(b"BEGIN; LOCK TABLE operators; SELECT 'held';\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == b"held\n"
    holder.communicate()
    with lent_postgresql() as second:
        assert second != first
