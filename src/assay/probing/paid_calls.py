"""Calls that the operator pays for, of services that sell and offer nothing free.

Buys from a service that sells and whose function nothing free shows.

Source: evidence.md#paid-services; ADR 0038.

Claims of paid calls as rows, their limits, and the dependencies of making them.

Derives wallets of single visits from one key, and reads balances of an asset.

A separate wallet for each visit contains all that the visit may spend: whatever is signed with it,
known or not, cannot move more. A row is claimed in one transaction with every limit before anything
is signed; a later failure has only cost its claim. Source: ADR 0038.
"""

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, Protocol
from urllib.parse import urlsplit

from assay.chains.evm.abi import AbiReader, BadAnswer
from assay.chains.evm.signing import address_of_key
from assay.chains.model import Network
from assay.chains.rpc import ContractCall, Returned, Rpc
from assay.common.clock import Clock
from assay.common.errors import ServiceError
from assay.common.ids import new_id
from assay.common.json import JsonObject
from assay.common.numbers import DECIMALS
from assay.control.scope import scope_of
from assay.net.egress.ports import EgressClient, EgressResponse, Limits, OutboundRequest
from assay.net.egress.url import domain_of, registered_domain
from assay.payments.model import PaymentNetwork, PaymentsUnavailable
from assay.payments.networks import payee_problem
from assay.payments.ports import Authorization
from assay.payments.statement import Draft, SignedTransfer, Transfer, TransferChain, TransferState
from assay.payments.x402.customer import Requirement, payment_header, requirements, unsigned
from assay.payments.x402.eip3009 import balance_of, sign_authorization

_PAYMENT_REQUIRED: Final = 402
_OURS: Final = frozenset({"accept", "cache-control", "pragma"})
"""Headers that control a visit's own cache; a customer's client sends none of them."""


@dataclass(frozen=True, slots=True)
class Sale:
    """A service that sells, as found by a visit: its 402 was judged and pays the agent's wallet."""

    subject_key: str
    service: str
    payee: str
    """The agent's registered wallet, in lower case."""
    owner: str
    demand: EgressResponse


class Purse(Protocol):
    """The wallet of one visit, which contains no more than the visit may spend."""

    @property
    def calls_left(self) -> int:
        """Return how many calls can still be paid for, at the price of the first demand."""
        ...

    def pay(self, demand: EgressResponse) -> Mapping[str, str] | None:
        """Return the headers that pay a 402; None if it demands more, or names another payee.

        The amount counts as spent, whether the seller takes it or not.
        """
        ...


class PaidCalls(Protocol):
    """Pays sellers within the operator's limits. Methods never raise."""

    async def open(self, sale: Sale) -> Purse | None:
        """Return a funded wallet; None if a limit is reached, or it is unavailable now."""
        ...

    async def keep(self, purse: Purse, bought: JsonObject, *, is_proven: bool) -> None:
        """Store the transcript of what was bought; with `is_proven` nothing more is bought."""
        ...

    async def known(self, sale: Sale) -> JsonObject | None:
        """Return the last stored transcript for this payee and address, under any id."""
        ...


class PayingHttp:
    """A customer's `EgressClient`: pays what one origin demands, once a call."""

    def __init__(self, http: EgressClient, purse: Purse, url: str) -> None:
        self._http = http
        self._purse = purse
        self._origin = _origin(url)
        self.paid = 0
        """Calls that were sent with a payment."""

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        """Send like `EgressClient.send`; a demand that the purse cannot meet is returned."""
        reply = await self._http.send(request, limits)
        if reply.status != _PAYMENT_REQUIRED or _origin(request.url) != self._origin:
            return reply
        payment = self._purse.pay(reply)
        if payment is None:
            return reply
        self.paid += 1
        said = {n: v for n, v in request.headers.items() if n.lower() not in _OURS}
        return await self._http.send(replace(request, headers={**said, **payment}), limits)


def _origin(url: str) -> str:
    scope = scope_of(url)
    return url if scope is None else scope.origin


