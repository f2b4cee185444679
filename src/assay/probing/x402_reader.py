"""Reads a service's payment demand from its 402; shared by the probes of payment.

Source: x402 specification, versions 1 (body) and 2 (header `PAYMENT-REQUIRED`); x402.md#documents.
"""

import base64
import binascii
import re
from dataclasses import dataclass

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressResponse, Failure, OutboundRequest
from assay.probing.ports import ProbeSession
from assay.probing.probe_client import ask, decode, first

HEADER_CHARS_MAX = 65_536
OFFERS_MAX = 32
_PAYMENT_REQUIRED = 402
_NOT_BY_GET = frozenset({400, 404, 405, 415, 422})
_AMOUNT = re.compile(r"[0-9]{1,40}")


@dataclass(frozen=True, slots=True)
class Offer:
    """A way to pay: payee, amount, asset and network, as demanded."""

    network: str
    asset: str
    amount: str
    pay_to: str


@dataclass(frozen=True, slots=True)
class PaymentDemand:
    """A parsed 402: the offers of either version, and whether every one of them is well-formed."""

    body: tuple[Offer, ...]
    header: tuple[Offer, ...]
    is_valid: bool

    @property
    def offers(self) -> frozenset[Offer]:
        """Return the offers of both versions."""
        return frozenset(self.body) | frozenset(self.header)


async def asked(visit: ProbeSession, headers: dict[str, str] | None = None) -> PaymentDemand | None:
    """Return the first HTTP service's demand for an unpaid call; None if it is not x402."""
    service = first(visit, "http")
    if service is None:
        return None
    response = await ask(visit, OutboundRequest("GET", service.service.endpoint, headers or {}))
    return read(response)


async def unpaid(
    visit: ProbeSession, url: str, headers: dict[str, str] | None = None
) -> EgressResponse | Failure:
    """Return the answer to an unpaid call, if payment is known or declared to be demanded.

    It is a GET; if only a POST is sold, a POST with an empty object: before payment it has no
    effect.
    """
    response = await ask(visit, OutboundRequest("GET", url, headers or {}))
    if not isinstance(response, EgressResponse) or response.status not in _NOT_BY_GET:
        return response
    posted = {**(headers or {}), "content-type": "application/json"}
    return await ask(visit, OutboundRequest("POST", url, posted, b"{}"))


def read(response: EgressResponse | Failure) -> PaymentDemand | None:
    """Return the offers of a 402, or None if it has none of x402's."""
    if not isinstance(response, EgressResponse) or response.status != _PAYMENT_REQUIRED:
        return None
    document = decode(response.body)
    spoken = is_object(document) and "x402Version" in document
    header = response.header("payment-required")
    if not spoken and header is None:
        return None
    is_old = is_object(document) and document.get("x402Version") == 1
    body = _offers(document, "maxAmountRequired" if is_old else "amount") if spoken else ()
    said = _offers(_decoded(header), "amount") if header is not None else ()
    valid = body is not None and said is not None and bool(body or said)
    return PaymentDemand(body or (), said or (), is_valid=valid)


def _decoded(header: str) -> JsonValue:
    try:
        return decode(base64.b64decode(header[:HEADER_CHARS_MAX], validate=True))
    except (binascii.Error, ValueError):
        return None


def _offers(document: JsonValue, amount: str) -> tuple[Offer, ...] | None:
    """Return the offers of one version; None if one of them cannot be read."""
    accepts = document.get("accepts") if is_object(document) else None
    if not is_array(accepts) or len(accepts) > OFFERS_MAX:
        return None
    offers = [_offer(row, amount) for row in accepts]
    whole = tuple(offer for offer in offers if offer is not None)
    return whole if len(whole) == len(offers) else None


def _offer(row: JsonValue, amount: str) -> Offer | None:
    if not is_object(row):
        return None
    fields = [row.get(name) for name in ("network", "asset", amount, "payTo", "scheme")]
    texts = [field for field in fields if isinstance(field, str) and field]
    if len(texts) != len(fields) or not _AMOUNT.fullmatch(texts[2]):
        return None
    return Offer(texts[0], texts[1].lower(), texts[2], texts[3].lower())


def consistent(found: PaymentDemand) -> bool:
    """Return whether both versions have the same price of each asset, and the same payee."""
    by_asset: dict[str, set[tuple[str, str]]] = {}
    for offer in found.offers:
        by_asset.setdefault(offer.asset, set()).add((offer.amount, offer.pay_to))
    return all(len(prices) == 1 for prices in by_asset.values())


def as_json(found: PaymentDemand) -> JsonObject:
    """Return what may be stored of it: classes only."""
    return {"valid": found.is_valid, "consistent": consistent(found)}
