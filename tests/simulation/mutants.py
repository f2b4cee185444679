"""Bugs that somebody could make, planted one at a time: what the simulation has to find.

Each replaces one function by one that forgets something. None is reachable outside the tests.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from assay.infra.payments import eip3009_outcomes, x402_engine
from assay.infra.payments.x402_engine import X402Engine
from assay.infra.payments.x402_facilitator import RemoteFacilitator
from assay.infra.payments.x402_sender import Sender
from assay.kit.errors import Unavailable
from assay.kit.json import is_array, is_object
from assay.payments import retries
from assay.payments.model import Entry, PaymentRefused, State
from assay.payments.outcomes import Rejected, Settled, Undecided
from assay.payments.ports import Note
from assay.payments.settlement import PaymentPending
from assay.payments.till import Till
from assay.payments.witness import Witness
from tests.fakes.ledger import MemoryLedgerStore, key_of
from tests.simulation.chain import USED, topic


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: what is replaced by what."""

    target: object
    name: str
    bug: Callable[..., Any]


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The bug is there until the end of the block."""
    with ExitStack() as stack:
        for mutant in MUTANTS[name]:
            stack.enter_context(patch.object(mutant.target, mutant.name, mutant.bug))
        yield


_noted = Sender._noted
_settle = X402Engine.settle
_answer_refusal = RemoteFacilitator.settle
_till_settle = Till.settle
_move = MemoryLedgerStore.move
_claim = MemoryLedgerStore.claim


async def _sent_unnoted(self: Sender, some: Sequence[Any], first: int, price: int) -> Sequence[Any]:
    """It signs, and writes nothing down before it sends."""
    for place, one in enumerate(some):
        one.nonce = first + place
        self._sign(one, max(price, one.price))
    return some


async def _settled_when_sent(self: X402Engine, entry: Entry, note: Note) -> Any:
    """What was sent has arrived."""
    sender = self._sender(entry.network)
    assert sender is not None
    try:
        sent = await sender.send(entry, note)
    except Unavailable as error:
        return Undecided(str(error))
    return sent if isinstance(sent, Undecided) else Settled(sent)


async def _unknown_is_failed(self: X402Engine, entries: Sequence[Entry]) -> Any:
    """Reconciliation that finds nothing calls it a refusal."""
    found = await self._outcomes.find(entries)
    return [Rejected(one.detail) if isinstance(one, Undecided) else one for one in found]


async def _revert_is_final(self: X402Engine, entry: Entry, spent: int | None) -> Any:
    """A settlement that reverts is refused, whoever made it revert."""
    del self, entry, spent
    return Rejected("transaction_failed")


def _used_is_paid(receipt: Any, entry: Entry) -> bool:
    """The nonce was used: then it was used for us."""
    if not is_object(receipt) or receipt.get("status") != "0x1":
        return False
    logs = receipt.get("logs")
    wanted = [USED, topic(entry.payer), entry.nonce]
    return any(
        is_object(log) and log["topics"] == wanted for log in (logs if is_array(logs) else ())
    )


async def _pending_is_refused(self: Till, held: Any, stored: Any) -> Entry:
    """An outcome that is not known is told as a 402."""
    try:
        return await _till_settle(self, held, stored)
    except PaymentPending:
        refusal = PaymentRefused("settlement_failed", "It could not be settled.")
        raise await self._settlement.refused(held.quote, refusal) from None


async def _released_after_sending(self: Till, held: Any, stored: Any) -> Entry:
    """What did not settle is released, though it may have been sent."""
    try:
        return await _till_settle(self, held, stored)
    except PaymentPending:
        now = self._clock.now()
        row = await self._ledger.find(held.entry.network, held.entry.digest)
        assert row is not None
        await self._ledger.move(row, State.RELEASED, lease_until=now)
        raise


async def _any_reading_moves(self: MemoryLedgerStore, entry: Entry, *args: Any, **kw: Any) -> Any:
    """A change is made whatever has become of the row meanwhile."""
    known = next((row for row in self.rows.values() if row.id == entry.id), entry)
    return await _move(self, replace(entry, moves=known.moves), *args, **kw)


async def _everybody_claims(
    self: MemoryLedgerStore, fresh: Entry, since: Any, gas: Any = None
) -> Any:
    """A claim is everybody's, whoever works on it."""
    claim = await _claim(self, fresh, since, gas)
    return replace(claim, is_ours=True)


async def _no_lease(self: MemoryLedgerStore, fresh: Entry, since: Any, gas: Any = None) -> Any:
    """Whoever is claimed is abandoned, though somebody is at it."""
    known = self.rows.get(key_of(fresh))
    if known is not None and known.state is State.CLAIMED:
        self.rows[key_of(fresh)] = replace(known, lease_until=fresh.created_at)
    return await _claim(self, fresh, since, gas)


async def _kept_nowhere(self: Till, held: Any, stored: Any) -> Entry:
    """The answer is in memory alone until it is handed out."""
    del stored
    return await _till_settle(self, held, None)


async def _never_due(*_: object) -> Any:
    """What has settled is looked at no more."""
    return ()


async def _first_word(_self: object, _entry: Entry, found: Any) -> Any:
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


async def _refusal_is_believed(self: RemoteFacilitator, entry: Entry, note: Note) -> Any:
    """A facilitator that says no is right, whatever the chain says."""
    found = await _answer_refusal(self, entry, note)
    if isinstance(found, Undecided):
        return Rejected(found.detail)
    return found


async def _timeout_is_refusal(self: X402Engine, entry: Entry, note: Note) -> Any:
    """No receipt in time: then it was not taken."""
    found = await _settle(self, entry, note)
    return Rejected(found.detail) if isinstance(found, Undecided) else found


MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "sent before it is written down": (Mutant(Sender, "_noted", _sent_unnoted),),
    "settled as soon as it is sent": (Mutant(X402Engine, "settle", _settled_when_sent),),
    "reconciliation takes unknown for failed": (
        Mutant(X402Engine, "outcomes", _unknown_is_failed),
    ),
    "a revert is final, and nobody else is asked": (
        Mutant(X402Engine, "_failed", _revert_is_final),
        Mutant(Witness, "_agreed", _first_word),
    ),
    "used counts as paid": (
        Mutant(x402_engine, "pays", _used_is_paid),
        Mutant(eip3009_outcomes, "pays", _used_is_paid),
    ),
    "what has settled is looked at no more": (Mutant(MemoryLedgerStore, "claim_due", _never_due),),
    "an older block's word on a revert": (
        Mutant(eip3009_outcomes.Outcomes, "_require_unused", _unused_anywhere),
    ),
    "unknown is told as 402": (Mutant(Till, "settle", _pending_is_refused),),
    "released after it was sent": (Mutant(Till, "settle", _released_after_sending),),
    "no receipt in time is a refusal": (Mutant(X402Engine, "settle", _timeout_is_refusal),),
    "changes are made from old readings": (Mutant(MemoryLedgerStore, "move", _any_reading_moves),),
    "a claim keeps nobody out": (Mutant(MemoryLedgerStore, "claim", _everybody_claims),),
    "a lease keeps nobody out": (Mutant(MemoryLedgerStore, "claim", _no_lease),),
    "the answer is not kept": (Mutant(Till, "settle", _kept_nowhere),),
    "whoever shows it is its buyer": (Mutant(retries, "is_buyer", _anybody_is_buyer),),
    "it buys another request": (Mutant(retries, "is_same_request", _same_enough),),
    "a facilitator's refusal is believed": (
        Mutant(RemoteFacilitator, "settle", _refusal_is_believed),
    ),
}
