"""Row ids: UUIDv7 (RFC 9562), so that they sort by the time they were made."""

import uuid_utils


def new_id() -> str:
    """A fresh UUIDv7 in its 36-character form."""
    return str(uuid_utils.uuid7())
