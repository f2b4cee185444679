"""MPP credentials as strangers send them: read by the library, bounded and checked here."""

import base64
import copy
import hashlib
import json
import re
from datetime import datetime
from typing import Any

from assay.infra.payments.mpp_library import Library
from assay.kit.canonical import canonical_bytes
from assay.kit.json import JsonObject, is_nested_beyond, is_object
from assay.payments.model import PaymentRefused
from assay.payments.requests import Presented

DEPTH_MAX = 12
"""Nesting of a credential; a real one has 3 levels."""

_HASH = re.compile(r"0x[0-9a-fA-F]{64}")
_AMOUNT = re.compile(r"[0-9]{1,30}")
_NO_HASH = "0x" + "00" * 32


def read_credential(library: Library, credential: str) -> tuple[Any, str]:
    """The credential by the library, and the digest it is known by. Raises `PaymentRefused`."""
    _require_shallow(credential)
    try:
        parsed = library.credential.from_authorization(credential)
    except Exception as error:
        raise PaymentRefused("malformed-credential", "The credential is malformed.") from error
    payload: object = parsed.payload
    if (
        not is_object(payload)
        or not isinstance(parsed.challenge.id, str)
        or not _is_hash(payload.get("hash", _NO_HASH))
    ):
        raise PaymentRefused("malformed-credential", "The credential is malformed.")
    content = {"id": parsed.challenge.id, "payload": payload}
    try:
        return parsed, hashlib.sha256(canonical_bytes(content)).hexdigest()
    except ValueError as error:  # an integer beyond 2^53, an infinity, half a character
        raise PaymentRefused("malformed-credential", "The credential is malformed.") from error


def present_credential(parsed: Any, digest: str) -> Presented:  # noqa: ANN401 - the library's own
    """What the challenge that a credential echoes asks for; whose challenge it is, is not known."""
    asked = _asked(str(parsed.challenge.request))
    details = asked.get("methodDetails")
    chain = details.get("chainId") if is_object(details) else None
    amount = str(asked.get("amount"))
    return Presented(
        protocol="mpp",
        network=f"tempo:{chain}",
        amount=int(amount) if _AMOUNT.fullmatch(amount) else -1,
        pay_to=str(asked.get("recipient")).lower(),
        expires_s=_expires_s(parsed.challenge.expires),
        digest=digest,
        token="",
        parsed=parsed,
    )


def at_realm(engine: Any, parsed: Any) -> Any:  # noqa: ANN401 - the library's own
    """The engine as it was at the public address where the challenge was made.

    A challenge's id is a MAC that covers its realm: at whatever address, it is one of ours.
    """
    if engine.realm == parsed.challenge.realm:
        return engine
    made = copy.copy(engine)
    made.realm = parsed.challenge.realm
    return made


def _asked(request: str) -> JsonObject:
    try:
        text = base64.urlsafe_b64decode(request + "=" * (-len(request) % 4))
        value: object = None if is_nested_beyond(text, DEPTH_MAX) else json.loads(text)
    except ValueError:
        return {}
    return value if is_object(value) else {}


def _expires_s(text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _require_shallow(credential: str) -> None:
    """Refuse deep text before a parser recurses into it. Raises `PaymentRefused`."""
    encoded = credential.partition(" ")[2].strip()
    try:
        text = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except ValueError:
        return  # the library refuses it
    if is_nested_beyond(text, DEPTH_MAX):
        raise PaymentRefused("malformed-credential", "The credential is nested too deeply.")


def _is_hash(value: object) -> bool:
    """Asked for anything else, a node fails in words that cannot be told from an outage."""
    return isinstance(value, str) and _HASH.fullmatch(value) is not None
