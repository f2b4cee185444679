"""Unsafe modes of the files that the settings name."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from assay.cli.unsafe_secrets import is_inline
from assay.settings import Settings, config_file

OTHERS = 0o077
"""What the group and everybody else may do."""


def data_directory(settings: Settings) -> Iterator[str]:
    """The folder of the database, the generated secrets and the snapshots."""
    found = _status(settings.data_dir)
    if found is None:
        return
    mode = stat.S_IMODE(found.st_mode)
    if mode & OTHERS:
        yield f"{settings.data_dir} has mode {mode:04o}"
    user = os.geteuid()
    if user != 0 and found.st_uid not in {user, 0}:
        yield f"{settings.data_dir} belongs to user {found.st_uid}"


def file_mode(settings: Settings) -> Iterator[str]:
    """The file of settings, and the one that holds the Solana keypair."""
    keypair = settings.solana_keypair
    files = [config_file()]
    if keypair is not None and not is_inline(keypair):
        files.append(Path(keypair.get_secret_value()).expanduser())
    for path in files:
        found = None if path is None else _status(path)
        if found is not None and stat.S_IMODE(found.st_mode) & OTHERS:
            yield f"{path} has mode {stat.S_IMODE(found.st_mode):04o}"


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError):  # absent, or no path at all: not a question of modes
        return None
