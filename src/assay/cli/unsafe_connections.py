"""Computes the connections that this machine has room for, and finds what is unsafe about them.

The system's limit of open files bounds the connections. The server records an address that held
most of the connections. Too few open files leave room for too few connections.
"""

import json
import resource
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from assay.cli.unsafe_settings import UnsafeSetting
from assay.common.clock import SystemClock, from_iso
from assay.common.json import is_object
from assay.settings import Settings

RESERVED: Final = 576
"""Files that callers never get: outgoing connections of visits, calls and webhooks (280),
connections beyond the caps and of metrics (100), the database (40), and the rest for nodes,
mail, logs and files."""

FILES_PER_CONNECTION: Final = 2
"""A caller's connection, and the one to the upstream of its call."""

CONNECTIONS_MIN: Final = 16
"""Held whatever the limit is."""

CONNECTIONS_SAFE: Final = 128
"""Where fewer fit, a handful of addresses can hold them all."""

ADVICE: Final = "raise the hard limit of open files: LimitNOFILE of systemd, --ulimit of Docker"


def raise_limit() -> int:
    """Raise this process's soft limit to its hard one; return the open files it allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):  # of a system that has another bound below its hard limit
        return _number(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    return _number(hard)


def reachable() -> int:
    """Return what `raise_limit` would raise the limit to, without changing it."""
    return _number(resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def fitting(settings: Settings, files: int) -> Settings:
    """Return the settings with connection caps that leave `RESERVED` of so many files.

    The caps of one address and of one network are lowered in proportion. The same object where
    all fit.
    """
    total = max(CONNECTIONS_MIN, (files - RESERVED) // FILES_PER_CONNECTION)
    if total >= settings.connections_max:
        return settings

    def share(cap: int) -> int:
        return max(1, cap * total // settings.connections_max)

    return settings.model_copy(
        update={
            "connections_max": total,
            "connections_per_address": share(settings.connections_per_address),
            "connections_per_network": share(settings.connections_per_network),
        }
    )


def needed(settings: Settings) -> int:
    """Return the number of files with which no cap is lowered."""
    return RESERVED + FILES_PER_CONNECTION * settings.connections_max


def _number(limit: int) -> int:
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


FILE = "connections.json"
"""In the data directory: `{"address", "held", "of", "at"}`, `at` in ISO 8601."""

FRESH = timedelta(hours=24)
_BYTES_MAX = 4096


def read_note(data_dir: Path, now: datetime) -> str | None:
    """Return the finding of the last 24 hours as a sentence, or None if absent or broken."""
    try:
        with (data_dir / FILE).open("rb") as file:
            note: object = json.loads(file.read(_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return None
    if not is_object(note):
        return None
    address, held, of, at = (note.get(name) for name in ("address", "held", "of", "at"))
    if not (isinstance(address, str) and isinstance(held, int) and isinstance(of, int)):
        return None
    if not isinstance(at, str) or not _is_fresh(at, now):
        return None
    return f"{address} held {held} of {of} connections at {at}"


def _is_fresh(at: str, now: datetime) -> bool:
    try:
        return abs(now - from_iso(at)) <= FRESH
    except (ValueError, OverflowError):
        return False


def unsafe_connection_limits(settings: Settings) -> Iterator[UnsafeSetting]:
    """Find an address that held most connections, and a limit of open files that is too low."""
    yield from _connections_kept(settings)
    yield from _too_few(settings)


def _connections_kept(settings: Settings) -> Iterator[UnsafeSetting]:
    """Find an untrusted address that held over half of all connections in the last 24 hours."""
    said = read_note(settings.data_dir, SystemClock.now())
    if said is not None:
        why = "it may keep others out; if it is your proxy, all callers share its limits"
        do = "name it in ASSAY_TRUSTED_PROXIES if it is your proxy, else block it"
        yield UnsafeSetting("connections", said, why, do)


def _too_few(settings: Settings) -> Iterator[UnsafeSetting]:
    """Find a file limit so low that a few addresses can keep the others out."""
    files = reachable()
    most = fitting(settings, files).connections_max
    if most < min(settings.connections_max, CONNECTIONS_SAFE):
        what = f"{files} open files are room for {most} connections only"
        why = "a handful of addresses can hold them all, or the database and nodes get none"
        yield UnsafeSetting("open-files", what, why, ADVICE)
