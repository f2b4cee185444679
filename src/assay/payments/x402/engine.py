"""Our own x402 facilitator: verifies by one read of the chain, settles with the operator's key.

Source: EIP-3009; x402 `schemes/exact/scheme_exact_evm.md`; x402.md#own-engine;
payment-safety.md#attacks-and-faults.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assay.chains.evm.abi import AbiReader, BadAnswer
from assay.chains.evm.signing import TransactionSigner
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Reverted, Rpc
from assay.common.clock import Clock
from assay.common.dataclass_copy import changed
from assay.common.errors import Unavailable
from assay.common.json import JsonValue
from assay.payments.model import (
    LedgerEntry,
    Payment,
    PaymentRefused,
    PaymentSighting,
    PaymentsUnavailable,
)
from assay.payments.outcomes import (
    PaymentOutcome,
    Settled,
    SettlementAttempt,
    Undecided,
    after,
    hashes,
    is_unused,
    may_renew,
)
from assay.payments.ports import Note
from assay.payments.x402.codec import authorization_of
from assay.payments.x402.eip3009 import balance_of, pays, state_of, transfer_data
from assay.payments.x402.eip3009_outcomes import Outcomes, burnt
from assay.payments.x402.transaction_sender import GasPrices, TransactionSender

POLL_S = 0.02
POLL_MAX_S = 0.5

PRICE_EVERY_S = 3.0
"""Seconds between comparing a pending settlement with the chain's price: between one block of Base
and two. The usual one is mined before the first time."""

_NO_KEY = "no key to settle with"


@dataclass(slots=True)
class _RecordedEntry:
    """An entry with its attempts as they are stored."""

    entry: LedgerEntry
    note: Note

    async def write(self, attempt: SettlementAttempt) -> None:
        await self.note(attempt)
        self.entry = changed(self.entry, attempt=after(self.entry.attempt, attempt))


class X402Engine:
    """Implements `payments.ports.Facilitator` with our own key."""

    def __init__(
        self,
        rpc: Rpc,
        networks: Mapping[str, Network],
        signer: TransactionSigner | None,
        prices: GasPrices | None,
        clock: Clock,
        settlement_s: float,
    ) -> None:
        self._rpc = rpc
        self._networks = networks
        self._signer = signer
        self._prices = prices
        self._clock = clock
        self._settlement_s = settlement_s
        self._senders: dict[str, TransactionSender] = {}
        self._outcomes = Outcomes(rpc, networks)

    @property
    def has_key(self) -> bool:
        """Return whether there is a key to settle with."""
        return self._signer is not None

    def take_up(self, signer: TransactionSigner) -> None:
        """Settle with this key from now on, if there was none."""
        if self._signer is None:
            self._signer = signer

    async def verify(self, payment: Payment, sighting: PaymentSighting) -> int:
        if self._signer is None:
            raise PaymentsUnavailable("x402 payments cannot be settled here now.", detail="no key")
        network = payment.quote.network
        signed = authorization_of(payment.credential)
        asset = network.asset.address
        calls = (
            ContractCall(asset, balance_of(signed.payer)),
            ContractCall(asset, state_of(signed.payer, signed.nonce)),
            ContractCall(asset, transfer_data(signed)),
        )
        balance, used, transfer = await self._call(network.id, calls)
        balance_units = _checked_balance(balance, used, signed.value, sighting)
        if isinstance(transfer, Reverted):
            raise PaymentRefused(
                "invalid_transaction_state", "The asset's contract refuses this transfer."
            )
        return balance_units

    async def balance(self, payment: Payment, sighting: PaymentSighting) -> int:
        network, signed = payment.quote.network, authorization_of(payment.credential)
        asset = network.asset.address
        calls = (
            ContractCall(asset, balance_of(signed.payer)),
            ContractCall(asset, state_of(signed.payer, signed.nonce)),
        )
        balance, used = await self._call(network.id, calls)
        return _checked_balance(balance, used, signed.value, sighting)

    async def settle(self, entry: LedgerEntry, note: Note) -> PaymentOutcome:
        deadline_s = self._clock.monotonic_s() + self._settlement_s
        recorded = _RecordedEntry(entry, note)
        try:
            sender = self._sender(entry.network)
            if sender is None:
                return Undecided(_NO_KEY)
            sent = await sender.send(entry, recorded.write)
            if isinstance(sent, Undecided):
                return sent
            return await self._wait(recorded, sender, deadline_s)
        except Unavailable as error:
            return Undecided(error.detail or error.message)

    async def outcome(self, entry: LedgerEntry) -> PaymentOutcome:
        """Return the outcome by the asset contract's answer about the nonce, for any sender."""
        try:
            (found,) = await self._outcomes.find([entry])
        except Unavailable as error:
            return Undecided(error.detail or error.message)
        return found

    async def outcomes(
        self, entries: Sequence[LedgerEntry], *, every_node: bool = False
    ) -> Sequence[PaymentOutcome]:
        return await self._outcomes.find(entries, every_node=every_node)

    async def resend(self, entry: LedgerEntry, note: Note) -> PaymentOutcome:
        sender = self._sender(entry.network)
        if sender is None:
            return Undecided(_NO_KEY)
        try:
            sent = await sender.push(entry, note)
            if sent is None:
                found = await self._outcomes.reverted(entry)
                if not is_unused(found) or not may_renew(entry.attempt, self._age_s(entry)):
                    return found  # our transaction has used the nonce, or may have
                sent = await sender.send(entry, note)
        except Unavailable as error:
            return Undecided(error.detail or error.message)
        return sent if isinstance(sent, Undecided) else Undecided("sent again")

    def _age_s(self, entry: LedgerEntry) -> float:
        return (self._clock.now() - entry.created_at).total_seconds()

    def _sender(self, network: str) -> TransactionSender | None:
        if self._signer is None or self._prices is None:
            return None
        known = self._senders.get(network)
        if known is None:
            known = TransactionSender(
                self._rpc, self._networks[network], self._signer, self._prices
            )
            self._senders[network] = known
        return known

    async def _wait(
        self, recorded: _RecordedEntry, sender: TransactionSender, deadline_s: float
    ) -> PaymentOutcome:
        """Return the outcome once any attempt is mined; replace attempts that cannot be."""
        pause_s, priced_s = POLL_S, self._clock.monotonic_s()
        while (now_s := self._clock.monotonic_s()) < deadline_s:
            found = await self._mined(recorded.entry)
            if found is not None:
                return found
            if now_s - priced_s >= PRICE_EVERY_S:
                priced_s = now_s
                await self._resend(recorded, sender)
            # Wait to a mark of one clock: payments that wait together share an exchange.
            marks = math.ceil((self._clock.monotonic_s() + pause_s - POLL_S / 2) / POLL_S)
            await asyncio.sleep(marks * POLL_S - self._clock.monotonic_s())
            pause_s = min(pause_s * 1.5, POLL_MAX_S)
        return Undecided("no receipt in time")

    async def _resend(self, recorded: _RecordedEntry, sender: TransactionSender) -> None:
        try:
            await sender.resend(recorded.entry, recorded.write)
        except ChainUnavailable:
            return  # asked again at the next mark

    async def _mined(self, entry: LedgerEntry) -> PaymentOutcome | None:
        """Return what the receipts of its attempts show; None before one of them counts."""
        receipts: dict[str, JsonValue] = {}
        for transaction in hashes(entry.attempt):
            try:
                receipts[transaction] = await self._rpc.request(
                    self._networks[entry.network], "eth_getTransactionReceipt", (transaction,)
                )
            except ChainUnavailable:
                return None
        spent = burnt(entry, receipts)
        for transaction, receipt in receipts.items():
            if pays(receipt, entry):
                return Settled(transaction, spent)
        return await self._failed(entry, spent) if any(receipts.values()) else None

    async def _failed(self, entry: LedgerEntry, spent: int | None) -> PaymentOutcome | None:
        """Return the outcome of a reverted attempt: somebody else's may have paid before."""
        found = await self.outcome(entry)
        if not isinstance(found, Undecided):
            return replace(found, gas_wei=spent)
        if not found.is_unused:
            return found
        try:
            reverted = await self._outcomes.reverted(entry)
        except ChainUnavailable:
            return None
        return None if isinstance(reverted, Undecided) else reverted

    async def _call(
        self, network: str, calls: tuple[ContractCall, ...]
    ) -> tuple[Returned | Reverted, ...]:
        try:
            return tuple(await self._rpc.call_newest(self._networks[network], calls))
        except ChainUnavailable as error:
            raise _unavailable(error) from error


def _checked_balance(
    balance: Returned | Reverted, used: Returned | Reverted, wanted: int, sighting: PaymentSighting
) -> int:
    """Return the payer's balance if the authorisation is unused and covered.

    Raises `PaymentRefused`.
    """
    is_used = _number(used) != 0
    sighting.read(is_used=is_used)
    if is_used:
        raise PaymentRefused(
            "invalid_exact_evm_nonce_already_used", "This authorisation was used already."
        )
    balance_units = _number(balance)
    if balance_units < wanted:
        raise PaymentRefused("insufficient_funds", "The payer does not have the amount.")
    return balance_units


def _number(outcome: Returned | Reverted) -> int:
    """Return the one word of the answer."""
    if isinstance(outcome, Reverted):
        raise PaymentsUnavailable(
            "Payments cannot be checked now.", detail=f"reverted: {outcome.message}"
        )
    try:
        return AbiReader(outcome.data).number(0)
    except BadAnswer as error:
        raise PaymentsUnavailable("Payments cannot be checked now.", detail=str(error)) from error


def _unavailable(error: ChainUnavailable) -> PaymentsUnavailable:
    detail = error.detail or error.message
    return PaymentsUnavailable("Payments cannot be checked now.", detail=detail, retry_after_s=5)
