"""Bugs that somebody could make, planted one at a time: what the simulation has to find.

Each replaces one function by one that forgets something, and names what it is found by: an error of
its own is no find. None is reachable outside the tests.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from assay.common.errors import Unavailable
from assay.common.json import is_array, is_object
from assay.payments import service as payment_service
from assay.payments.finality import Witness
from assay.payments.gas import GasBudget, closed
from assay.payments.model import LedgerEntry, PaymentRefused, PaymentState, first_look
from assay.payments.outcomes import NO_GAS, Gas, Rejected, Settled, Undecided
from assay.payments.ports import Note
from assay.payments.service import PaymentService
from assay.payments.settlement import PaymentPending
from assay.payments.x402 import eip3009_outcomes
from assay.payments.x402 import engine as x402_engine
from assay.payments.x402.engine import X402Engine
from assay.payments.x402.facilitator import RemoteFacilitator
from assay.payments.x402.transaction_sender import TransactionSender
from tests.simulation.chain import USED, topic
from tests.simulation.gas import CLOSED
from tests.support.fakes import ledger
from tests.support.fakes.gas_accounts import MemoryGas
from tests.support.fakes.ledger import MemoryLedgerStore, key_of


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: what is replaced by what."""

    target: object
    name: str
    bug: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Bug:
    """What is replaced for it, and parts of the violations that it must cause."""

    mutants: tuple[Mutant, ...]
    shown_by: tuple[str, ...]

    def is_in(self, violation: object) -> bool:
        """Whether a schedule's violation is of this bug."""
        return violation is not None and any(part in str(violation) for part in self.shown_by)


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The bug is there until the end of the block."""
    with ExitStack() as stack:
        for mutant in MUTANTS[name].mutants:
            stack.enter_context(patch.object(mutant.target, mutant.name, mutant.bug))
        yield


_settle = X402Engine.settle
_spent = GasBudget.spent
_answer_refusal = RemoteFacilitator.settle
_till_settle = PaymentService.settle
_move = MemoryLedgerStore.move
_claim = MemoryLedgerStore.claim
_ask_nodes = eip3009_outcomes.ask_nodes


def _gas_given_back(entry: LedgerEntry, moved: LedgerEntry) -> Gas:
    """What has ended costs nothing."""
    return NO_GAS if moved.state in CLOSED else entry.gas


def _gas_kept(entry: LedgerEntry, moved: LedgerEntry) -> Gas:
    """What was not sent costs what was sent."""
    return closed(entry, moved) if moved.attempt.raw else entry.gas


def _charged_twice(self: GasBudget, entry: LedgerEntry, wei: int | None) -> int | None:
    found = _spent(self, entry, wei)
    return None if found is None else 2 * found


def _reserved_by_both(self: MemoryGas, known: LedgerEntry) -> LedgerEntry:
    """A claim that is taken over reserves beside the one that nobody works on."""
    del self
    return known


async def _sent_unnoted(self: TransactionSender, some: Sequence[Any], first: int) -> Sequence[Any]:
    """It signs, and writes nothing down before it sends."""
    for place, one in enumerate(some):
        one.nonce = first + place
        self._sign(one)
    return some


async def _settled_when_sent(self: X402Engine, entry: LedgerEntry, note: Note) -> Any:
    """What was sent has arrived."""
    sender = self._sender(entry.network)
    assert sender is not None
    try:
        sent = await sender.send(entry, note)
    except Unavailable as error:
        return Undecided(str(error))
    return sent if isinstance(sent, Undecided) else Settled(sent)


async def _unknown_is_failed(
    self: X402Engine, entries: Sequence[LedgerEntry], *, every_node: bool = False
) -> Any:
    """Reconciliation that finds nothing calls it a refusal."""
    found = await self._outcomes.find(entries, every_node=every_node)
    return [Rejected(one.detail) if isinstance(one, Undecided) else one for one in found]


async def _revert_is_final(self: X402Engine, entry: LedgerEntry, spent: int | None) -> Any:
    """A settlement that reverts is refused, whoever made it revert."""
    del self, entry, spent
    return Rejected("transaction_failed")


def _used_is_paid(receipt: Any, entry: LedgerEntry) -> bool:
    """The nonce was used: then it was used for us."""
    if not is_object(receipt) or receipt.get("status") != "0x1":
        return False
    logs = receipt.get("logs")
    wanted = [USED, topic(entry.payer), entry.nonce]
    return any(
        is_object(log) and log["topics"] == wanted for log in (logs if is_array(logs) else ())
    )


async def _pending_is_refused(self: PaymentService, held: Any, stored: Any) -> LedgerEntry:
    """An outcome that is not known is told as a 402."""
    try:
        return await _till_settle(self, held, stored)
    except PaymentPending:
        refusal = PaymentRefused("settlement_failed", "It could not be settled.")
        raise await self.refused(held.quote, refusal) from None


async def _released_after_sending(self: PaymentService, held: Any, stored: Any) -> LedgerEntry:
    """What did not settle is released, though it may have been sent."""
    try:
        return await _till_settle(self, held, stored)
    except PaymentPending:
        now = self._clock.now()
        row = await self._ledger.find(held.entry.network, held.entry.digest)
        assert row is not None
        await self._ledger.move(row, PaymentState.RELEASED, lease_until=now)
        raise


async def _any_reading_moves(
    self: MemoryLedgerStore, entry: LedgerEntry, *args: Any, **kw: Any
) -> Any:
    """A change is made whatever has become of the row meanwhile."""
    known = next((row for row in self.rows.values() if row.id == entry.id), entry)
    return await _move(self, replace(entry, moves=known.moves), *args, **kw)


async def _everybody_claims(
    self: MemoryLedgerStore, fresh: LedgerEntry, since: Any, gas: Any = None
) -> Any:
    """A claim is everybody's, whoever works on it."""
    claim = await _claim(self, fresh, since, gas)
    return replace(claim, is_ours=True)


