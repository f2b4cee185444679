"""Reads and writes x402 strictly: what a 402 says, and what a payment header holds.

Source: x402 specification v1 and v2, `schemes/exact/scheme_exact_evm.md`; x402.md#documents.
"""

import base64
import binascii
import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from pydantic_core import to_json

from assay.common.http_heads import HeaderPairs
from assay.common.json import JsonObject, JsonValue, is_nested_beyond, is_object
from assay.payments.model import PaymentRefused, Quote
from assay.payments.ports import ECHOED, Authorization
from assay.payments.x402.bazaar import described, resource_of

HEADER_BYTES_MAX = 16 * 1024
"""Largest payment header that is read; a real one has 1 KiB. Source:
payment-safety.md#oversized-payment-headers."""

DEPTH_MAX = 12

SETTLE_S = 15
"""Seconds that an authorisation must outlive the upstream's own time, for settling."""

SIGN_S = 45
"""Seconds that a client gets to sign and send, beyond what must be left when it arrives."""

V1, V2 = b"x-payment", b"payment-signature"
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_NONCE = re.compile(r"0x[0-9a-fA-F]{64}")
_SIGNATURE = re.compile(r"0x[0-9a-fA-F]{130}")
_UINT = re.compile(r"0|[1-9][0-9]{0,77}")
_IDENTIFIER = re.compile(r"[a-zA-Z0-9_-]{16,128}")
"""Source: x402 extension payment-identifier."""

_AUTHORIZATION_FIELDS = ("from", "to", "value", "validAfter", "validBefore", "nonce")


class MalformedPayment(Exception):
    """The header is not a payment."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payment header, parsed but not verified."""

    version: int
    scheme: str
    network: str
    accepted: JsonObject | None
    resource: JsonObject | None
    authorization: Authorization
    identifier: str | None
    extensions: JsonObject
    """What version 2 sends beside the payment."""


def required_v2(quote: Quote, reason: str) -> JsonObject:
    """Return the version 2 answer; no member is ever null, because clients fail on null."""
    return {
        "x402Version": 2,
        "error": reason,
        "resource": resource_of(quote),
        "accepts": [
            {
                "scheme": "exact",
                "network": quote.network.id,
                "asset": quote.network.asset.address,
                "amount": str(quote.amount),
                "payTo": quote.pay_to,
                "maxTimeoutSeconds": timeout_s(quote),
                "extra": {**_extra(quote), ECHOED: secrets.token_urlsafe(16)},
            }
        ],
        "extensions": described(quote),
    }


def requirement_v1(quote: Quote) -> JsonObject:
    """Return a version 1 requirement with version 1 names: its clients refuse CAIP-2 names."""
    return {
        "scheme": "exact",
        "network": quote.network.short_name,
        "maxAmountRequired": str(quote.amount),
        "resource": quote.url,
        "description": quote.description,
        "mimeType": "application/json",
        "payTo": quote.pay_to,
        "maxTimeoutSeconds": timeout_s(quote),
        "asset": quote.network.asset.address,
        "extra": _extra(quote),
    }


def _extra(quote: Quote) -> JsonObject:
    domain: dict[str, JsonValue] = {
        "name": quote.network.asset.eip712_name,
        "version": quote.network.asset.eip712_version,
    }
    return {**domain, "paymentFlow": "upfront"} if quote.settles_first else domain


def needed_s(quote: Quote) -> int:
    """Return the seconds that an authorisation must still be valid when it arrives."""
    return ceil(SETTLE_S if quote.settles_first else quote.work_s + SETTLE_S)


def timeout_s(quote: Quote) -> int:
    """Return the seconds for which a client is asked to sign: `maxTimeoutSeconds`."""
    return needed_s(quote) + SIGN_S


def encoded(value: Mapping[str, object]) -> bytes:
    """Return JSON in base64, as in every header of the protocol."""
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode())


def payment_header(headers: HeaderPairs) -> bytes:
    """Return the one payment header: version 2's comes first; two of a name count as none."""
    for wanted in (V2, V1):
        found = [value for name, value in headers if name == wanted]
        if len(found) > 1:
            raise MalformedPayment("the header comes twice")
        if found:
            return found[0]
    raise MalformedPayment("there is none")


