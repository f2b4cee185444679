"""A backup holds all that was committed when it began; a restore proves it or says what differs."""

import io
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from assay.app.backup import (
    BackupCheck,
    BackupFailed,
    restore_backup,
    verify_backup,
    write_backup,
)
from assay.app.secrets import rotate_secret, secret_rings
from assay.db.backup import CopyFailed, _without_password
from assay.evaluation.blobs import cid_v1_raw
from assay.settings import Settings
from tests.support.cases import first_then_slow
from tests.support.databases import lent_postgresql, migrated_sqlite
from tests.support.fakes.clock import FrozenClock
from tests.support.postgres import postgres
from tests.support.starting import HUNG_S

NOW = FrozenClock().now()
KINDS = ("sqlite", "postgresql")
ROWS = (
    "INSERT INTO operators (id, name, email, email_lower, password_hash, role, plan, fee_rate,"
    " created_us, updated_us, totp_secret) VALUES ('{n}', 'Jörg', 'a{n}@x.org', 'a{n}@x.org', ' ',"
    " 'operator', 'free', '0', {n}, 0, {sealed})"
)


class Installation:
    """A data directory and a database, which `sql` changes as a service would."""

    def __init__(self, folder: Path, url: str | None) -> None:
        self.folder, self.url = folder, url
        self.settings = Settings(data_dir=folder, database_url=url)

    def add(self, n: int) -> None:
        sealed = f"X'{n:04}ff'" if self.url is None else f"'\\x{n:04}ff'"
        self.sql(ROWS.format(n=n, sealed=sealed))

    def sql(self, statement: str) -> None:
        if self.url is not None:
            postgres().ask(statement, self.url)
            return
        with closing(sqlite3.connect(self.folder / "assay.db", isolation_level=None)) as connection:
            connection.execute(statement)

    def block(self, data: bytes) -> Path:
        path = self.folder / "blocks" / cid_v1_raw(data)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return path

    def ids(self, table: str) -> set[str]:
        if self.url is not None:
            return set(postgres().ask(f"SELECT id FROM {table}", self.url).split())  # noqa: S608
        with closing(sqlite3.connect(self.folder / "assay.db")) as connection:
            return {row[0] for row in connection.execute(f"SELECT id FROM {table}")}  # noqa: S608


@pytest.fixture(params=KINDS)
def made(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Installation]:
    """An installation with rows, two snapshots and secrets."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    if request.param == "sqlite":
        migrated_sqlite(folder / "assay.db")
        yield filled(Installation(folder, None))
        return
    monkeypatch.setenv("PATH", str(postgres().program("pg_dump").parent), prepend=os.pathsep)
    with lent_postgresql() as url:
        yield filled(Installation(folder, url))


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Installation:
    """The same on SQLite alone, where the database makes no difference."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    migrated_sqlite(folder / "assay.db")
    return filled(Installation(folder, None))


def filled(one: Installation) -> Installation:
    for n in range(1, 41):
        one.add(n)
    secret_rings(one.settings, NOW)
    one.block(b"first")
    one.block(b"second")
    return one


def elsewhere(made: Installation, tmp_path: Path, name: str = "restored") -> Installation:
    """An empty installation of the same kind."""
    return Installation(tmp_path / name, made.url and postgres().new_database())


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def holds(checks: Any) -> bool:
    return all(check.holds for check in checks)


def said(checks: Any) -> str:
    return "; ".join(check.sentence for check in checks if not check.holds)