async def _no_lease(
    self: MemoryLedgerStore, fresh: LedgerEntry, since: Any, gas: Any = None
) -> Any:
    """Whoever is claimed is abandoned, though somebody is at it."""
    known = self.rows.get(key_of(fresh))
    if known is not None and known.state is PaymentState.CLAIMED:
        self.rows[key_of(fresh)] = replace(known, lease_until=fresh.created_at)
    return await _claim(self, fresh, since, gas)


async def _kept_nowhere(self: PaymentService, held: Any, stored: Any) -> LedgerEntry:
    """The answer is in memory alone until it is handed out."""
    del stored
    return await _till_settle(self, held, None)


async def _never_due(*_: object) -> Any:
    """What has settled is looked at no more."""
    return ()


async def _first_word(_self: object, _entry: LedgerEntry, found: Any) -> Any:
    """A refusal is believed, whoever else was there to be asked."""
    return found


async def _unused_anywhere(*_: object) -> None:
    """What was unused in any block was unused in that of our transaction."""


def _anybody_is_buyer(*_: object) -> bool:
    """Who shows the payment is who paid."""
    return True


def _same_enough(*_: object) -> bool:
    """A payment buys whatever it is shown for."""
    return True


async def _refusal_is_believed(self: RemoteFacilitator, entry: LedgerEntry, note: Note) -> Any:
    """A facilitator that says no is right, whatever the chain says."""
    found = await _answer_refusal(self, entry, note)
    if isinstance(found, Undecided):
        return Rejected(found.detail)
    return found


async def _asked_of_one(*asked: Any, every_node: bool) -> Any:
    """The first node that answers says that a payment is not used: nobody else is asked."""
    del every_node
    return await _ask_nodes(*asked, every_node=False)


async def _free_to_buy(*_: object, is_refused: bool = False) -> None:
    """What was released may buy, as if nobody could have submitted it."""
    del is_refused


async def _refused_unasked(
    self: PaymentService, payment: Any, claim: Any, gas: Any, sighting: Any
) -> LedgerEntry:
    """A refusal while it is verified is the last word."""
    await self._verify(payment, claim, gas, sighting)
    return claim.entry


def _not_released(entry: LedgerEntry) -> Any:
    """What served nobody is looked at no more."""
    is_over = entry.state in {PaymentState.RELEASED, PaymentState.CLAIMED}
    return None if is_over else first_look(entry)


async def _timeout_is_refusal(self: X402Engine, entry: LedgerEntry, note: Note) -> Any:
    """No receipt in time: then it was not taken."""
    found = await _settle(self, entry, note)
    return Rejected(found.detail) if isinstance(found, Undecided) else found


