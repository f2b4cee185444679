"""Unsafe modes, owners and places of the files that the settings name."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pydantic import SecretStr

from assay.cli.unsafe_hosts import split
from assay.cli.unsafe_keys import is_inline
from assay.common.json import is_array
from assay.settings import Settings, config_file, is_in_environment

OTHERS = 0o077
OTHERS_WRITE = 0o022
"""What the group and everybody else may do."""

_EVERYBODY_WRITES = 0o002
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - they are what is looked for
_TEMPORARY_DEPTH = 2
"""Folders that lie deeper are those of tests and builds."""

_SHOWN_MAX = 3


def data_directory(settings: Settings) -> Iterator[str]:
    """The folder of the database, the generated secrets and the snapshots."""
    folder = settings.data_dir
    yield from _temporary(folder)
    yield from _replaceable(folder)
    found = _status(folder)
    if found is None:
        return
    if found.st_mode & OTHERS_WRITE:
        yield f"{folder} has mode {_mode(found)}"
    user = os.geteuid()
    if user != 0 and found.st_uid not in {user, 0}:
        yield f"{folder} belongs to user {found.st_uid}"
    open_files = [one for one in _children(folder) if _mode_of(one) & OTHERS]
    if open_files:
        names = ", ".join(f"{one.name} ({_mode_of(one):04o})" for one in open_files[:_SHOWN_MAX])
        more = f" and {len(open_files) - _SHOWN_MAX} more" if len(open_files) > _SHOWN_MAX else ""
        yield f"{folder} holds what others can read: {names}{more}"


def file_mode(settings: Settings) -> Iterator[str]:
    """The file of settings, and the one that holds the Solana keypair."""
    config, keypair = config_file(), settings.solana_keypair
    if config is not None:
        yield from _exposed(config, settings, OTHERS if _has_secret(settings) else OTHERS_WRITE)
    if keypair is not None and not is_inline(keypair):
        yield from _exposed(Path(keypair.get_secret_value()).expanduser(), settings, OTHERS)


def _exposed(path: Path, settings: Settings, forbidden: int) -> Iterator[str]:
    found = _status(path)
    if found is None:
        return
    if found.st_mode & forbidden:
        yield f"{path} has mode {_mode(found)}"
    user = _service_user(settings)
    if user is not None and found.st_uid not in {user, 0}:
        yield f"{path} belongs to user {found.st_uid}"
    yield from _replaceable(path)


def _service_user(settings: Settings) -> int | None:
    """Who runs this; where root does, the owner of the data directory, if there is one yet."""
    user, folder = os.geteuid(), _status(settings.data_dir)
    if user != 0:
        return user
    return None if folder is None else folder.st_uid


def _has_secret(settings: Settings) -> bool:
    """Whether the file of settings holds a key, a secret or a password."""
    in_file = (name for name in settings.model_fields_set if not is_in_environment(name))
    return any(_is_secret(name, getattr(settings, name)) for name in in_file)


def _is_secret(name: str, value: object) -> bool:
    if is_array(value):
        return any(isinstance(one, SecretStr) for one in value)
    if not isinstance(value, SecretStr):
        return False
    if name.endswith("_url"):
        parts = split(value.get_secret_value())
        return parts is None or parts.password is not None
    return name != "solana_keypair" or is_inline(value)


def _temporary(folder: Path) -> Iterator[str]:
    """Places that are emptied, and where another user can have made the folder first."""
    for place in _TEMPORARY:
        inside = folder.relative_to(place).parts if folder.is_relative_to(place) else None
        if inside is not None and len(inside) <= _TEMPORARY_DEPTH:
            yield f"{folder} is in {place}"


def _replaceable(path: Path) -> Iterator[str]:
    """Whether a folder above lets everybody rename it; a sticky one does not."""
    try:
        parents = path.resolve().parents
    except (OSError, RuntimeError, ValueError):  # a loop of links, a name with a zero byte
        return
    for parent in parents:
        found = _status(parent)
        if found is not None and found.st_mode & (_EVERYBODY_WRITES | stat.S_ISVTX) == (
            _EVERYBODY_WRITES
        ):
            yield f"{parent}, which holds {path}, has mode {_mode(found)}"


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _mode_of(path: Path) -> int:
    found = _status(path)
    return 0 if found is None else stat.S_IMODE(found.st_mode)


def _mode(found: os.stat_result) -> str:
    return f"{stat.S_IMODE(found.st_mode):04o}"


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError):  # absent, or no path at all: not a question of modes
        return None