def test_a_restored_backup_holds_everything(made: Installation, tmp_path: Path) -> None:
    summary = write_backup(made.settings, tmp_path / "b.tar", NOW)
    assert (summary.blocks, summary.files) == (2, ["secrets.json"])
    assert (tmp_path / "b.tar").stat().st_mode & 0o777 == 0o600
    other = elsewhere(made, tmp_path)
    checks = restore_backup(other.settings, tmp_path / "b.tar", NOW)
    assert holds(checks), said(checks)
    assert len(checks) == 4
    assert other.ids("operators") == {str(n) for n in range(1, 41)}
    assert secret_rings(other.settings, NOW) == secret_rings(made.settings, NOW)
    for path in (other.folder, *other.folder.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
    assert names(other.folder) == names(made.folder)
    other.sql("UPDATE operators SET name = 'x' WHERE id = '9'")
    checks = verify_backup(other.settings, tmp_path / "b.tar", NOW)
    assert said(checks) == "operators differs: 40 rows, 40 in the backup"


def test_rows_that_are_only_in_the_write_ahead_log_are_in_the_backup(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    migrated_sqlite(folder / "assay.db")
    made = Installation(folder, None)
    with closing(sqlite3.connect(folder / "assay.db", isolation_level=None)) as serving:
        serving.execute("PRAGMA journal_mode=WAL")
        serving.execute(ROWS.format(n=7, sealed="X'00'"))
        shutil.copyfile(folder / "assay.db", tmp_path / "alone.db")
        with closing(sqlite3.connect(tmp_path / "alone.db")) as alone:
            assert alone.execute("SELECT count(*) FROM operators").fetchone() == (0,)
        write_backup(made.settings, tmp_path / "b.tar", NOW)
    other = elsewhere(made, tmp_path)
    assert holds(restore_backup(other.settings, tmp_path / "b.tar", NOW))
    assert other.ids("operators") == {"7"}


@pytest.mark.parametrize(
    ("harm", "sentence"),
    first_then_slow(
        [
            (
                "DELETE FROM operators WHERE id = '9'",
                "operators differs: 39 rows, 40 in the backup",
            ),
            ("UPDATE operators SET name = 'x' WHERE id = '9'", "operators differs: 40 rows, 40 in"),
            ("UPDATE operators SET suspended_us = 0 WHERE id = '9'", "operators differs: 40 rows"),
            ("DROP TABLE webhook_deliveries", "the table webhook_deliveries is missing"),
            ("DELETE FROM alembic_version", "alembic_version differs: 0 rows, 1 in the backup"),
        ],
        2,
    ),
)
def test_what_is_missing_or_changed_is_named(
    on_sqlite: Installation, tmp_path: Path, harm: str, sentence: str
) -> None:
    write_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)
    other = elsewhere(on_sqlite, tmp_path)
    assert holds(restore_backup(other.settings, tmp_path / "b.tar", NOW))
    other.sql(harm)
    checks = verify_backup(other.settings, tmp_path / "b.tar", NOW)
    assert not holds(checks)
    assert sentence in said(checks)


@pytest.mark.parametrize("name", ["assay.db-wal", "assay.db-shm", "assay.db-journal"])
def test_nothing_is_restored_beside_the_log_of_another_database(
    on_sqlite: Installation, tmp_path: Path, name: str
) -> None:
    """SQLite would replay it into the restored one."""
    write_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)
    other = elsewhere(on_sqlite, tmp_path)
    other.folder.mkdir()
    (other.folder / name).touch()
    with pytest.raises(CopyFailed, match=name):
        restore_backup(other.settings, tmp_path / "b.tar", NOW)
    assert names(other.folder) == {name}


def test_a_damaged_snapshot_is_counted_and_left_out(
    on_sqlite: Installation, tmp_path: Path
) -> None:
    on_sqlite.block(b"second").write_bytes(b"SECOND")
    (on_sqlite.folder / "blocks/.being-written").touch()
    summary = write_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)
    assert (summary.blocks, summary.damaged) == (1, 1)


@pytest.mark.parametrize("name", first_then_slow(["settling.key", "sell.json"]))
@pytest.mark.parametrize("with_secrets", first_then_slow([True, False]))
def test_a_key_file_that_is_missing_or_another_is_named(
    on_sqlite: Installation, tmp_path: Path, name: str, *, with_secrets: bool
) -> None:
    (on_sqlite.folder / name).write_text("ab" * 32)
    write_backup(on_sqlite.settings, tmp_path / "b.tar", NOW, with_secrets=with_secrets)
    assert holds(verify_backup(on_sqlite.settings, tmp_path / "b.tar", NOW))
    (on_sqlite.folder / name).write_text("cd" * 32)
    sentence = f"{name} is missing or not the backup's"
    assert said(verify_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)) == sentence
    (on_sqlite.folder / name).unlink()
    assert said(verify_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)) == sentence


