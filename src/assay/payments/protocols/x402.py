"""x402, versions 1 and 2 at once, scheme `exact` over EIP-3009.

Source: x402 specification v1 and v2, `schemes/exact/scheme_exact_evm.md`; facts, payments 1.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from typing import ClassVar, Final

from assay.kit.canonical import canonical_bytes
from assay.kit.json import JsonObject, JsonValue, is_nested_beyond, is_object
from assay.payments.model import (
    Demand,
    Entry,
    Headers,
    Outcome,
    Payment,
    PaymentNetwork,
    PaymentRefused,
    Protocol,
    Quote,
)
from assay.payments.networks import ROWS
from assay.payments.ports import Authorization, Note, PaidRequest, PaymentProtocol, ProtocolNeeds

HEADER_BYTES_MAX = 16 * 1024
"""Largest payment header read; a real one has 1 KiB. Source: facts, payments 6, row 8."""

DEPTH_MAX = 12

SETTLE_S = 15
"""Seconds an authorisation must outlive the upstream's own time, for settling."""

SIGN_S = 45
"""Seconds a client gets to sign and send, on top of what must be left when it arrives."""

_V1, _V2 = b"x-payment", b"payment-signature"
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_NONCE = re.compile(r"0x[0-9a-fA-F]{64}")
_SIGNATURE = re.compile(r"0x[0-9a-fA-F]{130}")
_UINT = re.compile(r"0|[1-9][0-9]{0,77}")
_IDENTIFIER = re.compile(r"[a-zA-Z0-9_-]{16,128}")
"""Source: x402 extension payment-identifier."""

_AUTHORIZATION_FIELDS = ("from", "to", "value", "validAfter", "validBefore", "nonce")


class _Malformed(Exception):
    """What was sent is not a payment."""


@dataclass(frozen=True, slots=True)
class _Envelope:
    """A payment header, taken apart but believed in nothing."""

    version: int
    scheme: str
    network: str
    accepted: JsonObject | None
    resource: JsonObject | None
    authorization: Authorization
    identifier: str | None


class X402:
    """Both versions; the version is what the JSON says, whichever header it came in."""

    name: ClassVar[Protocol] = "x402"

    async def demand(
        self, quote: Quote, needs: ProtocolNeeds, reason: str, transaction: str = ""
    ) -> Demand:
        del needs
        network = quote.network
        refusal = {
            "success": False,
            "errorReason": reason,
            "transaction": transaction,
            "network": network.short_name,
        }
        return Demand(
            headers=(
                (b"payment-required", _encoded(_required(quote, reason))),
                # On a 402 this is a failed settlement's type: what the standard has, and the
                # interface asks for (spec 4.7 rule 2).
                (b"x-payment-response", _encoded(refusal)),
            ),
            extras={"x402Version": 1, "reason": reason, "accepts": [_requirement_v1(quote)]},
        )

    def is_attached(self, headers: Headers) -> bool:
        return any(name in {_V1, _V2} for name, _ in headers)

    async def read(self, request: PaidRequest, quote: Quote, needs: ProtocolNeeds) -> Payment:
        try:
            envelope = _parse(_header(request.headers))
        except _Malformed as error:
            raise PaymentRefused("invalid_payload", f"The payment is malformed: {error}.") from None
        _match(envelope, quote)
        signed = envelope.authorization
        _match_authorization(signed, quote)
        if needs.signers.signer(signed, quote.network) != signed.payer:
            raise PaymentRefused(
                "invalid_exact_evm_payload_signature",
                "The signature is not the payer's over this authorisation.",
            )
        credential = _credential(signed)
        digest = hashlib.sha256(canonical_bytes(credential)).hexdigest()
        _match_time(signed, quote, needs.clock.now().timestamp(), digest)
        return Payment(
            quote=quote,
            payer=signed.payer,
            nonce=signed.nonce,
            digest=digest,
            expires_at=datetime.fromtimestamp(min(signed.valid_before, 253402300799), UTC),
            credential=credential,
            version=envelope.version,
            identifier=envelope.identifier,
        )

    async def verify(self, payment: Payment, needs: ProtocolNeeds) -> int | None:
        return await needs.facilitator.verify(payment)

    async def settle(self, entry: Entry, note: Note, needs: ProtocolNeeds) -> Outcome:
        return await needs.facilitator.settle(entry, note)

    async def outcome(self, entry: Entry, needs: ProtocolNeeds) -> Outcome:
        return await needs.facilitator.outcome(entry)

    async def resend(self, entry: Entry, note: Note, needs: ProtocolNeeds) -> Outcome:
        return await needs.facilitator.resend(entry, note)

    def receipt(self, entry: Entry, needs: ProtocolNeeds) -> Headers:
        del needs
        paid = {"success": True, "transaction": entry.attempt.transaction, "payer": entry.payer}
        return _answers(entry, paid)

    def pending(self, entry: Entry) -> Headers:
        waiting = {
            "success": False,
            "errorReason": "settlement_pending",
            "transaction": entry.attempt.transaction,
            "payer": entry.payer,
        }
        return _answers(entry, waiting)