PAYEE_MAX: Final = 100_000
"""Most that one payee, agent or site receives within `EVERY`, in base units: 0.10 USD."""

EVERY: Final = timedelta(days=30)
KNOWN_FOR: Final = 2 * EVERY
"""How long a purchase counts: twice `EVERY`, so that our lack of money lowers no grade."""

CALLS_MIN, CALLS_MAX = 2, 6
"""Calls of one visit: one answer may be a template, and two inputs and both again suffice."""

GAS: Final = 10_000
"""The flat cost of filling a wallet in the budget: 0.01 USD. It bounds how many wallets a day are
filled if prices are tiny."""

SHARE: Final = 10
"""An owner, and a domain with everything below it, each get a tenth of a day's budget."""

TRIES_MAX: Final = 3
"""Visits that may spend the rest of one wallet, while nothing is proven."""


@dataclass(frozen=True, slots=True)
class PaidCall:
    """A claim: an amount in base units for a service, in a wallet of its own."""

    id: str
    subject_key: str
    service: str
    payee: str
    owner: str
    site: str
    """Registrable domain by the Public Suffix List, its private section included."""
    domain: str
    """The same without that section: the name's registrant."""
    network: str
    sender: str
    wallet: str
    amount: int
    opened_at: datetime
    nonce: int | None = None
    raw: str = ""
    transaction: str = ""
    is_filled: bool = False


@dataclass(frozen=True, slots=True)
class Spending:
    """What was claimed within a day, gas included, and the results of all claims of a month."""

    day: int
    calls: int
    filled: int
    proven: int
    taken: int
    """Base units that sellers are known to have taken."""


class PaidCallStore(Protocol):
    """Stores claims durably before they are answered. Raises `common.errors.Unavailable`."""

    async def claim(self, wanted: PaidCall, day_budget: int) -> PaidCall | None:
        """Return the claim, an earlier one with money left, or None if a limit is reached."""
        ...

    async def sign(self, call: PaidCall, draft: Draft) -> PaidCall:
        """Assign the sender's next nonce and store what is signed; once for each claim."""
        ...

    async def unfilled(self, sender: str, network: str, limit: int) -> Sequence[PaidCall]:
        """Return claims that are signed and not known to be mined, by nonce."""
        ...

    async def filled(self, call: PaidCall) -> None:
        """Record that its wallet has the money."""
        ...

    async def begin(self, call: PaidCall) -> None:
        """Count a visit that spends it."""
        ...

    async def keep(self, call_id: str, bought: JsonObject, taken: int, *, is_proven: bool) -> None:
        """Store what was bought, unless what is stored proves more."""
        ...

    async def known(self, sale: Sale, since: datetime) -> JsonObject | None:
        """Return what was stored last of a sale."""
        ...

    async def spending(self, now: datetime) -> Spending:
        """Return the spending, for the operator."""
        ...


class Balances(Protocol):
    """Reads balances of wallets."""

    async def balance(self, network: PaymentNetwork, wallet: str) -> int:
        """Return the balance of the network's asset, in base units. Raises `ServiceError`."""
        ...