def test_an_older_secret_that_seals_something_has_to_be_there(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    migrated_sqlite(folder / "assay.db")
    both = Settings(data_dir=folder, snapshot_secret=["5" * 64, "4" * 64])  # type: ignore[arg-type]
    write_backup(both, tmp_path / "b.tar", NOW)
    newer = Settings(data_dir=folder, snapshot_secret=["5" * 64])  # type: ignore[arg-type]
    assert "the snapshot secret" in said(verify_backup(newer, tmp_path / "b.tar", NOW))
    assert holds(verify_backup(both, tmp_path / "b.tar", NOW))


def test_a_snapshot_that_is_missing_or_damaged_is_counted(
    on_sqlite: Installation, tmp_path: Path
) -> None:
    write_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)
    on_sqlite.block(b"first").unlink()
    on_sqlite.block(b"second").write_bytes(b"SECOND")
    checks = verify_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)
    assert said(checks) == "2 of 2 snapshots are missing or damaged"


def test_a_restore_with_other_secrets_says_which_and_what_is_lost(
    on_sqlite: Installation, tmp_path: Path
) -> None:
    summary = write_backup(on_sqlite.settings, tmp_path / "b.tar", NOW, with_secrets=False)
    assert summary.files == []
    secret = next(iter(secret_rings(on_sqlite.settings, NOW)["snapshot"]))
    assert secret.encode() not in (tmp_path / "b.tar").read_bytes()
    other = elsewhere(on_sqlite, tmp_path)
    secret_rings(other.settings, NOW)
    checks = restore_backup(other.settings, tmp_path / "b.tar", NOW)
    wrong = {check.sentence.split()[1] for check in checks if not check.holds}
    assert wrong == {"jwt", "session", "snapshot", "signing", "payment", "upstream"}
    assert "the snapshot secret is not the backup's: snapshots cannot be decrypted" in said(checks)


def test_secrets_that_were_rotated_since_are_still_the_backups(
    on_sqlite: Installation, tmp_path: Path
) -> None:
    write_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)
    rotate_secret(on_sqlite.settings, "snapshot", compromised=False, clock=FrozenClock())
    assert holds(verify_backup(on_sqlite.settings, tmp_path / "b.tar", NOW))


def test_secrets_from_settings_are_compared_and_not_stored(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    migrated_sqlite(folder / "assay.db")
    ring = ["5" * 64]
    settings = Settings(data_dir=folder, snapshot_secret=ring)  # type: ignore[arg-type]
    write_backup(settings, tmp_path / "b.tar", NOW)
    assert ring[0].encode() not in (tmp_path / "b.tar").read_bytes()
    with_other = Settings(data_dir=folder, snapshot_secret=["6" * 64])  # type: ignore[arg-type]
    assert "the snapshot secret" in said(verify_backup(with_other, tmp_path / "b.tar", NOW))
    assert holds(verify_backup(settings, tmp_path / "b.tar", NOW))


def test_nothing_that_exists_is_overwritten(made: Installation, tmp_path: Path) -> None:
    archive = tmp_path / "b.tar"
    write_backup(made.settings, archive, NOW)
    before = archive.read_bytes()
    with pytest.raises(BackupFailed, match="exists already"):
        write_backup(made.settings, archive, NOW)
    assert archive.read_bytes() == before
    made.add(99)
    with pytest.raises(CopyFailed, match="already"):
        restore_backup(made.settings, archive, NOW)
    assert "99" in made.ids("operators")


def test_a_file_system_without_hard_links_takes_a_backup(
    on_sqlite: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("assay.app.backup.os.link", refuse)
    write_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)
    assert holds(verify_backup(on_sqlite.settings, tmp_path / "b.tar", NOW))
    with pytest.raises(BackupFailed, match="exists already"):
        write_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)