MUTANTS: dict[str, Bug] = {
    "sent before it is written down": Bug(
        (Mutant(TransactionSender, "_recorded", _sent_unnoted),),
        ("sent before it was written down",),
    ),
    "settled as soon as it is sent": Bug(
        (Mutant(X402Engine, "settle", _settled_when_sent),), ("settled without the money",)
    ),
    "reconciliation takes unknown for failed": Bug(
        (Mutant(X402Engine, "outcomes", _unknown_is_failed),),
        ("a payment that is failed (not used yet)",),
    ),
    "a revert is final, and nobody else is asked": Bug(
        (
            Mutant(X402Engine, "_failed", _revert_is_final),
            Mutant(Witness, "_agreed", _first_word),
        ),
        ("failed (transaction_failed) though it was paid",),
    ),
    "used counts as paid": Bug(
        (
            Mutant(x402_engine, "pays", _used_is_paid),
            Mutant(eip3009_outcomes, "pays", _used_is_paid),
        ),
        ("settled without the money",),
    ),
    "what has settled is looked at no more": Bug(
        (Mutant(MemoryLedgerStore, "claim_due", _never_due),),
        ("delivered, and the money is not there",),
    ),
    "an older block's word on a revert": Bug(
        (Mutant(eip3009_outcomes.Outcomes, "_require_unused", _unused_anywhere),),
        ("failed (transaction_failed) though it was paid",),
    ),
    "unknown is told as 402": Bug(
        (Mutant(PaymentService, "settle", _pending_is_refused),),
        ("charged, and told settlement_failed",),
    ),
    "released after it was sent": Bug(
        (Mutant(PaymentService, "settle", _released_after_sending),),
        (
            "payment that is released (",
            "released () though it was paid",
            "became released",
        ),
    ),
    "no receipt in time is a refusal": Bug(
        (Mutant(X402Engine, "settle", _timeout_is_refusal),),
        (
            "failed (no receipt in time)",
            "failed (not sent: ",
        ),
    ),
    "changes are made from old readings": Bug(
        (Mutant(MemoryLedgerStore, "move", _any_reading_moves),), ("became settling",)
    ),
    "a claim keeps nobody out": Bug(
        (Mutant(MemoryLedgerStore, "claim", _everybody_claims),), ("two work on one payment",)
    ),
    "a lease keeps nobody out": Bug(
        (Mutant(MemoryLedgerStore, "claim", _no_lease),), ("two work on one payment",)
    ),
    "the answer is not kept": Bug(
        (Mutant(PaymentService, "settle", _kept_nowhere),),
        ("charged, and told invalid_exact_evm_nonce_already_used",),
    ),
    "whoever shows it is its buyer": Bug(
        (Mutant(payment_service, "is_buyer", _anybody_is_buyer),),
        ("somebody else was handed what a payment bought",),
    ),
    "it buys another request": Bug(
        (Mutant(payment_service, "is_same_request", _same_enough),),
        ("the answer is that of another request",),
    ),
    "a released payment is refused, and the chain is not asked": Bug(
        (
            Mutant(payment_service, "find_out", _free_to_buy),
            Mutant(PaymentService, "_verified", _refused_unasked),
        ),
        ("paid long ago, and told",),
    ),
    "a buyer is refused on the word of one node": Bug(
        (Mutant(eip3009_outcomes, "ask_nodes", _asked_of_one),), ("paid long ago, and told",)
    ),
    "what was released is watched no more": Bug(
        (Mutant(ledger, "first_look", _not_released),), ("charged, and released (",)
    ),
    "gas that was burnt is given back": Bug(
        (Mutant(ledger, "closed", _gas_given_back),), ("gas was burnt for a payment",)
    ),
    "gas that was not needed is kept": Bug(
        (Mutant(ledger, "closed", _gas_kept),), ("is reserved for ever",)
    ),
    "gas costs what was reserved, twice": Bug(
        (Mutant(GasBudget, "spent", _charged_twice),), ("charged for gas of",)
    ),
    "what a killed process had reserved is forgotten": Bug(
        (Mutant(MemoryGas, "give_back", _reserved_by_both),),
        ("a gas account of", "free settlements are counted that nobody holds"),
    ),
    "a facilitator's refusal is believed": Bug(
        (Mutant(RemoteFacilitator, "settle", _refusal_is_believed),), ("failed (facilitator: ",)
    ),
}
