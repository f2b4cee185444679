"""What the server wrote down of an address that held most connections."""

import json
from datetime import datetime, timedelta
from pathlib import Path

from assay.common.clock import from_iso
from assay.common.json import is_object

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
    address, count, of, at = (note.get(name) for name in ("address", "held", "of", "at"))
    if not (isinstance(address, str) and isinstance(count, int) and isinstance(of, int)):
        return None
    if not isinstance(at, str) or not _is_fresh(at, now):
        return None
    return f"{address} held {count} of {of} connections at {at}"


def _is_fresh(at: str, now: datetime) -> bool:
    try:
        return abs(now - from_iso(at)) <= FRESH
    except (ValueError, OverflowError):
        return False
