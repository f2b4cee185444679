"""A remote x402 facilitator: somebody's service verifies and settles.

Source: x402 specification v2, "Facilitator interface"; facts, payments 1.2.
"""

import json
from collections.abc import Mapping, Sequence

import httpx2

from assay.infra.http.bounded_post import post_json
from assay.infra.payments.x402_engine import is_unused
from assay.kit.json import JsonObject, JsonValue, is_object
from assay.payments.buyer import unmarked
from assay.payments.model import (
    Asset,
    Attempt,
    Entry,
    Outcome,
    Payment,
    PaymentNetwork,
    PaymentRefused,
    PaymentsUnavailable,
    Rejected,
    Settled,
    Undecided,
)
from assay.payments.ports import Facilitator, Note

TIMEOUT_S = 20.0
ANSWER_BYTES_MAX = 64 * 1024
_REASON_CHARS_MAX = 100
_PENDING_REASONS = frozenset({"settlement_pending", "unexpected_settle_error"})
"""Reasons that do not say that the money stays where it is. Source: facts, payments 1.4."""


class RemoteFacilitator:
    """Implements `payments.ports.Facilitator` over HTTP; what became of a payment says the chain.

    Version 2 on this wire whatever the client spoke: the signed payload is the same.
    """

    def __init__(
        self, url: str, networks: Mapping[str, PaymentNetwork], chain: Facilitator
    ) -> None:
        self._url = url
        self._networks = networks
        self._chain = chain
        self._client: httpx2.AsyncClient | None = None

    async def verify(self, payment: Payment) -> int:
        quote = payment.quote
        asked = _question(quote.network, payment.credential, quote.amount, quote.pay_to, quote.url)
        answer = await self._post("/verify", asked)
        if answer.get("isValid") is not True:
            reason = _reason(answer.get("invalidReason"), "invalid_payload")
            raise PaymentRefused(reason, "The facilitator does not accept this payment.")
        if str(answer.get("payer", payment.payer)).lower() != payment.payer:
            raise PaymentRefused("invalid_payload", "The facilitator names another payer.")
        return await self._chain.balance(quote.network, payment.payer)

    async def balance(self, network: PaymentNetwork, payer: str) -> int:
        return await self._chain.balance(network, payer)

    async def settle(self, entry: Entry, note: Note) -> Outcome:
        await note(Attempt(""))
        network = self._networks[entry.network]
        asked = _question(network, entry.credential, entry.amount, entry.pay_to, "")
        try:
            answer = await self._post("/settle", asked)
        except PaymentsUnavailable as error:
            return Undecided(error.detail or error.message)  # it may have settled all the same
        transaction = str(answer.get("transaction", ""))[:_REASON_CHARS_MAX]
        if answer.get("success") is True and transaction:
            return Settled(transaction)
        reason = _reason(answer.get("errorReason"), "unexpected_settle_error")
        if reason in _PENDING_REASONS or transaction:
            return Undecided(reason)
        # It refuses what somebody else has submitted meanwhile: the payee has his money then.
        found = await self._chain.outcome(entry)
        return Rejected(reason) if is_unused(found) else found

    async def outcome(self, entry: Entry) -> Outcome:
        return await self._chain.outcome(entry)

    async def outcomes(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        return await self._chain.outcomes(entries)

    async def resend(self, entry: Entry, note: Note) -> Outcome:
        return await self.settle(entry, note)

    async def aclose(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()

    async def _post(self, path: str, body: JsonObject) -> JsonObject:
        if self._client is None:
            self._client = httpx2.AsyncClient(
                trust_env=False, follow_redirects=False, timeout=TIMEOUT_S
            )
        try:
            url = self._url + path
            answer = await post_json(self._client, url, body, ANSWER_BYTES_MAX, TIMEOUT_S)
            value: object = json.loads(answer.body)
        except (httpx2.HTTPError, TimeoutError, ValueError, RecursionError) as error:
            raise _unavailable(repr(error)) from error
        if not is_object(value) or not {"isValid", "success"} & value.keys():
            raise _unavailable(f"status {answer.status}")
        return value


def _question(
    network: PaymentNetwork, credential: JsonObject, amount: int, pay_to: str, url: str
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
    }
    if url:
        payload["resource"] = {"url": url}
    return {"x402Version": 2, "paymentPayload": payload, "paymentRequirements": requirement}


def _domain(asset: Asset) -> JsonObject:
    return {"name": asset.eip712_name, "version": asset.eip712_version}


def _reason(value: JsonValue, otherwise: str) -> str:
    """A stranger's word, kept to what a word may be."""
    if isinstance(value, str) and value.replace("_", "").isalnum() and value.isascii():
        return value[:_REASON_CHARS_MAX]
    return otherwise


def _unavailable(detail: str) -> PaymentsUnavailable:
    return PaymentsUnavailable(
        "Payments cannot be checked now.", detail=f"facilitator: {detail}", retry_after_s=5
    )
