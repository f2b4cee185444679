"""Row ids: UUIDv7 (RFC 9562), which sort by the time of their creation."""

import uuid_utils


def new_id() -> str:
    """Return a new UUIDv7 in its 36-character form."""
    return str(uuid_utils.uuid7())