def test_a_folder_that_cannot_be_written_is_named(on_sqlite: Installation, tmp_path: Path) -> None:
    with pytest.raises(BackupFailed, match="cannot write into"):
        write_backup(on_sqlite.settings, tmp_path / "none/b.tar", NOW)


def test_other_secrets_in_the_data_directory_are_kept(
    on_sqlite: Installation, tmp_path: Path
) -> None:
    write_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)
    other = elsewhere(on_sqlite, tmp_path)
    kept = secret_rings(other.settings, NOW)
    with pytest.raises(BackupFailed, match=r"secrets\.json exists already"):
        restore_backup(other.settings, tmp_path / "b.tar", NOW)
    assert secret_rings(other.settings, NOW) == kept
    assert not (other.folder / "assay.db").exists()


def test_a_restore_that_was_cut_short_is_repeated(made: Installation, tmp_path: Path) -> None:
    write_backup(made.settings, tmp_path / "b.tar", NOW)
    other = elsewhere(made, tmp_path)
    other.folder.mkdir(mode=0o700)
    shutil.copyfile(made.folder / "secrets.json", other.folder / "secrets.json")
    (other.folder / "secrets.json").chmod(0o600)
    other.block(b"first").write_bytes(b"fir")
    checks = restore_backup(other.settings, tmp_path / "b.tar", NOW)
    assert holds(checks), said(checks)


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.3, 0.6, 0.9, 0.999])
def test_an_archive_that_was_cut_off_restores_nothing(
    on_sqlite: Installation, tmp_path: Path, kept: float
) -> None:
    whole = tmp_path / "b.tar"
    write_backup(on_sqlite.settings, whole, NOW)
    with tarfile.open(whole) as tar:  # what follows the last member is padding
        last = tar.getmembers()[-1]
    data = whole.read_bytes()[: int((last.offset_data + last.size) * kept)]
    (tmp_path / "cut.tar").write_bytes(data)
    other = elsewhere(on_sqlite, tmp_path)
    with pytest.raises(BackupFailed, match=r"incomplete|no backup|manifest"):
        restore_backup(other.settings, tmp_path / "cut.tar", NOW)
    assert not other.folder.exists()


def altered(whole: Path, change: Callable[[tarfile.TarInfo, bytes], tuple[Any, bytes]]) -> Path:
    """A copy of the archive with other members."""
    made = whole.with_name("altered.tar")
    with tarfile.open(whole) as tar, tarfile.open(made, "w") as out:
        for member in tar:
            data = file.read() if (file := tar.extractfile(member)) else b""
            changed, data = change(member, data)
            changed.size = len(data)
            out.addfile(changed, io.BytesIO(data))
    return made


def renamed(old: str, new: str) -> Callable[[tarfile.TarInfo, bytes], tuple[Any, bytes]]:
    def change(member: tarfile.TarInfo, data: bytes) -> tuple[Any, bytes]:
        member.name = re.sub(old, new, member.name)
        return member, data

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (renamed("^blocks/.*", "blocks/../../out"), "damaged"),
        (renamed("^blocks/.*", "blocks/" + "b" * 5_000), "damaged"),
        (renamed("^blocks/.*", "blocks//dev/zero"), "damaged"),
        (renamed(r"^secrets\.json$", "other.json"), "damaged|secrets.json"),
        (lambda m, d: (m, d.replace(b'"secrets.json"', b'"../out"')), "no backup holds"),
        (lambda m, d: (m, d.replace(b'"format": 1', b'"format": 2')), "manifest"),
        (lambda m, d: (m, b"[" * len(d) if m.name == "manifest.json" else d), "manifest"),
        (lambda m, d: (m, b" " * 2**21 if m.name == "manifest.json" else d), "more than"),
    ],
)
def test_a_hostile_archive_writes_nothing_outside_and_is_refused(
    on_sqlite: Installation, tmp_path: Path, change: Any, message: str
) -> None:
    write_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)
    other = elsewhere(on_sqlite, tmp_path, "deep/data")
    other.folder.parent.mkdir()
    with pytest.raises(BackupFailed, match=message):
        restore_backup(other.settings, altered(tmp_path / "b.tar", change), NOW)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "deep/out").exists()
    assert not (other.folder / "assay.db").exists()