def authorization_of(credential: JsonObject) -> Authorization:
    """The authorisation in a stored credential."""
    return _authorization(credential)


def _answers(entry: Entry, said: JsonObject) -> Headers:
    """Both receipts; each spells the network as its reader does."""
    short = next((row.short_name for row in ROWS if row.id == entry.network), entry.network)
    old = short if entry.version == 1 else entry.network
    return (
        (b"payment-response", _encoded({**said, "network": entry.network})),
        (b"x-payment-response", _encoded({**said, "network": old})),
    )


def _required(quote: Quote, reason: str) -> JsonObject:
    """The version 2 answer; no member is ever null, for clients choke on it."""
    return {
        "x402Version": 2,
        "error": reason,
        "resource": {
            "url": quote.url,
            "description": quote.description,
            "mimeType": "application/json",
        },
        "accepts": [
            {
                "scheme": "exact",
                "network": quote.network.id,
                "asset": quote.network.asset.address,
                "amount": str(quote.amount),
                "payTo": quote.pay_to,
                "maxTimeoutSeconds": _timeout_s(quote),
                "extra": _extra(quote),
            }
        ],
        "extensions": {},
    }


def _requirement_v1(quote: Quote) -> JsonObject:
    """Version 1 names only: one CAIP-2 network in it and version 1 clients refuse the whole."""
    return {
        "scheme": "exact",
        "network": quote.network.short_name,
        "maxAmountRequired": str(quote.amount),
        "resource": quote.url,
        "description": quote.description,
        "mimeType": "application/json",
        "payTo": quote.pay_to,
        "maxTimeoutSeconds": _timeout_s(quote),
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
    """Seconds that must be left of an authorisation when it arrives."""
    return ceil(SETTLE_S if quote.settles_first else quote.work_s + SETTLE_S)


def _timeout_s(quote: Quote) -> int:
    return needed_s(quote) + SIGN_S


def _encoded(value: Mapping[str, object]) -> bytes:
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode())


def _header(headers: Headers) -> bytes:
    """The one payment header: version 2's wins over version 1's, two of a name are none."""
    for wanted in (_V2, _V1):
        found = [value for name, value in headers if name == wanted]
        if len(found) > 1:
            raise _Malformed("the header comes twice")
        if found:
            return found[0]
    raise _Malformed("there is none")


def _parse(header: bytes) -> _Envelope:
    if len(header) > HEADER_BYTES_MAX:
        raise _Malformed(f"it has more than {HEADER_BYTES_MAX} bytes")
    try:
        text = base64.b64decode(header, validate=True)
    except (binascii.Error, ValueError):
        raise _Malformed("it is not base64") from None
    if is_nested_beyond(text, DEPTH_MAX):
        raise _Malformed("it is nested too deeply")
    try:
        value: object = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _Malformed("it is not JSON") from None
    if not is_object(value):
        raise _Malformed("it is not a JSON object")
    return _envelope(value)


def _envelope(value: JsonObject) -> _Envelope:
    version = value.get("x402Version")
    if isinstance(version, bool) or version not in {1, 2}:
        raise PaymentRefused("invalid_x402_version", "x402Version must be 1 or 2.")
    accepted = _object(value, "accepted") if version == 2 else None  # noqa: PLR2004 - the version
    head = value if accepted is None else accepted
    resource = value.get("resource")
    return _Envelope(
        version=1 if version == 1 else 2,
        scheme=_text(head, "scheme"),
        network=_text(head, "network"),
        accepted=accepted,
        resource=resource if is_object(resource) else None,
        authorization=_authorization(_object(value, "payload")),
        identifier=_identifier(value.get("extensions")),
    )