_ORDER = int("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16)
"""Order of secp256k1. Source: SEC 2, section 2.4.1."""


class DerivedWallets:
    """Derives wallets from the operator's key and a claim's id; their keys are not stored."""

    def __init__(self, private_key: str) -> None:
        """Load the key. Raises `ValueError` unless it is a key of 64 hex digits."""
        address_of_key(private_key)
        self._secret = bytes.fromhex(private_key.removeprefix("0x"))

    def address(self, call_id: str) -> str:
        """Return the wallet's address in lower case."""
        return address_of_key(self._key(call_id))

    def sign(self, call_id: str, transfer: Authorization, network: PaymentNetwork) -> Authorization:
        """Return the transfer, signed by its wallet."""
        return sign_authorization(self._key(call_id), transfer, network)

    def _key(self, call_id: str) -> str:
        digest = hmac.digest(self._secret, f"assay.paid-call.v1/{call_id}".encode(), hashlib.sha512)
        return f"{int.from_bytes(digest) % (_ORDER - 1) + 1:064x}"


class AssetBalances:
    """Reads balances; implements `probing.paid_calls.Balances`."""

    def __init__(self, rpc: Rpc, chains: Mapping[str, Network]) -> None:
        self._rpc = rpc
        self._chains = chains

    async def balance(self, network: PaymentNetwork, wallet: str) -> int:
        call = ContractCall(network.asset.address, balance_of(wallet))
        (found,) = await self._rpc.call_newest(self._chains[network.id], (call,))
        try:
            if isinstance(found, Returned):
                return AbiReader(found.data).number(0)
        except BadAnswer:
            pass
        raise PaymentsUnavailable("The chain does not say what a wallet holds.")


FILL_S: Final = 30.0
"""How long a visit waits until its wallet is filled; a later visit continues with it."""

LOOK_S: Final = 1.0
HEADER_CHARS_MAX: Final = 16_384
UNSENT_MAX: Final = 16


def _no_note(what: str, more: Mapping[str, str]) -> None:
    del what, more


@dataclass(frozen=True, slots=True)
class PaidCallDependencies:
    """The dependencies of paid calls."""

    store: PaidCallStore
    chain: TransferChain
    balances: Balances
    wallets: DerivedWallets
    networks: Mapping[str, PaymentNetwork]
    """Payment networks by id."""
    day_budget: int
    """Base units within 24 hours, gas included; 0: nothing is bought."""
    clock: Clock
    now_s: Callable[[], float]
    """Seconds since 1970 by the wall clock, like sellers and chains."""
    note: Callable[[str, Mapping[str, str]], None] = _no_note
    """Receives what was done, and what failed, for the operator's log."""


@dataclass(slots=True)
class _Purse:
    """A visit's purse; implements `probing.paid_calls.Purse`."""

    call: PaidCall
    network: PaymentNetwork
    price: int
    left: int
    wallets: DerivedWallets
    now_s: Callable[[], float]

    @property
    def calls_left(self) -> int:
        return self.left // self.price

    def pay(self, demand: EgressResponse) -> Mapping[str, str] | None:
        one = _fitting(demand, (self.network,), self.call.payee, self.left)
        if one is None:
            return None
        nonce = "0x" + secrets.token_hex(32)
        transfer = unsigned(one, self.call.wallet, nonce, int(self.now_s()))
        header = payment_header(one, self.wallets.sign(self.call.id, transfer, self.network))
        if max(map(len, header.values())) > HEADER_CHARS_MAX:
            return None
        self.left -= one.amount
        return header


class BoughtCalls:
    """Makes paid calls; implements `probing.paid_calls.PaidCalls`."""

    def __init__(self, needs: PaidCallDependencies) -> None:
        self._needs = needs

    async def open(self, sale: Sale) -> Purse | None:
        """Implement `PaidCalls.open`, within `FILL_S` seconds."""
        try:
            async with asyncio.timeout(FILL_S):
                return await self._open(sale)
        except Exception as error:  # noqa: BLE001 - our own fault must not be taken for the seller's
            self._failed(sale.service, error)
            return None

    async def keep(self, purse: Purse, bought: JsonObject, *, is_proven: bool) -> None:
        """Implement `PaidCalls.keep`; `taken` is what the wallet no longer has."""
        if not isinstance(purse, _Purse):
            return
        call = purse.call
        try:
            balance = await self._needs.balances.balance(purse.network, call.wallet)
            taken = max(0, call.amount - balance)
            kept = {**bought, "taken": taken}
            await self._needs.store.keep(call.id, kept, taken, is_proven=is_proven)
        except ServiceError as error:
            self._failed(call.service, error)
            return
        said = {"service": call.service, "network": call.network, "payee": call.payee}
        self._needs.note("paid calls were made", {**said, "taken": _usd(taken)})

    async def known(self, sale: Sale) -> JsonObject | None:
        """Implement `PaidCalls.known`, for `KNOWN_FOR`."""
        since = self._needs.clock.now() - KNOWN_FOR
        try:
            return await self._needs.store.known(sale, since)
        except ServiceError as error:
            self._failed(sale.service, error)
            return None

    async def _open(self, sale: Sale) -> Purse | None:
        needs, host = self._needs, urlsplit(sale.service).hostname or ""
        one = _fitting(sale.demand, tuple(needs.networks.values()), sale.payee, PAYEE_MAX)
        calls = 0 if one is None else _affordable(one.amount, needs.day_budget)
        if one is None or not host or calls < CALLS_MIN or needs.chain.wallet is None:
            return None
        call_id = new_id()
        call = await needs.store.claim(
            PaidCall(
                *(call_id, sale.subject_key, sale.service, sale.payee, sale.owner),
                *(domain_of(host), registered_domain(host), one.network.id, needs.chain.wallet),
                *(needs.wallets.address(call_id), calls * one.amount, needs.clock.now()),
            ),
            needs.day_budget,
        )
        if call is None or call.network != one.network.id:
            return None
        await self._fill(call, one.network)
        balance = await needs.balances.balance(one.network, call.wallet)
        left = min(balance, call.amount, CALLS_MAX * one.amount)
        if left < one.amount:
            return None
        await needs.store.begin(call)
        return _Purse(call, one.network, one.amount, left, needs.wallets, needs.now_s)

    async def _fill(self, call: PaidCall, network: PaymentNetwork) -> None:
        """Send the claimed amount to the claim's wallet, once, and wait for it to be mined."""
        if call.is_filled:
            return None
        needs = self._needs
        if not call.raw:
            draft = await needs.chain.draft(_transfer(call, network))
            call = await needs.store.sign(call, draft)
        # Claims of processes that ended between signing and sending block the nonces behind them.
        for one in await needs.store.unfilled(call.sender, call.network, UNSENT_MAX):
            await needs.chain.send(_transfer(one, network), _signed(one))
        while True:
            found = await needs.chain.found(_transfer(call, network), [call.transaction])
            if found.paid and found.depth >= network.confirmations:
                return await needs.store.filled(call)
            await asyncio.sleep(LOOK_S)

    def _failed(self, service: str, error: Exception) -> None:
        known = "it was not mined in time" if isinstance(error, TimeoutError) else repr(error)
        detail = error.message if isinstance(error, ServiceError) else known
        self._needs.note("paid calls could not be made", {"service": service, "why": detail})


def _affordable(price: int, day_budget: int) -> int:
    """Return how many calls of one price a visit may make, by the limits within one visit."""
    most = min(PAYEE_MAX, day_budget // SHARE - GAS)
    return min(CALLS_MAX, max(0, most) // price)


def _fitting(
    demand: EgressResponse, networks: Sequence[PaymentNetwork], payee: str, most: int
) -> Requirement | None:
    """Return a demand's cheapest requirement for this payee; None if any of it pays another."""
    found = requirements(demand, networks)
    if not found or any(one.pay_to != payee for one in found):
        return None
    if payee_problem(payee, {one.network.asset.address for one in found}) is not None:
        return None
    one = min(found, key=lambda one: (one.amount, -one.version))
    return one if one.amount <= most else None


def _transfer(call: PaidCall, network: PaymentNetwork) -> Transfer:
    """Return the claim's filling as a transfer for the chain's client."""
    return Transfer(
        id=call.id,
        kind="payout",
        operator_id="",
        payment_id=None,
        network=call.network,
        asset=network.asset.address,
        sender=call.sender,
        recipient=call.wallet,
        amount=call.amount,
        of_balance=False,
        fee_rate=None,
        state=TransferState.SIGNED,
        nonce=call.nonce,
        transaction=call.transaction,
        reason="",
        created_at=call.opened_at,
        updated_at=call.opened_at,
        check_at=call.opened_at,
    )


def _signed(call: PaidCall) -> SignedTransfer:
    return SignedTransfer(call.transaction, call.raw, 0, 0)


def _usd(units: int) -> str:
    return f"{Decimal(units).scaleb(-DECIMALS):f}"