def test_a_link_in_the_archive_is_not_followed(on_sqlite: Installation, tmp_path: Path) -> None:
    write_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)
    (tmp_path / "mine").write_text("mine")

    def link(member: tarfile.TarInfo, data: bytes) -> tuple[Any, bytes]:
        if member.name == "secrets.json":
            member.type, member.linkname, data = tarfile.SYMTYPE, str(tmp_path / "mine"), b""
        return member, data

    other = elsewhere(on_sqlite, tmp_path)
    with pytest.raises(BackupFailed):
        restore_backup(other.settings, altered(tmp_path / "b.tar", link), NOW)
    assert not (other.folder / "secrets.json").exists()


def test_a_damaged_database_in_the_archive_is_found(
    on_sqlite: Installation, tmp_path: Path
) -> None:
    write_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)

    def flip(member: tarfile.TarInfo, data: bytes) -> tuple[Any, bytes]:
        if member.name == "database":
            at = data.rindex("Jörg".encode())
            data = data[:at] + b"X" + data[at + 1 :]
        return member, data

    other = elsewhere(on_sqlite, tmp_path)
    checks = restore_backup(other.settings, altered(tmp_path / "b.tar", flip), NOW)
    assert "operators differs: 40 rows, 40 in the backup" in said(checks)


def test_a_backup_is_of_one_kind_of_database(made: Installation, tmp_path: Path) -> None:
    write_backup(made.settings, tmp_path / "b.tar", NOW)
    url = None if made.url else "postgresql://127.0.0.1:1/none"
    with pytest.raises(BackupFailed, match="ASSAY_DATABASE_URL"):
        restore_backup(Settings(data_dir=tmp_path / "c", database_url=url), tmp_path / "b.tar", NOW)


@pytest.mark.parametrize(
    ("url", "without"),
    [
        ("postgresql:///db?host=/run/pg&password=x", "postgresql:///db?host=/run/pg&{0}"),
        ("postgresql://u:x@[::1]:5432/db?sslmode=a", "postgresql://u@[::1]:5432/db?sslmode=a&{0}"),
        ("postgres://u:x@h1:1,h2:2/db", "postgres://u@h1:1,h2:2/db?{0}"),
        ("postgresql://u:x@/db?host=%2Ftmp", "postgresql://u@/db?host=%2Ftmp&{0}"),
        ("postgresql://:x@h/db", "postgresql://h/db?{0}"),
        (
            "postgresql://h/db?options=-c%20a%3Db&password=x",
            "postgresql://h/db?options=-c%20a%3Db&{0}",
        ),
    ],
)
def test_every_form_of_a_url_keeps_all_but_its_password(
    tmp_path: Path, url: str, without: str
) -> None:
    file = tmp_path / "p"
    assert _without_password(url, file) == without.format(f"passfile={quote(str(file), safe='')}")
    assert file.read_text() == "*:*:*:*:x\n"


