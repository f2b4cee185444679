"""A remote x402 facilitator: a service verifies and settles, and the chain proves it.

Nothing that it says of a settlement counts. A success is believed if the chain shows this
authorisation and this transfer, and a refusal if the chain shows that nothing has moved. It also
reads what a facilitator lists in its answer to `GET /supported`. Source: x402 specification v2,
"Facilitator interface"; x402.md#facilitator; ADR 0019.
"""

import asyncio
import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import httpx2

from assay.common.cache import BoundedMap
from assay.common.circuit_breaker import Breaker
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
from assay.payments.x402.facilitator_access import FacilitatorEndpoint

KINDS_MAX = 1000
LISTED_MAX = 1000
"""Payments whose descriptions for catalogues are kept between verifying and settling."""

ASKED_MAX = 10_000
"""Payments of which it is known who was asked to settle them; beyond that no refusal counts."""

EXTENSIONS_CHARS_MAX = 4096
"""Longest extensions of a payment, as JSON, that reach a facilitator."""

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
CONNECT_S = 3.0
"""Longest wait for a connection; without one nothing was sent."""
ANSWER_BYTES_MAX = 64 * 1024
POLL_S = 0.1
POLL_MAX_S = 1.0
"""Longest time between two looks for the transaction of a settlement that it claims."""

_OUTAGES = frozenset({500, 502, 503, 504})
"""Statuses of a `GET /supported` that mean an outage; other errors mean that it is not offered."""

_UNAUTHORIZED = frozenset({401, 403})
_TURNED_AWAY = frozenset({401, 403, 404, 405, 429})
"""Statuses of an answer in another form that mean that a request was not handled."""

_OF_PAYMENT = frozenset({400, 402, 409, 412, 413, 415, 422, 431})
"""Statuses of an answer in another form that a payment itself causes."""

_REASON_CHARS_MAX = 100
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")
_PENDING_REASONS = frozenset(
    {
        *("settlement_pending", "unexpected_settle_error", "unknown_settlement_error"),
        *("duplicate_settlement", "settle_exact_node_failure", "transaction_failed"),
        "settle_exact_evm_transaction_confirmation_timed_out",
    }
)
"""Reasons that do not say that the money stays where it is. Source: x402.md#error-reasons."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The facilitator that was asked to settle a payment and may have; empty: none."""

    url: str = ""
    is_exclusive: bool = True
    """Whether no request before this one can have settled it: only then is a refusal one."""


class _NoAnswer(Exception):
    """A facilitator has not answered a request as the specification says."""

    def __init__(self, detail: str, *, is_unsent: bool = False, status: int = 0) -> None:
        super().__init__(detail)
        self.detail = detail
        self.is_unsent = is_unsent
        """No connection was made."""
        self.is_turned_away = status in _TURNED_AWAY
        """The request was not handled."""
        self.is_of_payment = status in _OF_PAYMENT
        """This payment is the reason: no buyer can make a facilitator look broken."""


