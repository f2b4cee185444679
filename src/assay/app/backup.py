"""Writes a backup of an installation into one file, restores it, and proves it complete.

The file is a tar archive: the database's copy, the encrypted snapshots, the generated secrets and
keys, and last a manifest with a digest of every table and a fingerprint of every secret. An archive
without a manifest is incomplete.
"""

import asyncio
import hashlib
import os
import secrets
import shutil
import tarfile
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import IO, Final

from assay import __version__
from assay.analytics.store_rollups import SqlRollupProof
from assay.app.schemas_backup import BackupManifest
from assay.app.secrets import SEALING, SecretName, known_secrets
from assay.common.clock import iso
from assay.db.backup import (
    DatabaseContent,
    copy_database,
    describe_database,
    require_empty,
    restore_database,
)
from assay.db.engine import HEAD, Database
from assay.evaluation.blobs import CID, cid_v1_raw
from assay.settings import Settings

FILES: Final = ("secrets.json", "settling.key", "test-payer.key", "test-payout.key", "sell.json")
"""Files of the data directory that hold secrets, those of `assay sell` included."""

_FORMAT: Final = 1
_DATABASE, _BLOCKS, _MANIFEST = "database", "blocks", "manifest.json"
_MANIFEST_BYTES_MAX: Final = 1024 * 1024
_FILE_BYTES_MAX: Final = 1024 * 1024
_BLOCK_BYTES_MAX: Final = 256 * 1024 * 1024
_SCRYPT: Final = {"n": 2**14, "r": 8, "p": 1, "dklen": 16}
"""Fingerprints stand in backups without secrets as well, so guessing one is made expensive."""


