"""Payouts to sellers and refunds to payers: each sent once, or signed by hand and recorded.

A transfer that this service sends has one nonce of the payout wallet for ever: whatever is signed
for it, the chain accepts one transaction at most. It is stored with its transaction before that is
sent. No failure creates a second transfer; a person decides that, with the chain at hand (ADR
0021).

A transfer is sent before any node is asked whether it arrived, and looked at until it is final. If
a reorganisation takes it back, it is `signed` again, and the same transaction is sent. Money goes
out only of payments that are final themselves. Accounts read their transfers in pages, or all of
them in pieces.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from assay.audit.service import TERMINAL, Action, Actor, AuditEntry, new_entry
from assay.common.clock import Clock, iso
from assay.common.errors import Conflict, InvalidRequest, Problem, Unavailable
from assay.common.ids import new_id
from assay.payments.model import LOOKS, PaymentNetwork, PaymentState
from assay.payments.networks import checksummed, payee_problem
from assay.payments.statement import (
    NotOwed,
    ReceivedPayment,
    SignedTransfer,
    Statements,
    Transfer,
    TransferChain,
    TransferNotFound,
    TransferSighting,
    TransferState,
)
from assay.payments.store_transfers import SqlTransferRows, SqlTransferStore

CHECKED_AT_ONCE: Final = 50
LOOK_S: Final = 0.5
LOOKED_AT: Final[Mapping[TransferState, timedelta]] = MappingProxyType(
    {TransferState.FAILED: timedelta(hours=1), TransferState.PAID: timedelta(days=7)}
)
"""How long the chain is asked again about a failed transfer, because a node may have been wrong,
and about one that is paid and not final, because nodes may have dropped older receipts."""


class TransferWatcher:
    """Sends signed transfers, and takes the looks that are due."""

    def __init__(
        self,
        store: SqlTransferStore,
        chain: TransferChain,
        networks: Mapping[str, PaymentNetwork],
        clock: Clock,
    ) -> None:
        self._store = store
        self._chain = chain
        self._networks = networks
        self._clock = clock

    async def resume(self) -> list[Transfer]:
        """Finish what is under way or not final, after a crash too; return those that moved."""
        now = self._clock.now()
        since = {state: now - time for state, time in LOOKED_AT.items()}
        moved: list[Transfer] = []
        for one in await self._store.due(now, since, CHECKED_AT_ONCE):
            with suppress(Unavailable):  # of one network: the others continue
                if (shown := await self.look(one)) is not None:
                    moved.append(shown)
        return moved

    async def see_through(self, known: Transfer, wait_s: float) -> Transfer:
        """Return a transfer under way once it has ended or the time is over."""
        until_s = self._clock.monotonic_s() + wait_s
        while known.state is TransferState.SIGNED and self._clock.monotonic_s() < until_s:
            known = await self.look(known) or known
            await asyncio.sleep(LOOK_S)
        return known

    async def look(self, known: Transfer) -> Transfer | None:
        """Return the row as the chain moves it; send it again until every node shows it."""
        signed = await self._store.transactions(known.id)
        ours = [one for one in signed if one.raw]
        is_signed = known.state is TransferState.SIGNED and bool(ours)
        if is_signed:  # before any node is asked whether it arrived
            await self._chain.send(known, ours[-1])
        found = await self._chain.found(known, [one.transaction for one in ours])
        if known.state is TransferState.PAID:
            return await self._watched(known, ours, found)
        if found.paid:
            is_deep = found.depth >= self._networks[known.network].confirmations
            return await self._paid(known, found.paid) if is_deep else None
        return await self._unpaid(known, ours[-1], found) if is_signed else None

    async def _unpaid(
        self, known: Transfer, last: SignedTransfer, found: TransferSighting
    ) -> Transfer | None:
        """Return one under way that has failed for good, or is signed again for a better price."""
        if found.is_lost:
            return await self._failed(known, "another transaction used its nonce")
        if found.reverted:  # in another block it might succeed, until this one is final
            is_final = self._networks[known.network].is_final(found.depth)
            return await self._failed(known, f"{found.reverted} reverted") if is_final else None
        dearer = await self._chain.dearer(known, last)
        if dearer is not None and await self._store.sign_again(known, dearer) is not None:
            await self._chain.send(known, dearer)
        return None

    async def _watched(
        self, known: Transfer, ours: Sequence[SignedTransfer], found: TransferSighting
    ) -> Transfer | None:
        """Return a paid transfer; once it is final it is looked at no more."""
        if known.transaction not in {one.transaction for one in ours}:
            await self._store.finish(known)  # a person made it, and it was final when recorded
            return None
        if not found.paid:
            await self._chain.send(known, ours[-1])
            is_taken_back = found.is_gone or found.reverted
            return await self._taken_back(known) if is_taken_back else None
        if found.paid != known.transaction:  # of the same nonce: another one after a reorganisation
            return await self._paid(known, found.paid)
        if self._networks[known.network].is_final(found.depth):
            await self._store.finish(known)
        return None

    async def _paid(self, known: Transfer, transaction: str) -> Transfer | None:
        return await self._store.move(known, TransferState.PAID, transaction=transaction)

    async def _taken_back(self, known: Transfer) -> Transfer | None:
        reason = "a reorganisation took it back"
        return await self._store.move(known, TransferState.SIGNED, reason=reason)

    async def _failed(self, known: Transfer, reason: str) -> Transfer | None:
        return await self._store.move(known, TransferState.FAILED, reason=reason)


EXPORTED_AT_ONCE: Final = 500
EXPORTED_MAX: Final = 1_000_000
"""Most transfers of one export; the cursor of its last page continues it."""


class TransferPages:
    """Reads transfers by position: rows that are added meanwhile neither repeat nor hide one."""

    def __init__(self, rows: SqlTransferRows) -> None:
        self._rows = rows

    async def page(
        self, operator_id: str, before: str | None, limit: int, offset: int = 0
    ) -> tuple[Sequence[Transfer], int]:
        """Return a page, and how many rows there are in all. Raises `TransferNotFound`."""
        found = await self._rows.page(operator_id, before, limit, offset)
        return found, await self._rows.count(operator_id)

    async def export(
        self, operator_id: str, before: str | None, limit: int
    ) -> AsyncIterator[Sequence[Transfer]]:
        """Yield up to `limit` rows in pieces, each read when it is taken.

        Raises `TransferNotFound`.
        """
        wanted = min(limit, EXPORTED_AT_ONCE)
        first = await self._rows.page(operator_id, before, wanted, 0)
        return self._pieces(operator_id, first, min(limit, EXPORTED_MAX))

    async def _pieces(
        self, operator_id: str, piece: Sequence[Transfer], left: int
    ) -> AsyncIterator[Sequence[Transfer]]:
        while piece:
            yield piece
            left -= len(piece)
            if left <= 0 or len(piece) < EXPORTED_AT_ONCE:
                return
            wanted = min(left, EXPORTED_AT_ONCE)
            piece = await self._rows.page(operator_id, piece[-1].id, wanted, 0)


_HASH: Final = re.compile(r"0x[0-9a-f]{64}")


class _Parties(NamedTuple):
    """Whom a transfer is for, in which asset, from where to where."""

    operator_id: str
    network: str
    asset: str
    sender: str
    recipient: str


class Transfers:
    """Makes payouts and refunds, and finishes them."""

    def __init__(
        self,
        store: SqlTransferStore,
        chain: TransferChain,
        statements: Statements,
        networks: Mapping[str, PaymentNetwork],
        payees: Sequence[str],
        clock: Clock,
    ) -> None:
        self._store = store
        self._chain = chain
        self._statements = statements
        self._networks = networks
        self._payees = payees
        self._clock = clock
        self._watcher = TransferWatcher(store, chain, networks, clock)

    async def refund(
        self, payment_id: str, amount: int | None = None, actor: Actor = TERMINAL
    ) -> Transfer:
        """Refund a payment to its payer, once, in full or less.

        Raises `TransferNotFound`, `InvalidRequest`, `Conflict`, `NotOwed` and
        `PaymentsUnavailable`; then nothing is stored.
        """
        payment = await self._store.payment_for_admin(payment_id)
        if payment is None:
            raise TransferNotFound("There is no payment of this id.")
        if payment.state not in {PaymentState.SETTLED, PaymentState.DELIVERED}:
            raise Conflict("This payment has not arrived: there is nothing to give back.")
        self._require_final(payment)
        given = payment.amount if amount is None else amount
        if not 1 <= given <= payment.amount:
            raise _refused("amount", "must be above 0 and at most what was paid")
        wallet, sender = self._chain.wallet, payment.pay_to
        if wallet is not None and self._is_in_wallet(payment):
            sender = wallet
        where = (payment.operator_id, payment.network, payment.asset)
        made = self._made(_Parties(*where, sender, payment.payer), given, payment)
        return await self._add(made, actor)

    async def payout(
        self,
        operator_id: str,
        network_id: str,
        to: str,
        amount: int | None = None,
        actor: Actor = TERMINAL,
    ) -> Transfer:
        """Pay an operator what the platform holds for it, in full or less. Raises like `refund`."""
        network = self._networks.get(network_id)
        if network is None:
            raise _refused("network", f"must be one of {', '.join(sorted(self._networks))}")
        problem = payee_problem(to, {one.asset.address for one in self._networks.values()})
        sender = self._chain.wallet or next(iter(self._payees), None)
        if problem is not None or to.lower() in {sender, *self._payees}:
            raise _refused("to", problem or "is a wallet of this service")
        if sender is None:
            raise Conflict("This service has no wallet: set ASSAY_PAYOUT_KEY.")
        lines = await self._statements.of(operator_id)
        asset = network.asset.address
        own = [one for one in lines if (one.network, one.asset) == (network.id, asset)]
        payable = sum(one.payable for one in own)
        given = payable if amount is None else amount
        if not 1 <= given <= payable:
            later = sum(one.owed for one in own) - payable
            wait = f", and {later} of payments that are not final yet: {_again_in(network)}"
            message = f"Nothing is owed, or less than that: {payable} base units"
            raise NotOwed(f"{message}{wait if later else ''}.")
        made = self._made(_Parties(operator_id, network.id, asset, sender, to.lower()), given)
        return await self._add(made, actor)

    async def record(self, transfer_id: str, transaction: str, actor: Actor = TERMINAL) -> Transfer:
        """Record the transaction with which a person made a transfer, once it is final.

        Raises `TransferNotFound` and `Conflict`.
        """
        transaction = transaction.lower()
        if not _HASH.fullmatch(transaction):
            raise _refused("transaction", "must be 0x and 64 hexadecimal digits")
        known = await self._unsent(transfer_id)
        found = await self._chain.found(known, [transaction])
        if not found.paid:
            message = (
                "That transaction is not this transfer (asset, sender, recipient or amount),"
                " or not every node of its network shows it."
            )
            raise Conflict(message)
        network = self._networks[known.network]
        if not network.is_final(found.depth):  # this service could not send it again
            raise Conflict(
                f"That transaction is this transfer, and not final yet: it is {found.depth} of"
                f" {network.final_blocks} blocks deep; {_again_in(network)}."
            )
        entry = self._audit_entry("transfer.recorded", known, actor)
        paid = TransferState.PAID
        moved = _moved(
            await self._store.move(known, paid, transaction=transaction, audit_entry=entry)
        )
        await self._store.finish(moved)
        return moved

    async def cancel(self, transfer_id: str, actor: Actor = TERMINAL) -> Transfer:
        """Cancel a transfer that was not sent, or that failed on the chain.

        Raises `TransferNotFound` and `Conflict`.
        """
        known = await self._unsent(transfer_id)
        entry = self._audit_entry("transfer.cancelled", known, actor)
        return _moved(await self._store.move(known, TransferState.CANCELLED, audit_entry=entry))

    async def resume(self) -> list[Transfer]:
        """Finish what is under way or not final, after a crash too; return those that moved."""
        return await self._watcher.resume()

    async def see_through(self, known: Transfer, wait_s: float) -> Transfer:
        """Return a transfer under way once it has ended or the time is over."""
        return await self._watcher.see_through(known, wait_s)

    def instructions(self, made: Transfer) -> Mapping[str, str]:
        """Return what a person signs to make a transfer."""
        network = self._networks[made.network]
        return {
            "network": f"{made.network} (chain id {network.chain_id})",
            "from": checksummed(made.sender),
            "to": checksummed(made.asset),
            "value": "0",
            "data": "0x" + self._chain.calldata(made).hex(),
            "pays": f"{made.amount} base units of {made.asset} to {checksummed(made.recipient)}",
        }

    async def list_for_admin(self, operator_id: str | None, limit: int) -> Sequence[Transfer]:
        """Return transfers, newest first."""
        return await self._store.list_for_admin(operator_id, limit)

    async def _add(self, made: Transfer, actor: Actor) -> Transfer:
        """Store it, and send it if this service sends it."""
        draft = await self._chain.draft(made) if made.sender == self._chain.wallet else None
        action: Action = "refund.requested" if made.kind == "refund" else "payout.requested"
        entry = self._audit_entry(action, made, actor)
        added = await self._store.add(made, draft, entry)
        return await self._watcher.look(added) or added if draft is not None else added

    async def _unsent(self, transfer_id: str) -> Transfer:
        """Return a transfer that waits for a person. A failed one is looked at once more."""
        known = await self._store.find_for_admin(transfer_id)
        if known is None:
            raise TransferNotFound("There is no transfer of this id, nor for a payment of this id.")
        if known.state is TransferState.FAILED:
            known = await self._watcher.look(known) or known
        if known.state not in {TransferState.OPEN, TransferState.FAILED}:
            raise Conflict(f"This transfer is {known.state}: it does not wait for anybody.")
        return known

    def _made(
        self, parties: _Parties, amount: int, payment: ReceivedPayment | None = None
    ) -> Transfer:
        now = self._clock.now()
        is_ours = parties.sender == self._chain.wallet
        returnable = payment if payment and self._is_in_wallet(payment) else None
        return Transfer(
            id=new_id(),
            kind="payout" if payment is None else "refund",
            operator_id=parties.operator_id,
            payment_id=payment.id if payment else None,
            network=parties.network,
            asset=parties.asset,
            sender=parties.sender,
            recipient=parties.recipient,
            amount=amount,
            of_balance=payment is None or returnable is not None,
            fee_rate=returnable.fee_rate if returnable else None,
            state=TransferState.SIGNED if is_ours else TransferState.OPEN,
            nonce=None,
            transaction="",
            reason="",
            created_at=now,
            updated_at=now,
            check_at=now,
        )

    def _require_final(self, payment: ReceivedPayment) -> None:
        """Require a final payment: after a reorganisation the refund would be our own money."""
        if payment.watch_at is None:
            return
        network, now = self._networks[payment.network], self._clock.now()
        at = max(payment.watch_at, (payment.settled_at or now) + _time_to_final(network))
        when = f"at {iso(at)}" if at > now else "in a minute"
        message = f"This payment is not final on its network yet. Try again {when}"
        raise Conflict(f"{message}; `assay serve` has to run until then.")

    def _is_in_wallet(self, payment: ReceivedPayment) -> bool:
        """Return whether the platform was paid; older payments have no rate."""
        if payment.direct_fee:  # only its fee
            return False
        return payment.fee_rate is not None or payment.pay_to in self._payees

    def _audit_entry(self, action: Action, made: Transfer, actor: Actor) -> AuditEntry:
        return new_entry(
            *(self._clock, actor, action, made.operator_id, made.id),
            amount=str(made.amount),
            network=made.network,
        )


def _moved(moved: Transfer | None) -> Transfer:
    if moved is None:
        raise Conflict("This transfer is being changed by somebody else: look at it again.")
    return moved


def _time_to_final(network: PaymentNetwork) -> timedelta:
    """Return the time from settling a payment to the look that finds it final."""
    return LOOKS[0] if network.is_final(1) else LOOKS[-1]


def _again_in(network: PaymentNetwork) -> str:
    minutes = -(-_time_to_final(network) // timedelta(minutes=1))
    return f"try again in {minutes} min"


def _refused(name: str, message: str) -> InvalidRequest:
    details = [Problem(("body", name), message)]
    return InvalidRequest(f"{name} {message}", details=details)