class RemoteFacilitator:
    """Implements `payments.ports.Facilitator` over HTTP; the chain decides outcomes.

    It speaks version 2 whatever the client spoke: the signed payload is the same. What it says of
    the sold resource comes from the quote, so that no buyer decides what a catalogue lists. Other
    extensions of a payment reach the facilitator as the buyer sent them.

    Of several facilitators the first one that answers verifies, and settles. A payment that one of
    them may have settled is asked of no other: see `_settle`.
    """

    def __init__(
        self,
        endpoints: Sequence[FacilitatorEndpoint],
        networks: Mapping[str, PaymentNetwork],
        chain: Facilitator,
        clock: Clock,
        settlement_s: float,
    ) -> None:
        self._endpoints = tuple(endpoints)
        self._networks = networks
        self._chain = chain
        self._clock = clock
        self._settlement_s = settlement_s
        self._client: httpx2.AsyncClient | None = None
        # The ledger keeps no description: without it a payment settles, and nothing is listed.
        self._described: BoundedMap[str, JsonObject] = BoundedMap(LISTED_MAX)
        self._asked: BoundedMap[str, _Asked] = BoundedMap(ASKED_MAX)
        self._breakers = {one.url: Breaker(clock) for one in self._endpoints}
        self._listed: dict[str, frozenset[str]] = {}

    @property
    def urls(self) -> Sequence[str]:
        """Return the addresses of the facilitators, in order."""
        return [one.url for one in self._endpoints]

    async def verify(self, payment: Payment, sighting: PaymentSighting) -> int:
        # Ask the chain first: a later use is by somebody who saw it here.
        balance_units = await self._chain.balance(payment, sighting)
        sighting.may_have_moved = True
        quote = payment.quote
        about: JsonObject = {"resource": {"url": quote.url}}
        extensions: JsonObject = {**_forwarded(payment.extensions), **described(quote)}
        if extensions:
            resource = resource_of(quote) if "bazaar" in extensions else about["resource"]
            about = {"resource": resource, "extensions": extensions}
            self._described.put(payment.digest, about)
        asked = _question(quote.network, payment.credential, quote.amount, quote.pay_to, about)
        answer = await self._verify(quote.network.id, asked)
        self._asked.put(payment.digest, _Asked())
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
            answer, is_exclusive = await self._settle(entry, asked)
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
        if not is_unused(found):
            return found
        return Rejected(reason) if is_exclusive else Undecided(reason)

    async def outcome(self, entry: LedgerEntry) -> PaymentOutcome:
        return await self._chain.outcome(entry)

    async def outcomes(
        self, entries: Sequence[LedgerEntry], *, every_node: bool = False
    ) -> Sequence[PaymentOutcome]:
        return await self._chain.outcomes(entries, every_node=every_node)

    async def resend(self, entry: LedgerEntry, note: Note) -> PaymentOutcome:
        return await self.settle(entry, note)

    async def supported(self, url: str) -> frozenset[str] | None:
        """Return our networks that the facilitator at `url` lists; None if it does not say.

        Raises `PaymentsUnavailable` if it does not answer, or does not accept our credentials.
        Source: x402 v2, `GET /supported`.
        """
        place = url + "/supported"
        (endpoint,) = (one for one in self._endpoints if one.url == url)
        try:
            headers = endpoint.authorize("GET", place)
            answer = await get(self._connections(), place, ANSWER_BYTES_MAX, TIMEOUT_S, headers)
        except ValueError:
            return None
        except (httpx2.HTTPError, TimeoutError) as error:
            raise _unavailable(repr(error)) from error
        if answer.status in _OUTAGES:
            raise _unavailable(f"status {answer.status}")
        if answer.status in _UNAUTHORIZED:
            raise _unavailable(f"it does not accept our credentials (status {answer.status})")
        found = networks_listed(answer.body, self._networks)
        if found is not None:
            self._listed[url] = found
        return found

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

    async def _verify(self, network: str, body: JsonObject) -> JsonObject:
        """Return the first usable answer. Verifying moves nothing, so any of them may be asked."""
        problems: list[str] = []
        timeout_s = min(TIMEOUT_S, self._settlement_s) / len(self._endpoints)
        for one in self._usable(network):
            try:
                return await self._post(one, "/verify", body, timeout_s)
            except _NoAnswer as error:
                problems.append(error.detail)
        raise _unavailable("; ".join(problems) or "all have failed just now")

    async def _settle(self, entry: LedgerEntry, body: JsonObject) -> tuple[JsonObject, bool]:
        """Return the answer of one facilitator, and whether no other can have the payment.

        The next one is asked only if the one before cannot have begun: no connection was made, or
        it turned the request away. Once it may have, it alone is asked until the payment ends. What
        an earlier process asked is unknown; then no refusal is believed. A signed authorisation
        moves money once, whoever submits it. Raises `PaymentsUnavailable`.
        """
        before = self._asked.get(entry.digest) or _Asked(is_exclusive=False)
        pinned = [one for one in self._endpoints if one.url == before.url]
        timeout_s, problems = min(TIMEOUT_S, self._settlement_s), list[str]()
        is_exclusive = before.is_exclusive
        for one in pinned or self._usable(entry.network):
            self._asked.put(entry.digest, _Asked(one.url, is_exclusive))
            try:
                return await self._post(one, "/settle", body, timeout_s), is_exclusive
            except _NoAnswer as error:
                problems.append(error.detail)
                if not (error.is_unsent or error.is_turned_away):
                    self._asked.put(entry.digest, _Asked(one.url, is_exclusive=False))
                    break
                is_exclusive = is_exclusive and error.is_unsent
                self._asked.put(entry.digest, _Asked(before.url, is_exclusive))
        raise _unavailable("; ".join(problems) or "all have failed just now")

    def _usable(self, network: str) -> Iterator[FacilitatorEndpoint]:
        """Yield those to be asked, in order; the only one is asked in any case."""
        if len(self._endpoints) == 1:
            yield from self._endpoints
            return
        known = self._listed
        listing = [one for one in self._endpoints if network in known.get(one.url, {network})]
        for one in listing or self._endpoints:
            if self._breakers[one.url].lets_through():
                yield one

    async def _post(
        self, one: FacilitatorEndpoint, path: str, body: JsonObject, timeout_s: float
    ) -> JsonObject:
        """Return the answer. Raises `_NoAnswer`, and counts it for the breaker."""
        try:
            answer = await self._answer(one, path, body, timeout_s)
        except _NoAnswer as error:
            if not error.is_of_payment:
                self._breakers[one.url].failed()
            raise
        self._breakers[one.url].succeeded()
        return answer

    async def _answer(
        self, one: FacilitatorEndpoint, path: str, body: JsonObject, timeout_s: float
    ) -> JsonObject:
        url, status = one.url + path, 0
        try:
            headers = one.authorize("POST", url)
            answer = await post_json(
                self._connections(), url, body, ANSWER_BYTES_MAX, timeout_s, headers
            )
            status = answer.status
            value: object = json.loads(answer.body)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise _NoAnswer(repr(error), is_unsent=True) from error
        except (httpx2.HTTPError, TimeoutError, ValueError, RecursionError) as error:
            raise _NoAnswer(type(error).__name__, status=status) from error
        is_answer = (
            is_object(value)
            and status not in _OUTAGES
            and (
                isinstance(value.get("isValid"), bool) if path == "/verify" else "success" in value
            )
        )
        if not is_object(value) or not is_answer:
            raise _NoAnswer(f"status {status}", status=status)
        return value

    def _connections(self) -> httpx2.AsyncClient:
        if self._client is None:
            timeout = httpx2.Timeout(TIMEOUT_S, connect=CONNECT_S)
            self._client = httpx2.AsyncClient(
                trust_env=False, follow_redirects=False, timeout=timeout
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


def _forwarded(extensions: JsonObject) -> JsonObject:
    """Return the extensions of a payment, without what only the seller says.

    Those that are too long, or that no strict JSON can say, are left out.
    """
    found = {name: value for name, value in extensions.items() if name != "bazaar"}
    try:
        said = json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return {}
    return found if len(said) <= EXTENSIONS_CHARS_MAX else {}


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