def parse(header: bytes) -> Envelope:
    """Parse the header. Raises `MalformedPayment`, and `PaymentRefused` for another version."""
    if len(header) > HEADER_BYTES_MAX:
        raise MalformedPayment(f"it has more than {HEADER_BYTES_MAX} bytes")
    try:
        text = base64.b64decode(header, validate=True)
    except (binascii.Error, ValueError):
        raise MalformedPayment("it is not base64") from None
    if is_nested_beyond(text, DEPTH_MAX):
        raise MalformedPayment("it is nested too deeply")
    try:
        # Only UTF-8: in an encoding that `loads` guesses, brackets could not be counted.
        value: object = json.loads(
            text.decode(), object_pairs_hook=_once, parse_constant=_no_constant
        )
    except (ValueError, RecursionError):
        raise MalformedPayment("it is not JSON") from None
    if not is_object(value):
        raise MalformedPayment("it is not a JSON object")
    return _envelope(value)


def _envelope(value: JsonObject) -> Envelope:
    version = value.get("x402Version")
    if type(version) is not int or version not in (1, 2):
        raise PaymentRefused("invalid_x402_version", "x402Version must be 1 or 2.")
    accepted = _object(value, "accepted") if version == 2 else None  # noqa: PLR2004 - the version
    head = value if accepted is None else accepted
    resource = value.get("resource")
    return Envelope(
        version=1 if version == 1 else 2,
        scheme=_text(head, "scheme"),
        network=_text(head, "network"),
        accepted=accepted,
        resource=resource if is_object(resource) else None,
        authorization=_authorization(_object(value, "payload")),
        identifier=_identifier(value.get("extensions")),
        extensions=extensions if is_object(extensions := value.get("extensions")) else {},
    )


def _authorization(payload: JsonObject) -> Authorization:
    signed = _object(payload, "authorization")
    payer, to = (_shaped(signed, name, _ADDRESS).lower() for name in ("from", "to"))
    value, after, before = (_uint256(signed, name) for name in _AUTHORIZATION_FIELDS[2:5])
    return Authorization(
        payer=payer,
        to=to,
        value=value,
        valid_after=after,
        valid_before=before,
        nonce=_shaped(signed, "nonce", _NONCE).lower(),
        signature=_shaped(payload, "signature", _SIGNATURE).lower(),
    )


def credential_of(signed: Authorization) -> JsonObject:
    """Return the payload in its only spelling, with sorted members, which is digested."""
    return {
        "authorization": {
            "from": signed.payer,
            "nonce": signed.nonce,
            "to": signed.to,
            "validAfter": str(signed.valid_after),
            "validBefore": str(signed.valid_before),
            "value": str(signed.value),
        },
        "signature": signed.signature,
    }


def authorization_of(credential: JsonObject) -> Authorization:
    """Return the authorisation from the text of `credential_of`."""
    signed = _object(credential, "authorization")
    return Authorization(
        payer=_text(signed, "from"),
        to=_text(signed, "to"),
        value=int(_text(signed, "value")),
        valid_after=int(_text(signed, "validAfter")),
        valid_before=int(_text(signed, "validBefore")),
        nonce=_text(signed, "nonce"),
        signature=_text(credential, "signature"),
    )


def credential_digest(signed: Authorization) -> str:
    """Return the SHA-256 of the payload's canonical form: sorted JSON of plain texts."""
    return hashlib.sha256(to_json(credential_of(signed))).hexdigest()


def _identifier(extensions: JsonValue) -> str | None:
    """Return the payment identifier, if the client sends one."""
    if not is_object(extensions):
        return None
    extension = extensions.get("payment-identifier")
    info = extension.get("info") if is_object(extension) else None
    given = info.get("id") if is_object(info) else None
    if given is None:
        return None
    if not isinstance(given, str) or not _IDENTIFIER.fullmatch(given):
        raise MalformedPayment("its payment-identifier is not 16 to 128 of a-z, A-Z, 0-9, _ and -")
    return given


def _object(value: JsonObject, name: str) -> JsonObject:
    found = value.get(name)
    if not is_object(found):
        raise MalformedPayment(f"{name} is not an object")
    return found


def _text(value: JsonObject, name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str):
        raise MalformedPayment(f"{name} is not a string")
    return found


def _uint256(value: JsonObject, name: str) -> int:
    """Return a number that fits one word of the signature: 78 digits can be larger."""
    number = int(_shaped(value, name, _UINT))
    if number >> 256:
        raise MalformedPayment(f"{name} is not of its form")
    return number


def _shaped(value: JsonObject, name: str, shape: re.Pattern[str]) -> str:
    found = _text(value, name)
    if not shape.fullmatch(found) or not found.isascii():
        raise MalformedPayment(f"{name} is not of its form")
    return found


def _once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return the members; refuse a name that comes twice, which could be read in two ways."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name twice")
    return made


def _no_constant(name: str) -> JsonValue:
    raise ValueError(name)
