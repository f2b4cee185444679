"""Reads a 402 of x402 as a customer, and writes the header that pays it, like stock clients.

Everything in a 402 is a stranger's word: the caller must decide about payee and amount. What is
signed comes from our own table. Source: x402 specification, versions 1 and 2; x402.md#documents.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_array, is_nested_beyond, is_object
from assay.net.egress.ports import EgressResponse
from assay.payments.model import PaymentNetwork
from assay.payments.networks import checksummed
from assay.payments.ports import Authorization

CHARS_MAX: Final = 65_536
OFFERS_MAX: Final = 32
DEPTH_MAX: Final = 32
TIMEOUT_S: Final = 60
TIMEOUT_S_MAX: Final = 600
"""Longest time in which a signed payment may be taken."""

AFTER_S: Final = 600
"""Version 1 clients sign from ten minutes before, version 2 ones for any time."""

_AMOUNT: Final = re.compile(r"[1-9][0-9]{0,17}")
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One way to pay that can be met: an EIP-3009 transfer of a network's own asset."""

    version: int
    network: PaymentNetwork
    pay_to: str
    """In lower case."""
    amount: int
    timeout_s: int
    row: JsonObject
    resource: JsonValue


def requirements(reply: EgressResponse, networks: Sequence[PaymentNetwork]) -> list[Requirement]:
    """Return what a reply asks for and these networks can pay; version 2 before version 1."""
    header = reply.header("payment-required")
    texts = [_unpacked(header)] if header is not None else []
    found: list[Requirement] = []
    for text in (*texts, reply.body[:CHARS_MAX]):
        document = _decoded(text)
        accepts = document.get("accepts") if is_object(document) else None
        if is_object(document) and is_array(accepts):
            rows = [row for row in accepts[:OFFERS_MAX] if is_object(row)]
            made = [_requirement(row, document, networks) for row in rows]
            found += [one for one in made if one is not None]
    return sorted(found, key=lambda one: -one.version)


def _requirement(
    row: JsonObject, document: JsonObject, networks: Sequence[PaymentNetwork]
) -> Requirement | None:
    version = document.get("x402Version")
    if version not in (1, 2) or isinstance(version, bool) or row.get("scheme") != "exact":
        return None
    is_old = version == 1
    named = {n.short_name if is_old else n.id: n for n in networks}
    network = named.get(str(row.get("network")))
    fields = ("maxAmountRequired" if is_old else "amount", "payTo", "asset")
    amount, pay_to, asset = (str(row.get(name)) for name in fields)
    extra = row.get("extra")
    is_other = is_object(extra) and extra.get("assetTransferMethod") not in {None, "eip3009"}
    if network is None or asset.lower() != network.asset.address or is_other:
        return None
    if not _AMOUNT.fullmatch(amount) or not _ADDRESS.fullmatch(pay_to):
        return None
    resource = document.get("resource")
    timeout_s = _timeout_s(row.get("maxTimeoutSeconds"))
    return Requirement(
        1 if is_old else 2, network, pay_to.lower(), int(amount), timeout_s, row, resource
    )


def _timeout_s(asked: JsonValue) -> int:
    if isinstance(asked, bool) or not isinstance(asked, int):
        return TIMEOUT_S
    return min(max(asked, 1), TIMEOUT_S_MAX)


def unsigned(one: Requirement, payer: str, nonce: str, now_s: int) -> Authorization:
    """Return the transfer that meets a requirement, to be signed by its payer."""
    return Authorization(
        payer=payer,
        to=one.pay_to,
        value=one.amount,
        valid_after=now_s - AFTER_S if one.version == 1 else 0,
        valid_before=now_s + one.timeout_s,
        nonce=nonce,
        signature="",
    )


def payment_header(one: Requirement, signed: Authorization) -> Mapping[str, str]:
    """Return the header with a signed transfer."""
    authorization: JsonObject = {
        "from": checksummed(signed.payer),
        "to": checksummed(signed.to),
        "value": str(signed.value),
        "validAfter": str(signed.valid_after),
        "validBefore": str(signed.valid_before),
        "nonce": signed.nonce,
    }
    payload: JsonObject = {"authorization": authorization, "signature": signed.signature}
    if one.version == 1:
        head: JsonObject = {"scheme": "exact", "network": one.network.short_name}
        return {"x-payment": _packed({"x402Version": 1, **head, "payload": payload})}
    made: JsonObject = {"x402Version": 2, "payload": payload, "accepted": one.row}
    resource: JsonObject = {"resource": one.resource} if is_object(one.resource) else {}
    return {"payment-signature": _packed({**made, **resource})}


def _packed(value: JsonObject) -> str:
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode()


def _unpacked(header: str) -> bytes:
    try:
        return base64.b64decode(header[:CHARS_MAX], validate=True)
    except (binascii.Error, ValueError):
        return b""


def _decoded(text: bytes) -> JsonValue:
    if is_nested_beyond(text, DEPTH_MAX):
        return None
    try:
        return json.loads(text.decode())
    except (ValueError, RecursionError):
        return None
