"""What is unsafe about connections on this machine, whatever the settings say.

The server notes an address that held most of the connections; too few open files leave room for too
few connections.
"""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from assay.cli import open_files
from assay.cli.unsafe_settings import UnsafeSetting
from assay.common.clock import SystemClock, from_iso
from assay.common.json import is_object
from assay.settings import Settings

FILE = "connections.json"
"""In the data directory: `{"address", "held", "of", "at"}`, `at` in ISO 8601."""

FRESH = timedelta(hours=24)
_BYTES_MAX = 4096


def read_note(data_dir: Path, now: datetime) -> str | None:
    """The finding as a sentence; None where there is none of the last 24 hours, or it is broken."""
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
    """An address that held most connections, and a limit of open files that is too low."""
    yield from _connections_kept(settings)
    yield from _too_few(settings)


def _connections_kept(settings: Settings) -> Iterator[UnsafeSetting]:
    """An untrusted address that held over half of all connections in the last 24 hours."""
    said = read_note(settings.data_dir, SystemClock.now())
    if said is not None:
        why = "it may keep others out; if it is your proxy, all callers share its limits"
        do = "name it in ASSAY_TRUSTED_PROXIES if it is your proxy, else block it"
        yield UnsafeSetting("connections", said, why, do)


def _too_few(settings: Settings) -> Iterator[UnsafeSetting]:
    """A limit below which a handful of addresses can keep the others out."""
    files = open_files.reachable()
    most = open_files.fitting(settings, files).connections_max
    if most < min(settings.connections_max, open_files.CONNECTIONS_SAFE):
        what = f"{files} open files are room for {most} connections only"
        why = "a handful of addresses can hold them all, or the database and nodes get none"
        yield UnsafeSetting("open-files", what, why, open_files.ADVICE)
