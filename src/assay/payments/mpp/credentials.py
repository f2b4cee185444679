"""MPP credentials as strangers send them: read by the library, bounded and checked here."""

import base64
import copy
import hashlib
import json
import re
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from assay.common.json import JsonObject, canonical_bytes, is_array, is_nested_beyond, is_object
from assay.payments.model import DirectFee, PaymentRefused, Quote
from assay.payments.mpp.library import Library
from assay.payments.requests import PresentedPayment

DEPTH_MAX = 12
"""Nesting of a credential; a real one has 3 levels."""

KEPT_BYTES_MAX = 16 * 1024
"""Largest credential that is kept. A challenge of ours and a payment take 4 KiB."""

FEE_RATE = "fee_rate"
"""Where a challenge keeps the rate that its split was made with, beside what it is bound to."""

_ADDRESS = re.compile(r"0x[0-9a-f]{40}")
_RATE = re.compile(r"[01](\.[0-9]{1,30})?")
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


def kept_credential(parsed: Any) -> JsonObject:  # noqa: ANN401 - the library's own
    """`{challenge, payload, source}`: all that is kept of a credential, at most `KEPT_BYTES_MAX`.

    Nothing of how its sender has spelled it, nor the challenge's description, which no id covers.
    Raises `PaymentRefused` for a larger one.
    """
    echoed = replace(parsed.challenge, description=None)
    written = replace(parsed, challenge=echoed).to_authorization()
    text = _bytes(written.partition(" ")[2])
    if len(text) > KEPT_BYTES_MAX:
        raise PaymentRefused("malformed-credential", "The Payment credential is too large.")
    return json.loads(text)


def authorization_of(kept: JsonObject) -> str:
    """The header's value that says what is kept; older rows keep the header itself."""
    if "authorization" in kept:
        return str(kept["authorization"])
    text = json.dumps(kept, separators=(",", ":"), sort_keys=True).encode()
    return "Payment " + base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def present_credential(parsed: Any, digest: str) -> PresentedPayment:  # noqa: ANN401 - the library's own
    """What the challenge that a credential echoes asks for; whose challenge it is, is not known."""
    asked = _decoded(str(parsed.challenge.request))
    details = asked.get("methodDetails")
    chain = details.get("chainId") if is_object(details) else None
    amount = str(asked.get("amount"))
    return PresentedPayment(
        protocol="mpp",
        network=f"tempo:{chain}",
        amount=int(amount) if _AMOUNT.fullmatch(amount) else -1,
        pay_to=str(asked.get("recipient")).lower(),
        expires_s=_expires_s(parsed.challenge.expires),
        digest=digest,
        token="",
        parsed=parsed,
    )


def as_asked(quote: Quote, parsed: Any) -> Quote:  # noqa: ANN401 - the library's own
    """The quote with the platform's fee as the echoed challenge has it: of when it was asked.

    Whoever takes it has to require that the challenge is ours: its id is a MAC over all of this.
    """
    details = _decoded(str(parsed.challenge.request)).get("methodDetails")
    splits = details.get("splits") if is_object(details) else None
    if splits is None:
        rate = None if quote.direct_fee else quote.fee_rate
        return replace(quote, direct_fee=None, fee_rate=rate)
    split = splits[0] if is_array(splits) and len(splits) == 1 else None
    found: JsonObject = split if is_object(split) else {}
    payee, amount = str(found.get("recipient")), str(found.get("amount"))
    rate = str(_decoded(str(parsed.challenge.opaque)).get(FEE_RATE))
    if not (_ADDRESS.fullmatch(payee) and _AMOUNT.fullmatch(amount) and _RATE.fullmatch(rate)):
        return quote  # not one of ours
    return replace(quote, direct_fee=DirectFee(payee, int(amount)), fee_rate=Decimal(rate))


def at_realm(engine: Any, parsed: Any) -> Any:  # noqa: ANN401 - the library's own
    """The engine as it was at the public address where the challenge was made.

    A challenge's id is a MAC that covers its realm: at whatever address, it is one of ours.
    """
    if engine.realm == parsed.challenge.realm:
        return engine
    made = copy.copy(engine)
    made.realm = parsed.challenge.realm
    return made


def _decoded(member: str) -> JsonObject:
    """An object that stands in a credential as base64url; empty for anything else."""
    try:
        text = _bytes(member)
        value: object = None if is_nested_beyond(text, DEPTH_MAX) else json.loads(text)
    except ValueError:
        return {}
    return value if is_object(value) else {}


def _bytes(encoded: str) -> bytes:
    """Raises `ValueError` for text that is not base64url."""
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))


def _expires_s(text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _require_shallow(credential: str) -> None:
    """Refuse deep text before a parser recurses into it. Raises `PaymentRefused`."""
    encoded = credential.partition(" ")[2].strip()
    try:
        text = _bytes(encoded)
    except ValueError:
        return  # the library refuses it
    if is_nested_beyond(text, DEPTH_MAX):
        raise PaymentRefused("malformed-credential", "The credential is nested too deeply.")


def _is_hash(value: object) -> bool:
    """Asked for anything else, a node fails in words that cannot be told from an outage."""
    return isinstance(value, str) and _HASH.fullmatch(value) is not None