def _authorization(payload: JsonObject) -> Authorization:
    signed = _object(payload, "authorization")
    payer, to = (_shaped(signed, name, _ADDRESS).lower() for name in ("from", "to"))
    value, after, before = (int(_shaped(signed, n, _UINT)) for n in _AUTHORIZATION_FIELDS[2:5])
    return Authorization(
        payer=payer,
        to=to,
        value=value,
        valid_after=after,
        valid_before=before,
        nonce=_shaped(signed, "nonce", _NONCE).lower(),
        signature=_shaped(payload, "signature", _SIGNATURE).lower(),
    )


def _credential(signed: Authorization) -> JsonObject:
    """The payload in its only spelling."""
    return {
        "signature": signed.signature,
        "authorization": {
            "from": signed.payer,
            "to": signed.to,
            "value": str(signed.value),
            "validAfter": str(signed.valid_after),
            "validBefore": str(signed.valid_before),
            "nonce": signed.nonce,
        },
    }


def _match(envelope: _Envelope, quote: Quote) -> None:
    """Everything is held against our own quote; what the payment echoes must agree with it."""
    network = quote.network
    if envelope.scheme != "exact":
        raise PaymentRefused("unsupported_scheme", "Only the scheme exact is taken.")
    if envelope.network not in _spellings(network, envelope.version):
        raise PaymentRefused("invalid_network", f"This wrapper is paid on {network.id}.")
    if envelope.accepted is not None and not _accepts(envelope.accepted, quote):
        raise PaymentRefused(
            "invalid_payment_requirements", "The accepted requirement is not the one asked for."
        )
    if envelope.resource is not None and envelope.resource.get("url") != quote.url:
        raise PaymentRefused("invalid_payment_requirements", "The payment names another resource.")


def _spellings(network: PaymentNetwork, version: int) -> set[str]:
    """Version 2 has CAIP-2 only; version 1 clients use either."""
    return {network.id, network.short_name} if version == 1 else {network.id}


def _accepts(accepted: JsonObject, quote: Quote) -> bool:
    asset, pay_to = accepted.get("asset"), accepted.get("payTo")
    return (
        isinstance(asset, str)
        and isinstance(pay_to, str)
        and asset.lower() == quote.network.asset.address
        and pay_to.lower() == quote.pay_to
        and accepted.get("amount") == str(quote.amount)
    )


def _match_authorization(signed: Authorization, quote: Quote) -> None:
    if signed.to != quote.pay_to:
        raise PaymentRefused(
            "invalid_exact_evm_payload_recipient_mismatch", "The payment goes to somebody else."
        )
    if signed.value != quote.amount:
        raise PaymentRefused(
            "invalid_exact_evm_payload_authorization_value_mismatch",
            f"The price is {quote.amount} base units, no more and no less.",
        )


def _match_time(signed: Authorization, quote: Quote, now_s: float, digest: str) -> None:
    if signed.valid_after > now_s:
        raise PaymentRefused(
            "invalid_exact_evm_payload_authorization_valid_after",
            "The authorisation is not valid yet.",
        )
    if signed.valid_before < now_s + needed_s(quote):
        raise PaymentRefused(
            "invalid_exact_evm_payload_authorization_valid_before",
            f"The authorisation must be valid for {needed_s(quote)} more seconds.",
            digest=digest,
        )


def _identifier(extensions: JsonValue) -> str | None:
    """The payment-identifier, when the client sends one."""
    if not is_object(extensions):
        return None
    extension = extensions.get("payment-identifier")
    info = extension.get("info") if is_object(extension) else None
    given = info.get("id") if is_object(info) else None
    if given is None:
        return None
    if not isinstance(given, str) or not _IDENTIFIER.fullmatch(given):
        raise _Malformed("its payment-identifier is not 16 to 128 of a-z, A-Z, 0-9, _ and -")
    return given


def _object(value: JsonObject, name: str) -> JsonObject:
    found = value.get(name)
    if not is_object(found):
        raise _Malformed(f"{name} is not an object")
    return found


def _text(value: JsonObject, name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str):
        raise _Malformed(f"{name} is not a string")
    return found


def _shaped(value: JsonObject, name: str, shape: re.Pattern[str]) -> str:
    found = _text(value, name)
    if not shape.fullmatch(found) or not found.isascii():
        raise _Malformed(f"{name} is not of its form")
    return found


def _once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """A name that comes twice could be read two ways."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name twice")
    return made


def _no_constant(name: str) -> JsonValue:
    raise ValueError(name)


PROTOCOL: Final[PaymentProtocol] = X402()
