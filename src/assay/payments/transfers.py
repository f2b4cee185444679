"""Payouts to sellers and refunds to payers: each sent once, or signed by hand and recorded.

A transfer that this service sends has one nonce of the payout wallet, for ever: whatever is signed
for it, the chain takes one at most. It is written down with its transaction before that is sent. No
failure makes a second transfer; a person decides that, with the chain at hand (ADR 0021).
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final, NamedTuple

from assay.accounts.audit import TERMINAL, Action, Actor, Note, note
from assay.kit.clock import Clock
from assay.kit.errors import Conflict, InvalidRequest, Problem, Unavailable
from assay.kit.ids import new_id
from assay.payments.model import PaymentNetwork, State
from assay.payments.payees import checksummed, payee_problem
from assay.payments.statement import Statements
from assay.payments.transfer_model import (
    NotOwed,
    Received,
    Transfer,
    TransferChain,
    TransferNotFound,
    TransferState,
    TransferStore,
)

CHECKED_AT_ONCE: Final = 50
LOOK_S: Final = 0.5
_HASH: Final = re.compile(r"0x[0-9a-f]{64}")
FAILED_LOOKED_AT: Final = timedelta(hours=1)
"""How long the chain is asked again about a transfer that failed: a node may have been wrong."""


class _Parties(NamedTuple):
    """For whom, in what, from where to where."""

    operator_id: str
    network: str
    asset: str
    sender: str
    recipient: str


class Transfers:
    """Makes payouts and refunds, and sees them through."""

    def __init__(
        self,
        store: TransferStore,
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

    async def refund(
        self, payment_id: str, amount: int | None = None, actor: Actor = TERMINAL
    ) -> Transfer:
        """Give a payment back to its payer, once, all of it or less.

        Raises `TransferNotFound`, `InvalidRequest`, `Conflict`, `NotOwed` and
        `PaymentsUnavailable`; nothing is written down then.
        """
        payment = await self._store.payment_for_admin(payment_id)
        if payment is None:
            raise TransferNotFound("There is no payment of this id.")
        if payment.state not in {State.SETTLED, State.DELIVERED}:
            raise Conflict("This payment has not arrived: there is nothing to give back.")
        given = payment.amount if amount is None else amount
        if not 1 <= given <= payment.amount:
            raise _refused("amount", "must be above 0 and at most what was paid")
        wallet, sender = self._chain.wallet, payment.pay_to
        if wallet is not None and self._is_held(payment):
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
        """Pay an operator what the platform holds for it, all of it or less. Raises as `refund`."""
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
        owed = sum(one.owed for one in lines if (one.network, one.asset) == (network.id, asset))
        given = owed if amount is None else amount
        if not 1 <= given <= owed:
            raise NotOwed(f"Nothing is owed, or less than that: {owed} base units.")
        made = self._made(_Parties(operator_id, network.id, asset, sender, to.lower()), given)
        return await self._add(made, actor)

    async def record(self, transfer_id: str, transaction: str, actor: Actor = TERMINAL) -> Transfer:
        """Note the transaction that a person made a transfer with, once the chain shows it.

        Raises `TransferNotFound`, `Conflict` and `PaymentsUnavailable`.
        """
        transaction = transaction.lower()
        if not _HASH.fullmatch(transaction):
            raise _refused("transaction", "must be 0x and 64 hexadecimal digits")
        known = await self._unsent(transfer_id)
        if not await self._chain.shows(known, transaction):
            message = "That transaction is not this transfer: asset, sender, recipient or amount."
            raise Conflict(message)
        told = self._told("transfer.recorded", known, actor)
        paid = TransferState.PAID
        moved = await self._store.move(known, paid, transaction=transaction, told=told)
        return _moved(moved)

    async def cancel(self, transfer_id: str, actor: Actor = TERMINAL) -> Transfer:
        """Give up a transfer that nobody has sent, or that failed on the chain.

        Raises `TransferNotFound` and `Conflict`.
        """
        known = await self._unsent(transfer_id)
        told = self._told("transfer.cancelled", known, actor)
        return _moved(await self._store.move(known, TransferState.CANCELLED, told=told))

    async def resume(self) -> list[Transfer]:
        """See through what is on its way, after a crash too; those that came to an end."""
        now = self._clock.now()
        moved: list[Transfer] = []
        for one in await self._store.due(now, now - FAILED_LOOKED_AT, CHECKED_AT_ONCE):
            with suppress(Unavailable):  # of one network: the others go on
                if (ended := await self._looked_at(one)) is not None:
                    moved.append(ended)
        return moved

    async def see_through(self, known: Transfer, wait_s: float) -> Transfer:
        """A transfer on its way, once it came to an end or the time is over."""
        until_s = self._clock.monotonic_s() + wait_s
        while known.state is TransferState.SIGNED and self._clock.monotonic_s() < until_s:
            known = await self._looked_at(known) or known
            await asyncio.sleep(LOOK_S)
        return known

    def instructions(self, made: Transfer) -> Mapping[str, str]:
        """What a person signs to make a transfer."""
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
        """Transfers, newest first."""
        return await self._store.list_for_admin(operator_id, limit)

    async def _add(self, made: Transfer, actor: Actor) -> Transfer:
        """Write it down, and send it if it is ours to send."""
        draft = await self._chain.draft(made) if made.sender == self._chain.wallet else None
        action: Action = "refund.requested" if made.kind == "refund" else "payout.requested"
        told = self._told(action, made, actor)
        added = await self._store.add(made, draft, told)
        return await self._looked_at(added) or added if draft is not None else added

    async def _looked_at(self, known: Transfer) -> Transfer | None:
        """The row as it moved by what the chain shows; sent again while it shows nothing."""
        signed = await self._store.transactions(known.id)
        ours = [one for one in signed if one.raw]
        found = await self._chain.found(known, [one.transaction for one in ours])
        if found.paid:
            paid = TransferState.PAID
            return await self._store.move(known, paid, transaction=found.paid)
        if known.state is not TransferState.SIGNED or not ours:
            return None
        if found.failed:
            return await self._store.move(known, TransferState.FAILED, reason=found.failed)
        last = ours[-1]
        dearer = await self._chain.dearer(known, last)
        if dearer is not None and await self._store.sign_again(known, dearer) is not None:
            last = dearer
        await self._chain.send(known, last)
        return None

    async def _unsent(self, transfer_id: str) -> Transfer:
        """A transfer that waits for a person. One that failed is looked at once more."""
        known = await self._store.find_for_admin(transfer_id)
        if known is None:
            raise TransferNotFound("There is no transfer of this id, nor for a payment of this id.")
        if known.state is TransferState.FAILED:
            known = await self._looked_at(known) or known
        if known.state not in {TransferState.OPEN, TransferState.FAILED}:
            raise Conflict(f"This transfer is {known.state}: it does not wait for anybody.")
        return known

    def _made(self, parties: _Parties, amount: int, payment: Received | None = None) -> Transfer:
        now = self._clock.now()
        is_ours = parties.sender == self._chain.wallet
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
            of_balance=payment is None or self._is_held(payment),
            fee_rate=payment.fee_rate if payment else None,
            state=TransferState.SIGNED if is_ours else TransferState.OPEN,
            nonce=None,
            transaction="",
            reason="",
            created_at=now,
            updated_at=now,
            check_at=now,
        )

    def _is_held(self, payment: Received) -> bool:
        """Whether the platform was paid: payments from before that was noted have no rate."""
        return payment.fee_rate is not None or payment.pay_to in self._payees

    def _told(self, action: Action, made: Transfer, actor: Actor) -> Note:
        return note(
            *(self._clock, actor, action, made.operator_id, made.id),
            amount=str(made.amount),
            network=made.network,
        )


def _moved(moved: Transfer | None) -> Transfer:
    if moved is None:
        raise Conflict("This transfer is being changed by somebody else: look at it again.")
    return moved


def _refused(name: str, message: str) -> InvalidRequest:
    details = [Problem(("body", name), message)]
    return InvalidRequest(f"{name} {message}", details=details)
