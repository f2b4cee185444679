"""Whose a payment is, once anybody can read its credential on the chain.

A settled x402 authorisation is calldata: to show it proves nothing. Its buyer is whoever comes from
the network address that paid, or sends the token of the 402 that was paid (version 2 clients echo
it, and it never gets to the chain), or proves by a session that it is the payer. Pure.
"""

import hashlib
from hmac import compare_digest

from assay.common.json import JsonObject, JsonValue, is_object
from assay.payments.model import LedgerEntry
from assay.payments.ports import PaidRequest

ECHOED = "token"
"""Member of an x402 version 2 requirement's `extra`."""

_MARKS = "buyer"
_TOKEN_CHARS = range(16, 129)


def token_of(accepted: JsonObject | None) -> str:
    """The token a client echoes, as the ledger keeps it: hashed, or empty for none."""
    extra = accepted.get("extra") if accepted is not None else None
    given = extra.get(ECHOED) if is_object(extra) else None
    if not isinstance(given, str) or len(given) not in _TOKEN_CHARS:
        return ""
    return hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()


def marked(credential: JsonObject, token: str, caller: str) -> JsonObject:
    """The credential, with what its buyer is known by."""
    marks: dict[str, JsonValue] = {"caller": caller, "token": token}
    return {**credential, _MARKS: marks}


def unmarked(credential: JsonObject) -> JsonObject:
    """The credential as its payer signed it: nobody else is told of the buyer."""
    return {name: value for name, value in credential.items() if name != _MARKS}


def is_buyer(entry: LedgerEntry, token: str, request: PaidRequest) -> bool:
    """Whether the request is of whom the payment was claimed for."""
    marks = entry.credential.get(_MARKS)
    if request.speaker == entry.payer:
        return True
    if not is_object(marks):
        return False
    came_from_there = request.caller != "" and marks.get("caller") == request.caller
    given = str(marks.get("token")).encode("utf-8", "replace")
    # In constant time: whoever has the token needs nothing else.
    is_known = compare_digest(given, token.encode("utf-8", "replace"))
    return came_from_there or (token != "" and is_known)
