"""That a payer's balance covers a payment and everything of his that is in flight.

The balance and the ledger are two clocks: what was sent may have left the balance while the ledger
still counts it, and then it is counted twice. Source: payment-safety.md#over-commitment.
"""

import asyncio
from typing import Final

from assay.common.clock import Clock
from assay.payments.model import (
    InFlightAmount,
    LedgerEntry,
    Payment,
    PaymentClaim,
    PaymentRefused,
    PaymentSighting,
    PaymentsUnavailable,
)
from assay.payments.ports import (
    Balances,
    PaymentProtocol,
    ProtocolDependencies,
)
from assay.payments.store import SqlLedgerStore

LANDING_S: Final = 10.0
"""How long what was sent is waited for: several blocks, and a look at their receipts."""
PAUSE_S: Final = 0.05
PAUSE_MAX_S: Final = 0.4


async def require_cover(
    payment: Payment,
    claim: PaymentClaim,
    protocol: PaymentProtocol,
    needs: ProtocolDependencies,
    ledger: SqlLedgerStore,
    sighting: PaymentSighting,
) -> None:
    """The protocol's own checks of a payment, and that nothing is promised twice.

    Raises `PaymentRefused` where the count is exact, at once; `PaymentsUnavailable` when something
    may still have been counted twice after `LANDING_S`; and what `PaymentProtocol.verify` raises.
    """
    committed = claim.committed
    until_s = needs.clock.monotonic_s() + LANDING_S
    while True:
        balances = await protocol.verify(payment, needs, sighting)
        if balances is None or _cover(balances, claim.entry, committed):
            return
        committed = await _changed(committed, claim.entry, ledger, needs.clock, until_s)


async def _changed(
    seen: InFlightAmount, entry: LedgerEntry, ledger: SqlLedgerStore, clock: Clock, until_s: float
) -> InFlightAmount:
    """What is in flight now that it is something else: while it is the same, it is still short."""
    pause_s = 0.0
    while True:
        await asyncio.sleep(pause_s)
        found = await ledger.committed(entry)
        if found == seen and not found.sent:
            message = "The payer's balance does not cover its other payments in flight as well."
            raise PaymentRefused("insufficient_funds", message)
        if clock.monotonic_s() > until_s:
            message = "Other payments of this payer are being settled: send this one again."
            raise PaymentsUnavailable(message, retry_after_s=2)
        if found != seen:
            return found
        pause_s = min(PAUSE_S + 2 * pause_s, PAUSE_MAX_S)


def _cover(balances: Balances, entry: LedgerEntry, committed: InFlightAmount) -> bool:
    """Whether there is enough for the entry and its fees, and for all that is in flight."""
    fees, needed = entry.fees, committed.amount + entry.amount
    if fees.token == entry.asset:
        needed += fees.most
    elif fees.most and balances.get(fees.token, 0) < committed.fees + fees.most:
        return False
    return balances.get(entry.asset, 0) >= needed