class BackupFailed(RuntimeError):
    """The backup cannot be written or used; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """What a backup holds: rows of all tables, snapshots, and names of files with secrets."""

    rows: int
    blocks: int
    damaged: int
    """Snapshots whose content is not what their name says; the backup leaves them out."""
    files: Sequence[str]


@dataclass(frozen=True, slots=True)
class BackupCheck:
    """One thing that was compared with the backup, in a sentence."""

    holds: bool
    sentence: str


def write_backup(
    settings: Settings, archive: Path, now: datetime, *, with_secrets: bool = True
) -> BackupSummary:
    """Write a backup of the installation, which may be in use, to a new file of mode 0600.

    The database is as it was at one moment after the call. The file appears when it is complete.
    Raises `BackupFailed`, `CopyFailed`, `SecretFileError`, `DatabaseUrlError` and `Unavailable`.
    Starts event loops of its own: not for a coroutine.
    """
    if archive.exists():
        raise BackupFailed(f"{archive} exists already: name a new file")
    with _scratch(archive.resolve().parent) as folder:
        copy = folder / _DATABASE
        content = asyncio.run(copy_database(settings.database, copy))
        partial = folder / "partial"
        with _written(partial) as file, tarfile.open(fileobj=file, mode="w") as tar:
            tar.add(copy, _DATABASE)
            copy.unlink()
            # After the database: a row's block is older than the row.
            blocks, damaged = _add_blocks(tar, settings.data_dir / _BLOCKS)
            files = _add_files(tar, settings.data_dir) if with_secrets else []
            manifest = _manifest(settings, content, blocks, files, now)
            _add(tar, _MANIFEST, manifest.model_dump_json(indent=1).encode())
        try:
            _name(partial, archive)
        except OSError as error:
            raise BackupFailed(f"cannot write {archive}: {error.strerror}") from error
    rows = sum(one.rows for one in manifest.tables.values())
    return BackupSummary(rows, blocks, damaged, files)


def restore_backup(settings: Settings, archive: Path, now: datetime) -> Sequence[BackupCheck]:
    """Restore a backup into the settings' data directory and database; return what was compared.

    The database must be empty, and files that exist already must equal those of the backup: an
    interrupted restore can be repeated. Raises like `write_backup`.
    """
    with _opened(archive) as tar:
        manifest = _read_manifest(tar, archive)
        _require_same_kind(settings, manifest)
        asyncio.run(require_empty(settings.database))
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in manifest.files:
            _restore_file(tar, name, settings.data_dir / name)
        _restore_blocks(tar, settings.data_dir / _BLOCKS)
        with _scratch(settings.data_dir) as folder:
            copy = folder / _DATABASE
            with _written(copy) as file, closing(_member(tar, _DATABASE)) as source:
                shutil.copyfileobj(source, file)
            asyncio.run(restore_database(settings.database, copy))
    return verify_backup(settings, archive, now)


def verify_backup(settings: Settings, archive: Path, now: datetime) -> Sequence[BackupCheck]:
    """Compare an installation with a backup, table by table; change nothing.

    Rows that were written since the restore are differences. Raises like `write_backup`.
    """
    with _opened(archive) as tar:
        manifest = _read_manifest(tar, archive)
        _require_same_kind(settings, manifest)
        blocks = _check_blocks(tar, manifest, settings.data_dir / _BLOCKS)
    content = asyncio.run(describe_database(settings.database))
    return [
        *_check_tables(manifest, content),
        blocks,
        *_check_secrets(manifest, settings, now),
        *_check_rollups(settings, content),
    ]


def _name(partial: Path, archive: Path) -> None:
    """Give a complete file its name, unless something has it. Raises `OSError`."""
    try:
        os.link(partial, archive)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links, such as many a network drive
        if archive.exists():
            raise
        partial.rename(archive)
    folder = os.open(archive.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _manifest(
    settings: Settings, content: DatabaseContent, blocks: int, files: list[str], now: datetime
) -> BackupManifest:
    salt = secrets.token_bytes(16)
    rings = known_secrets(settings, now)
    return BackupManifest(
        format=_FORMAT,
        version=__version__,
        created_at=iso(now),
        database=content.kind,
        revision=content.revision,
        tables=dict(content.tables),
        blocks=blocks,
        files=files,
        salt=salt.hex(),
        secrets={
            name: [_fingerprint(one, salt) for one in (ring if name in SEALING else ring[:1])]
            for name, ring in rings.items()
        },
        keys=_key_fingerprints(settings.data_dir, salt),
    )


def _key_fingerprints(folder: Path, salt: bytes) -> dict[str, str]:
    """Return those of key files; that of the secrets changes with each rotation."""
    paths = [folder / name for name in FILES[1:]]
    return {
        path.name: _fingerprint(path.read_text("utf-8"), salt) for path in paths if path.is_file()
    }


def _fingerprint(secret: str, salt: bytes) -> str:
    return hashlib.scrypt(secret.encode(), salt=salt, **_SCRYPT).hex()


def _check_tables(manifest: BackupManifest, content: DatabaseContent) -> Sequence[BackupCheck]:
    wrong: list[str] = []
    for name, table in manifest.tables.items():
        found = content.tables.get(name)
        if found is None:
            wrong.append(f"the table {name} is missing: the backup has {table.rows} rows")
        elif (found.rows, found.digest) != (table.rows, table.digest):
            wrong.append(f"{name} differs: {found.rows} rows, {table.rows} in the backup")
    if wrong:
        return [BackupCheck(holds=False, sentence=sentence) for sentence in wrong]
    rows = sum(table.rows for table in manifest.tables.values())
    sentence = f"all {rows} rows of {len(manifest.tables)} tables are there"
    return [BackupCheck(holds=True, sentence=sentence)]


_LOST: Final[Mapping[SecretName, str]] = {
    "snapshot": "snapshots cannot be decrypted",
    "upstream": "stored secrets of upstreams, webhooks and second factors cannot be read",
    "jwt": "dashboard sessions end",
    "session": "agents prove themselves again",
    "signing": "decision tokens end",
    "payment": "open payment demands end",
}


def _check_secrets(
    manifest: BackupManifest, settings: Settings, now: datetime
) -> Sequence[BackupCheck]:
    """Compare secrets by fingerprint; one that was rotated since is still a member of its ring."""
    salt, rings = bytes.fromhex(manifest.salt), known_secrets(settings, now)
    present = {name: {_fingerprint(one, salt) for one in ring} for name, ring in rings.items()}
    wrong = [
        name
        for name, fingerprints in manifest.secrets.items()
        if not present.get(name, set()).issuperset(fingerprints)
    ]
    keys = _key_fingerprints(settings.data_dir, salt)
    lost = [name for name, one in manifest.keys.items() if keys.get(name) != one]
    sentences = [f"{name} is missing or not the backup's" for name in lost]
    sentences += [
        f"the {name} secret is not the backup's: {loss}"
        for name, loss in _LOST.items()
        if name in wrong
    ]
    if sentences:
        return [BackupCheck(holds=False, sentence=sentence) for sentence in sentences]
    return [
        BackupCheck(holds=True, sentence=f"all {len(manifest.secrets)} secrets are the backup's")
    ]


def _check_rollups(settings: Settings, content: DatabaseContent) -> Sequence[BackupCheck]:
    if content.revision != HEAD:
        sentence = (
            "the roll-ups can be compared after `assay migrate`: `assay analytics rebuild --check`"
        )
        return [BackupCheck(holds=True, sentence=sentence)]
    wrong = {table: n for table, n in asyncio.run(_rollups(settings)).items() if n}
    if wrong:
        return [
            BackupCheck(holds=False, sentence=f"{table} has {n} rows that its sources do not give")
            for table, n in wrong.items()
        ]
    return [BackupCheck(holds=True, sentence="every roll-up is what the calls and payments say")]


async def _rollups(settings: Settings) -> Mapping[str, int]:
    database = await Database.open(settings.database)
    try:
        return await SqlRollupProof(database).differences()
    finally:
        await database.close()


def _check_blocks(tar: tarfile.TarFile, manifest: BackupManifest, folder: Path) -> BackupCheck:
    names = [one.name for one in tar if one.name.startswith(f"{_BLOCKS}/")]
    if len(names) != manifest.blocks:
        raise BackupFailed(
            f"the backup holds {len(names)} snapshots, its manifest {manifest.blocks}"
        )
    absent = sum(not _is_block(folder / Path(name).name) for name in names)
    if absent:
        sentence = f"{absent} of {len(names)} snapshots are missing or damaged"
        return BackupCheck(holds=False, sentence=sentence)
    return BackupCheck(holds=True, sentence=f"all {len(names)} encrypted snapshots are there")


def _is_block(path: Path) -> bool:
    """Return whether the file is there and is what its name, a content id, says."""
    try:
        return cid_v1_raw(path.read_bytes()) == path.name
    except OSError:
        return False


def _require_same_kind(settings: Settings, manifest: BackupManifest) -> None:
    kind = "sqlite" if settings.database.startswith("sqlite:") else "postgresql"
    if kind != manifest.database:
        raise BackupFailed(
            f"the backup is of a {manifest.database} database, and the settings name {kind}:"
            " set or unset ASSAY_DATABASE_URL"
        )


def _add_blocks(tar: tarfile.TarFile, folder: Path) -> tuple[int, int]:
    """Add all snapshots; return how many, and how many were damaged."""
    count, damaged = 0, 0
    if not folder.is_dir():
        return 0, 0
    with os.scandir(folder) as found:
        files = [entry.name for entry in found if entry.is_file(follow_symlinks=False)]
    names = [name for name in files if CID.fullmatch(name)]  # the others are being written
    for name in names:
        try:
            block = (folder / name).read_bytes()
        except FileNotFoundError:  # retention removed it meanwhile
            continue
        if cid_v1_raw(block) == name:
            _add(tar, f"{_BLOCKS}/{name}", block)
            count += 1
        else:
            damaged += 1
    return count, damaged


def _add_files(tar: tarfile.TarFile, folder: Path) -> list[str]:
    names = [name for name in FILES if (folder / name).is_file()]
    for name in names:
        _add(tar, name, (folder / name).read_bytes())
    return names


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), 0o600
    tar.addfile(member, BytesIO(data))


def _read_manifest(tar: tarfile.TarFile, archive: Path) -> BackupManifest:
    try:
        manifest = BackupManifest.model_validate_json(
            _bytes_of(tar, _MANIFEST, _MANIFEST_BYTES_MAX)
        )
    except ValueError:
        raise BackupFailed(f"{archive} has a manifest that this version cannot read") from None
    if not set(manifest.files) <= set(FILES):
        raise BackupFailed(f"{archive} names files that no backup holds")
    return manifest


def _restore_file(tar: tarfile.TarFile, name: str, path: Path) -> None:
    data = _bytes_of(tar, name, _FILE_BYTES_MAX)
    if path.exists():
        if path.read_bytes() != data:
            raise BackupFailed(f"{path} exists already and is not the backup's: move it away first")
        return
    with _scratch(path.parent) as folder:
        with _written(folder / name) as file:
            file.write(data)
        os.link(folder / name, path)


def _restore_blocks(tar: tarfile.TarFile, folder: Path) -> None:
    folder.mkdir(exist_ok=True, mode=0o700)
    with _scratch(folder.parent) as scratch:
        for member in tar:
            place, _, name = member.name.partition("/")
            if place != _BLOCKS:
                continue
            is_named = CID.fullmatch(name) is not None  # no other name is looked for on the disk
            if is_named and _is_block(folder / name):
                continue
            data = _bytes_of(tar, member.name, _BLOCK_BYTES_MAX) if is_named else b""
            if cid_v1_raw(data) != name:
                raise BackupFailed(f"the snapshot {name[:80]!r} of the backup is damaged")
            with _written(scratch / name) as file:
                file.write(data)
            (scratch / name).replace(folder / name)


def _bytes_of(tar: tarfile.TarFile, name: str, bytes_max: int) -> bytes:
    """Return a member. Raises `BackupFailed` if there is none, or if it is too large."""
    with closing(_member(tar, name)) as file:
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise BackupFailed(f"{name[:80]} of the backup has more than {bytes_max} bytes")
    return data


def _member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    try:
        member = tar.getmember(name)
    except KeyError:
        raise BackupFailed(f"the backup is incomplete: it has no {name[:80]}") from None
    is_plain = member.isreg() and not member.issparse()  # a link may lead anywhere
    file = tar.extractfile(member) if is_plain else None
    if file is None:
        raise BackupFailed(f"{name[:80]} of the backup is no file")
    return file


@contextmanager
def _opened(archive: Path) -> Generator[tarfile.TarFile]:
    try:
        with tarfile.open(archive, mode="r:") as tar:
            yield tar
    except (tarfile.TarError, EOFError) as error:
        raise BackupFailed(f"{archive} is no backup, or an incomplete one: {error}") from error
    except OSError as error:
        raise BackupFailed(f"cannot read {archive}: {error.strerror or error}") from error


@contextmanager
def _written(path: Path) -> Generator[IO[bytes]]:
    """Open a new file of mode 0600; it is on the disk when the block ends."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _scratch(folder: Path) -> Generator[Path]:
    """Open a private folder on the same file system, removed at the end."""
    try:
        scratch = Path(tempfile.mkdtemp(prefix=".assay-backup-", dir=folder))
    except OSError as error:
        raise BackupFailed(f"cannot write into {folder}: {error.strerror}") from error
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
