"""A remote x402 facilitator: a service verifies and settles, and the chain proves it.

Nothing that it says of a settlement counts. A success is believed if the chain shows this
authorisation and this transfer, and a refusal if the chain shows that nothing has moved. It also
reads what a facilitator lists in its answer to `GET /supported`. Source: x402 specification v2,
"Facilitator interface"; x402.md#facilitator; ADR 0019.
"""

import asyncio
import json
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import httpx2

from assay.common.cache import BoundedMap
from assay.common.clock import Clock
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.body import get, post_json
from assay.payments.model import (
    LedgerEntry,
    Payment,
    PaymentAsset,
    PaymentNetwork,
    PaymentRefused,
    PaymentSighting,
    PaymentsUnavailable,
)
from assay.payments.networks import network_id
from assay.payments.outcomes import (
    PaymentOutcome,
    Rejected,
    SettlementAttempt,
    Undecided,
    is_unused,
)
from assay.payments.ports import Facilitator, Note, unmarked
from assay.payments.x402.bazaar import described, resource_of

KINDS_MAX = 1000
LISTED_MAX = 1000
"""Payments whose descriptions for catalogues are kept between verifying and settling."""

_NAME_CHARS_MAX = 64


def networks_listed(body: bytes, known: Container[str]) -> frozenset[str] | None:
    """Return the known networks on which it settles our scheme, `exact`.

    None for an answer of another form, or with more kinds than are read.
    """
    try:
        said: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    kinds = said.get("kinds") if is_object(said) else None
    if not is_array(kinds) or len(kinds) > KINDS_MAX:
        return None
    found: set[str] = set()
    for kind in kinds:
        name = kind.get("network") if is_object(kind) and kind.get("scheme") == "exact" else None
        if isinstance(name, str) and len(name) <= _NAME_CHARS_MAX:
            found.add(network_id(name) or "")
    return frozenset(one for one in found if one in known)


TIMEOUT_S = 20.0
ANSWER_BYTES_MAX = 64 * 1024
POLL_S = 0.1
POLL_MAX_S = 1.0
"""Longest time between two looks for the transaction of a settlement that it claims."""

_OUTAGES = frozenset({500, 502, 503, 504})
"""Statuses of a `GET /supported` that mean an outage; other errors mean that it is not offered."""

_REASON_CHARS_MAX = 100
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")
_PENDING_REASONS = frozenset({"settlement_pending", "unexpected_settle_error"})
"""Reasons that do not say that the money stays where it is. Source: x402.md#error-reasons."""


