"""Copies a database that is in use, restores the copy, and proves that both hold the same rows.

SQLite is copied by its online backup within one read transaction: copying the file alone loses what
is in the write-ahead log. PostgreSQL is copied by `pg_dump`, which must be as new as the server.
Sources: https://sqlite.org/backup.html; PostgreSQL manual, "pg_dump" and "pg_restore".
"""

import asyncio
import hashlib
import os
import sqlite3
import struct
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.db.connect import DatabaseKind
from assay.db.engine import Database

COPY_S: Final = 24 * 3600.0
"""Time limit of one copy, and of one restore."""

_BUSY_S: Final = 30.0
_CHUNK: Final = 1_000
_ERROR_CHARS: Final = 400
_DIGEST_MODULUS: Final = 1 << 256


class CopyFailed(RuntimeError):
    """The database could not be copied or restored; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class TableDigest:
    """How many rows a table has, and a digest of them in hex that no order of rows changes."""

    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class DatabaseContent:
    """What a database holds: its schema's revision (None: it has no schema), and its tables."""

    kind: DatabaseKind
    revision: str | None
    tables: Mapping[str, TableDigest]


async def copy_database(url: str, target: Path) -> DatabaseContent:
    """Copy the database at `url` to the new file `target`; return the content of the copy.

    The copy is what was committed at one moment after the call. Writers do not wait for it. Raises
    `CopyFailed`, `DatabaseUrlError` and `Unavailable`.
    """
    if (path := _sqlite_path(url)) is not None:
        return await asyncio.to_thread(_copy_sqlite, path, target)
    database = await Database.open(url)
    try:
        async with database.snapshot(COPY_S) as connection:
            for limit in ("idle_in_transaction_session_timeout", "statement_timeout"):
                await connection.execute(text(f"SET LOCAL {limit} = 0"))  # it idles meanwhile
            exported = await connection.execute(text("SELECT pg_export_snapshot()"))
            await _run(
                "pg_dump",
                url,
                f"--snapshot={exported.scalar_one()}",
                "--format=custom",
                "--no-owner",
                "--no-privileges",
                f"--file={target}",
            )
            return await _content(connection)
    finally:
        await database.close()


async def restore_database(url: str, copy: Path) -> None:
    """Create the database at `url` from a copy of the same kind; it must have no tables yet.

    It is there as a whole or not at all. Raises like `copy_database`.
    """
    if (path := _sqlite_path(url)) is not None:
        await asyncio.to_thread(_place, copy, path)
        return
    await require_empty(url)
    await _run(
        "pg_restore",
        url,
        "--single-transaction",
        "--exit-on-error",
        "--no-owner",
        "--no-privileges",
        str(copy),
        names_database=True,
    )


async def require_empty(url: str) -> None:
    """Raise `CopyFailed` if there is anything in the database at `url`."""
    path = _sqlite_path(url)
    if path is not None:
        await asyncio.to_thread(_require_no_file, path)
    if path is None and (await describe_database(url)).tables:
        raise CopyFailed("the database has tables already: name an empty one in ASSAY_DATABASE_URL")


async def describe_database(url: str) -> DatabaseContent:
    """Return what the database at `url` holds at one moment. Raises like `copy_database`."""
    if (path := _sqlite_path(url)) is not None:
        return await asyncio.to_thread(_content_of_file, path)
    database = await Database.open(url)
    try:
        async with database.snapshot(COPY_S) as connection:
            await connection.execute(text("SET LOCAL statement_timeout = 0"))
            return await _content(connection)
    finally:
        await database.close()


def _sqlite_path(url: str) -> Path | None:
    scheme, _, rest = url.partition("://")
    return Path(rest.removeprefix("/")) if scheme == "sqlite" else None


def _copy_sqlite(path: Path, target: Path) -> DatabaseContent:
    if not path.exists():
        raise CopyFailed(f"there is no database at {path}: check ASSAY_DATA_DIR")
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with (
            closing(sqlite3.connect(path, timeout=_BUSY_S)) as source,
            closing(sqlite3.connect(target)) as copy,
        ):
            # All pages in one step: a copy in parts starts again whenever another process writes.
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise CopyFailed(f"cannot copy {path}: {error}") from error
    return _content_of_file(target)


def _require_no_file(path: Path) -> None:
    """Raise `CopyFailed` if there is a database, or the log of one: SQLite would replay it."""
    for name in ("", "-wal", "-shm", "-journal"):
        found = path.with_name(path.name + name)
        if found.exists():
            raise CopyFailed(
                f"there is a database at {found} already: move {path.name} away with all files"
                " whose names begin like that"
            )


