"""Payments that served nobody: the chain is asked before anything is said of one.

A facilitator or a node that was shown an authorisation while it was claimed can submit it once the
claim has ended. Its buyer has paid then, and is owed what the claim was for (ADR 0019).
"""

from dataclasses import replace
from typing import Final

from assay.common.errors import Unavailable
from assay.payments.model import CUT_SHORT, LedgerEntry, PaymentState
from assay.payments.outcomes import AT_ONCE, PaymentOutcome, Rejected, Settled, Undecided, is_unused
from assay.payments.settlement import Settlement

EVERY_NODE: Final = 2
"""What a question to every node counts, of the answers that a payment may cost."""


async def find_out(
    settlement: Settlement, known: LedgerEntry, *, is_refused: bool = False
) -> LedgerEntry | None:
    """An entry that nobody works on, as the chain has it; None where its payment may buy now.

    Settled where the transfer was made; released while nobody can say, and asked about ever less:
    while few answers are left, only the watcher asks, once its authorisation has ended. With
    `is_refused` every node is asked, for its buyer would be refused if it may buy. Raises
    `PaymentPending` when somebody has taken it over meanwhile.
    """
    now = settlement.clock.now()
    if known.state is PaymentState.RELEASED and known.look.at is None:
        return None
    if not known.look.is_due(now) or not known.look.has_left(EVERY_NODE if is_refused else 1):
        return known
    try:
        found = await settlement.look(known, every_node=is_refused)
    except Unavailable as error:
        missed = replace(known, look=known.look.missed(now), lease_until=now)
        reason = error.detail or error.message
        return await _again(settlement, missed, reason)
    if not is_unused(found):
        return await _written(settlement, known, found)
    if is_refused:
        counted = replace(known, look=known.look.due(now, EVERY_NODE), lease_until=now)
        await settlement.moved(counted, PaymentState.RELEASED, reason=known.reason)
    return None


async def _again(settlement: Settlement, known: LedgerEntry, reason: str) -> LedgerEntry:
    """The entry, still released. One that cut its call short goes on counting as a failure."""
    reason = CUT_SHORT if known.reason == CUT_SHORT else reason
    return await settlement.moved(known, PaymentState.RELEASED, reason=reason)


async def _written(
    settlement: Settlement, known: LedgerEntry, found: PaymentOutcome
) -> LedgerEntry | None:
    now = settlement.clock.now()
    match found:
        case Settled(transaction):
            shown = replace(known.attempt, transaction=transaction)
            return await settlement.moved(
                known, PaymentState.SETTLED, attempt=shown, lease_until=now
            )
        case Rejected(reason):  # it will never move: nothing is left to ask
            ended = replace(known, look=AT_ONCE, lease_until=now)
            await _again(settlement, ended, reason)
            return None
        case Undecided(detail, answers=answers):
            look = known.look.answered(now, known.expires_at, answers)
            open_ = replace(known, look=look, lease_until=now)
            return await _again(settlement, open_, detail)