class RemoteFacilitator:
    """Implements `payments.ports.Facilitator` over HTTP; the chain decides outcomes.

    It speaks version 2 whatever the client spoke: the signed payload is the same. What it says of
    the sold resource comes from the quote, so that no buyer decides what a catalogue lists.
    """

    def __init__(
        self,
        url: str,
        networks: Mapping[str, PaymentNetwork],
        chain: Facilitator,
        clock: Clock,
        settlement_s: float,
    ) -> None:
        self._url = url
        self._networks = networks
        self._chain = chain
        self._clock = clock
        self._settlement_s = settlement_s
        self._client: httpx2.AsyncClient | None = None
        # The ledger keeps no description: without it a payment settles, and nothing is listed.
        self._described: BoundedMap[str, JsonObject] = BoundedMap(LISTED_MAX)

    async def verify(self, payment: Payment, sighting: PaymentSighting) -> int:
        # Ask the chain first: a later use is by somebody who saw it here.
        balance_units = await self._chain.balance(payment, sighting)
        sighting.may_have_moved = True
        quote = payment.quote
        about: JsonObject = {"resource": {"url": quote.url}}
        if extensions := described(quote):
            about = {"resource": resource_of(quote), "extensions": extensions}
            self._described.put(payment.digest, about)
        asked = _question(quote.network, payment.credential, quote.amount, quote.pay_to, about)
        answer = await self._post("/verify", asked)
        if not isinstance(answer.get("isValid"), bool):
            raise _unavailable("it does not say whether the payment is valid")
        if not answer["isValid"]:
            reason = _reason(answer.get("invalidReason"), "invalid_payload")
            raise PaymentRefused(reason, "The facilitator does not accept this payment.")
        if str(answer.get("payer", payment.payer)).lower() != payment.payer:
            raise PaymentRefused("invalid_payload", "The facilitator names another payer.")
        return balance_units

    async def balance(self, payment: Payment, sighting: PaymentSighting) -> int:
        return await self._chain.balance(payment, sighting)

    async def settle(self, entry: LedgerEntry, note: Note) -> PaymentOutcome:
        await note(SettlementAttempt(""))
        network = self._networks[entry.network]
        about = self._described.get(entry.digest) or {}
        asked = _question(network, entry.credential, entry.amount, entry.pay_to, about)
        try:
            answer = await self._post("/settle", asked)
        except PaymentsUnavailable as error:
            return Undecided(error.detail or error.message)  # it may have settled it nevertheless
        transaction = answer.get("transaction")
        if answer.get("success") is True:
            return await self._shown(entry, transaction)
        reason = _reason(answer.get("errorReason"), "unexpected_settle_error")
        if reason in _PENDING_REASONS or transaction:
            return Undecided(reason)
        if entry.look.is_used:
            return Undecided(reason, is_used=True)
        # It refuses what somebody else has submitted meanwhile; then the payee has the money.
        found = await self._chain.outcome(entry)
        return Rejected(reason) if is_unused(found) else found

    async def outcome(self, entry: LedgerEntry) -> PaymentOutcome:
        return await self._chain.outcome(entry)

    async def outcomes(
        self, entries: Sequence[LedgerEntry], *, every_node: bool = False
    ) -> Sequence[PaymentOutcome]:
        return await self._chain.outcomes(entries, every_node=every_node)

    async def resend(self, entry: LedgerEntry, note: Note) -> PaymentOutcome:
        return await self.settle(entry, note)

    async def supported(self) -> frozenset[str] | None:
        """Return our networks that it lists; None if it does not say.

        Raises `PaymentsUnavailable` if it does not answer. Source: x402 v2, `GET /supported`.
        """
        try:
            url = self._url + "/supported"
            answer = await get(self._connections(), url, ANSWER_BYTES_MAX, TIMEOUT_S)
        except ValueError:
            return None
        except (httpx2.HTTPError, TimeoutError) as error:
            raise _unavailable(repr(error)) from error
        if answer.status in _OUTAGES:
            raise _unavailable(f"status {answer.status}")
        return networks_listed(answer.body, self._networks)

    async def aclose(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()

    async def _shown(self, entry: LedgerEntry, said: JsonValue) -> PaymentOutcome:
        """Return what the chain shows of a settlement that it claims, once it shows it.

        It is waited for once; after that the payment's own looks find it. The transaction that it
        names only says where to look first, and is stored nowhere: it may be junk, another
        payment's, or not mined yet.
        """
        named = said if isinstance(said, str) and _HASH.fullmatch(said) else ""
        claimed = replace(entry, attempt=SettlementAttempt(named.lower()))
        deadline_s = self._clock.monotonic_s() + self._settlement_s
        pause_s = POLL_S
        while not entry.look.is_used:
            found = await self._chain.outcome(claimed)
            if not isinstance(found, Undecided):
                return found
            if self._clock.monotonic_s() + pause_s > deadline_s:
                break
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, POLL_MAX_S)
        detail = "the facilitator says it has settled, and the chain does not"
        return Undecided(detail, is_used=True)

    async def _post(self, path: str, body: JsonObject) -> JsonObject:
        try:
            url, client = self._url + path, self._connections()
            timeout_s = min(TIMEOUT_S, self._settlement_s)
            answer = await post_json(client, url, body, ANSWER_BYTES_MAX, timeout_s)
            value: object = json.loads(answer.body)
        except (httpx2.HTTPError, TimeoutError, ValueError, RecursionError) as error:
            raise _unavailable(repr(error)) from error
        if not is_object(value) or not {"isValid", "success"} & value.keys():
            raise _unavailable(f"status {answer.status}")
        return value

    def _connections(self) -> httpx2.AsyncClient:
        if self._client is None:
            self._client = httpx2.AsyncClient(
                trust_env=False, follow_redirects=False, timeout=TIMEOUT_S
            )
        return self._client


def _question(
    network: PaymentNetwork, credential: JsonObject, amount: int, pay_to: str, about: JsonObject
) -> JsonObject:
    requirement: dict[str, JsonValue] = {
        "scheme": "exact",
        "network": network.id,
        "asset": network.asset.address,
        "amount": str(amount),
        "payTo": pay_to,
        "maxTimeoutSeconds": 60,
        "extra": _domain(network.asset),
    }
    payload: dict[str, JsonValue] = {
        "x402Version": 2,
        "accepted": requirement,
        "payload": unmarked(credential),
        **about,
    }
    return {"x402Version": 2, "paymentPayload": payload, "paymentRequirements": requirement}


def _domain(asset: PaymentAsset) -> JsonObject:
    return {"name": asset.eip712_name, "version": asset.eip712_version}


def _reason(value: JsonValue, otherwise: str) -> str:
    """Return a stranger's word, limited to what a word may be."""
    if isinstance(value, str) and value.replace("_", "").isalnum() and value.isascii():
        return value[:_REASON_CHARS_MAX]
    return otherwise


def _unavailable(detail: str) -> PaymentsUnavailable:
    return PaymentsUnavailable(
        "Payments cannot be checked now.", detail=f"facilitator: {detail}", retry_after_s=5
    )
