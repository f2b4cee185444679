"""What payments bought, as a row."""

import base64
import json
from typing import Any

from pydantic_core import to_json

from assay.db.sql_transaction import SqlRow
from assay.payments.model import StoredResponse

_CALLER = b":caller"
"""Kept among the headers, under a name that none of them can have (RFC 9110, section 5.1)."""


def packed(payment_id: str, stored_us: int, stored: StoredResponse) -> dict[str, Any]:
    """The columns of what a payment bought."""
    pairs = [*stored.headers, (_CALLER, stored.caller.encode())]
    text = to_json([part.decode("latin-1") for pair in pairs for part in pair]).decode()
    whose = {"payment_id": payment_id, "stored_us": stored_us}
    return {**whose, "status": stored.status, "headers": text, "body": stored.body}


def unpacked(row: SqlRow) -> StoredResponse:
    """What the columns hold."""
    parts = json.loads(row["headers"])
    if parts and isinstance(parts[0], list):  # as 0.1 wrote them
        parts = [base64.b64decode(part).decode("latin-1") for pair in parts for part in pair]
    plain = [part.encode("latin-1") for part in parts]
    pairs = list(zip(plain[::2], plain[1::2], strict=True))
    caller = next((value.decode() for name, value in pairs if name == _CALLER), "")
    headers = tuple(pair for pair in pairs if pair[0] != _CALLER)
    return StoredResponse(row["status"], headers, bytes(row["body"]), caller)
