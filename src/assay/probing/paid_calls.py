"""Calls that the operator pays for, of services that sell and offer nothing free.

A separate wallet for each visit contains all that the visit may spend: whatever is signed with it,
known or not, cannot move more. A row is claimed in one transaction with every limit before anything
is signed; a later failure has only cost its claim. Source: ADR 0038.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final
from urllib.parse import urlsplit

from assay.common.clock import Clock
from assay.common.errors import ServiceError
from assay.common.ids import new_id
from assay.common.json import JsonObject
from assay.common.money import DECIMALS
from assay.net.egress.domain import domain_of, registered_domain
from assay.net.egress.ports import EgressResponse
from assay.payments.model import PaymentNetwork
from assay.payments.payees import payee_problem
from assay.payments.transfer_model import SignedTransfer, Transfer, TransferChain, TransferState
from assay.payments.x402.customer import Requirement, payment_header, requirements, unsigned
from assay.probing.paid_call_model import (
    CALLS_MAX,
    CALLS_MIN,
    GAS,
    KNOWN_FOR,
    PAYEE_MAX,
    SHARE,
    Balances,
    PaidCall,
    PaidCallStore,
    VisitWallets,
)
from assay.probing.purchases import Purse, Sale

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
    wallets: VisitWallets
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
    """A visit's purse; implements `probing.purchases.Purse`."""

    call: PaidCall
    network: PaymentNetwork
    price: int
    left: int
    wallets: VisitWallets
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
    """Makes paid calls; implements `probing.purchases.PaidCalls`."""

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
