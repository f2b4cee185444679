"""Callers that go away while their payment is claimed, on every database: nothing stays claimed."""

import asyncio

from assay.payments.model import ClaimedPayment, PaymentState
from tests.payments.ledger.test_shared_key import MOST, Seller, seller

__all__ = ["seller"]
CALLERS = 60
STEP_S = 0.0003


async def test_who_goes_away_while_a_payment_is_claimed_holds_no_free_settlement(
    seller: Seller,
) -> None:
    """It needs no money for it: its balance is asked for after the claim."""
    seller.node.balance, payment_service = 1000 * MOST, seller.services[0]
    await seller.hold(payment_service)
    for number in range(CALLERS):
        holding = asyncio.get_running_loop().create_task(seller.hold(payment_service))
        await asyncio.sleep(number * STEP_S)
        holding.cancel()
        try:
            held = await holding
        except asyncio.CancelledError:
            continue
        assert isinstance(held, ClaimedPayment)
        await payment_service.release(held, "it had been verified")
    rows = await seller.ledger.list(None, (), 100)
    reserved = [row.state for row in rows if row.gas.payer]
    assert (reserved, len(rows) > 1) == ([PaymentState.CLAIMED], True)