@pytest.mark.parametrize("url", ["postgresql://h/db", "postgresql://u@/db?host=/tmp"])
def test_a_url_without_a_password_is_passed_as_it_is(tmp_path: Path, url: str) -> None:
    assert _without_password(url, tmp_path / "p") == url
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    "url", ["postgresql://postgres:p%3Aw%5Cx@{0}", "postgresql://postgres@{0}?password=p%3Aw%5Cx"]
)
def test_the_password_is_no_argument_of_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Other users see the arguments of every process."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/pg_dump"
    program.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys, urllib.parse\n"
        f"out = pathlib.Path({str(tmp_path)!r})\n"
        "(out / 'arguments').write_text(' '.join(sys.argv))\n"
        "query = urllib.parse.parse_qs(urllib.parse.urlsplit(sys.argv[-1]).query)\n"
        "[path] = map(pathlib.Path, query['passfile'])\n"
        "(out / 'mode').write_text(oct(path.stat().st_mode))\n"
        "(out / 'file').write_text(path.read_text())\n"
        "sys.exit(3)\n"
    )
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    with lent_postgresql() as lent:
        where = lent.partition("@")[2]
        settings = Settings(data_dir=tmp_path, database_url=url.format(where))  # type: ignore[arg-type]
        with pytest.raises(CopyFailed, match="pg_dump failed"):
            write_backup(settings, tmp_path / "b.tar", NOW)
    assert "p:w" not in (arguments := (tmp_path / "arguments").read_text())
    assert "p%3Aw" not in arguments
    assert (tmp_path / "mode").read_text() == "0o100600"
    assert (tmp_path / "file").read_text() == "*:*:*:*:p\\:w\\\\x\n"
    assert not (tmp_path / "b.tar").exists()


def test_a_missing_program_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with lent_postgresql() as url:
        settings = Settings(data_dir=tmp_path, database_url=url)  # type: ignore[arg-type]
        with pytest.raises(CopyFailed, match="pg_dump is not installed: install PostgreSQL's"):
            write_backup(settings, tmp_path / "b.tar", NOW)
    assert names(tmp_path) == set()


@pytest.mark.slow
def test_what_was_paid_before_the_backup_survives_a_kill(
    made: Installation, tmp_path: Path
) -> None:
    """A writer commits payments throughout, and is killed while it does."""
    command = [sys.executable, "-m", "tests.support.claiming", made.settings.database]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        try:
            for n in range(3):
                paid = {writer.stdout.readline().strip() for _ in range(20 * (n + 1))}
                write_backup(made.settings, tmp_path / f"{n}.tar", NOW)
                other = elsewhere(made, tmp_path, f"restored {n}")
                checks = restore_backup(other.settings, tmp_path / f"{n}.tar", NOW)
                assert holds(checks), said(checks)
                assert paid <= other.ids("payments")
        finally:
            writer.kill()
        left = {line.strip() for line in writer.stdout.readlines() if line.endswith("\n")}
    write_backup(made.settings, tmp_path / "last.tar", NOW)
    other = elsewhere(made, tmp_path, "last")
    assert holds(restore_backup(other.settings, tmp_path / "last.tar", NOW))
    assert left <= other.ids("payments")


@pytest.mark.slow
def test_a_backup_that_is_killed_leaves_no_file_of_that_name(
    made: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the next one works."""
    monkeypatch.setenv("ASSAY_DATA_DIR", str(made.folder))
    if made.url is not None:
        monkeypatch.setenv("ASSAY_DATABASE_URL", made.url)
    made.block(os.urandom(32 * 2**20))
    command = [sys.executable, "-m", "assay", "backup", str(tmp_path / "b.tar")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as backup:
        while backup.poll() is None and not list(tmp_path.glob(".assay-backup-*/partial")):
            pass
        backup.kill()
        backup.wait(HUNG_S)
    if (tmp_path / "b.tar").exists():  # it had ended by then
        assert holds(verify_backup(made.settings, tmp_path / "b.tar", NOW))
    else:
        write_backup(made.settings, tmp_path / "b.tar", NOW)


def test_the_checks_are_sentences(on_sqlite: Installation, tmp_path: Path) -> None:
    write_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)
    assert verify_backup(on_sqlite.settings, tmp_path / "b.tar", NOW)[1:] == [
        BackupCheck(holds=True, sentence="all 2 encrypted snapshots are there"),
        BackupCheck(holds=True, sentence="all 6 secrets are the backup's"),
        BackupCheck(holds=True, sentence="every roll-up is what the calls and payments say"),
    ]