def _place(copy: Path, path: Path) -> None:
    """Move a copy to where the database belongs, unless there is one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _require_no_file(path)
    try:
        os.link(copy, path)
    except FileExistsError:
        raise CopyFailed(f"there is a database at {path} already: move it away first") from None
    copy.unlink()


def _content_of_file(path: Path) -> DatabaseContent:
    if not path.exists():
        return DatabaseContent("sqlite", None, {})
    try:
        with closing(sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if damage != "ok":
                raise CopyFailed(f"{path} is damaged: {damage}")
            named = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
            tables: dict[str, TableDigest] = {}
            for (name,) in named.fetchall():
                columns = [
                    row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(name)})")
                ]
                digest = _Digest()
                digest.add(connection.execute(_rows_of(name, columns)))
                tables[name] = digest.result()
            revision = None
            if "alembic_version" in tables:
                found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
                revision = found and str(found[0])
            return DatabaseContent("sqlite", revision, tables)
    except sqlite3.Error as error:
        raise CopyFailed(f"cannot read {path}: {error}") from error


async def _content(connection: AsyncConnection) -> DatabaseContent:
    tables: dict[str, TableDigest] = {}
    for name, columns in (await connection.run_sync(_columns)).items():
        digest = _Digest()
        async with connection.stream(text(_rows_of(name, columns))) as rows:
            async for part in rows.partitions(_CHUNK):
                digest.add(part)
        tables[name] = digest.result()
    revision: str | None = None
    if "alembic_version" in tables:
        found = await connection.execute(text("SELECT version_num FROM alembic_version"))
        revision = found.scalar_one_or_none()
    return DatabaseContent("postgresql", revision, tables)


def _columns(connection: Connection) -> Mapping[str, Sequence[str]]:
    found = inspect(connection)
    return {
        name: [column["name"] for column in found.get_columns(name)]
        for name in found.get_table_names()
    }


def _rows_of(table: str, columns: Sequence[str]) -> str:
    """Return the query of all rows, with sorted columns: a restore may change their order."""
    names = ", ".join(map(_quoted, sorted(columns)))
    return f"SELECT {names} FROM {_quoted(table)}"  # noqa: S608 - names that the database gave


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


class _Digest:
    """Adds up the hashes of rows, so that no order matters and nothing has to be sorted."""

    def __init__(self) -> None:
        self._rows, self._sum = 0, 0

    def add(self, rows: Iterable[Sequence[object]]) -> None:
        for row in rows:
            hashed = hashlib.sha256(b"".join(map(_encoded, row))).digest()
            self._sum = (self._sum + int.from_bytes(hashed, "big")) % _DIGEST_MODULUS
            self._rows += 1

    def result(self) -> TableDigest:
        return TableDigest(self._rows, self._sum.to_bytes(32, "big").hex())


def _encoded(value: object) -> bytes:
    """Return a value with its type and length, so that no two rows are encoded alike."""
    match value:
        case None:
            return b"n"
        case bool():
            return b"t" if value else b"f"
        case float():
            return b"d" + struct.pack(">d", value)
        case str():
            kind, data = b"s", value.encode("utf-8", "surrogatepass")
        case bytes():
            kind, data = b"b", value
        case _:
            kind, data = b"o", str(value).encode()
    return kind + len(data).to_bytes(8, "big") + data


async def _run(program: str, url: str, *options: str, names_database: bool = False) -> None:
    """Run a program of PostgreSQL's on the database; the password is never an argument."""
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        address = _without_password(url, Path(folder) / "password")
        where = [f"--dbname={address}"] if names_database else [address]
        await _call(program, *options, *where)


async def _call(program: str, *arguments: str) -> None:
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError:
        raise CopyFailed(
            f"{program} is not installed: install PostgreSQL's client programs, of the server's"
            " version or newer"
        ) from None
    try:
        _, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        said = " ".join(errors.decode("utf-8", "replace").split())
        raise CopyFailed(f"{program} failed: {said[:_ERROR_CHARS]}")


def _without_password(url: str, file: Path) -> str:
    """Return the URL with its password in `file` instead, for other users see arguments.

    Source: PostgreSQL manual, sections 34.1.2 (`passfile`) and 34.16.
    """
    head, _, query = url.partition("?")
    scheme, _, rest = head.partition("://")
    authority, slash, path = rest.partition("/")
    credentials, _, host = authority.rpartition("@")
    user, _, own = credentials.partition(":")
    options = [option for option in query.split("&") if option]
    kept = [option for option in options if not option.startswith("password=")]
    given = [option.removeprefix("password=") for option in options if option not in kept]
    password = unquote(given[-1] if given else own)
    if not password:
        return url
    escaped = password.replace("\\", "\\\\").replace(":", "\\:")
    file.touch(0o600)
    file.write_text(f"*:*:*:*:{escaped}\n", "utf-8")
    where = f"{user}@{host}" if user else host
    query = "&".join([*kept, f"passfile={quote(str(file), safe='')}"])
    return f"{scheme}://{where}{slash}{path}?{query}"
