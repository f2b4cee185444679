"""A facilitator that claims what no chain shows: the chain is asked, but not by every return.

Its success is waited for once; from then on the payment's own looks decide.
"""

from dataclasses import replace

import pytest

from assay.payments.model import PaymentState
from assay.payments.outcomes import ANSWERS_MAX, SettlementAttempt
from assay.payments.settlement import PaymentPending
from assay.payments.x402.protocol import PROTOCOL as X402
from tests.payments.unit.test_authorization_outcomes import SELLER
from tests.payments.unit.test_questions_by_row import Service, x402_payments
from tests.payments.unit.test_unsent_payments import live, unfinished

VALID_S = 95
CLAIMED = {"success": True, "transaction": "0x" + "ab" * 32}
REFUSED = {"success": False, "errorReason": "invalid_transaction_state", "transaction": ""}


async def begun(made: Service, valid_s: int = VALID_S) -> None:
    """A settlement that its own call has handed to the facilitator."""
    for entry in x402_payments(valid_s)[:3]:
        settling = await made.put(
            replace(entry, attempt=SettlementAttempt("")), PaymentState.SETTLING
        )
        with pytest.raises(PaymentPending):
            await made.settlement.settle(settling)


@pytest.mark.parametrize("every_s", [1, 2, 5])
@pytest.mark.parametrize("valid_s", [VALID_S, 395])
async def test_a_success_that_no_node_shows_is_waited_for_once(valid_s: int, every_s: int) -> None:
    made = Service(X402, answers=lambda _path: CLAIMED)
    await begun(made, valid_s)
    waited = made.rpc.most_of_rows()
    await live(made, valid_s + 60, every_s)
    assert made.states() == {PaymentState.FAILED}
    assert made.rpc.most_of_rows() - waited <= ANSWERS_MAX


@pytest.mark.parametrize("shown_s", [1, 12, 90])
async def test_a_success_that_is_shown_late_is_found(shown_s: int) -> None:
    """No row is given up because questions ran out."""
    made = Service(X402, answers=lambda _path: CLAIMED)
    await begun(made)
    await live(made, shown_s, 1)
    for one in made.nodes.values():
        for row in unfinished(made):
            one.use(row, SELLER)
    await live(made, 100, 1)
    assert made.states() == {PaymentState.SETTLED}


async def test_a_claim_is_waited_for_once_whatever_no_node_answers() -> None:
    made = Service(X402, answers=lambda _path: CLAIMED)
    await begun(made)
    waited = made.rpc.most_of_rows()
    for is_down in (True, False):
        for one in made.nodes.values():
            one.is_down = is_down
        await live(made, VALID_S, 1)
    assert made.states() == {PaymentState.FAILED}
    assert made.rpc.most_of_rows() - waited <= ANSWERS_MAX


async def test_a_settlement_that_is_not_deep_yet_is_waited_for_once() -> None:
    made = Service(X402, answers=lambda _path: CLAIMED, confirmations=20)
    for one in made.nodes.values():
        for entry in x402_payments(VALID_S)[:3]:
            one.use(entry, SELLER)
    await begun(made)
    asked = made.rpc.most_of_rows()
    await live(made, 30, 1)
    assert {row.state for row in unfinished(made)} == {PaymentState.PENDING}
    assert made.rpc.most_of_rows() - asked <= ANSWERS_MAX
    await live(made, VALID_S, 1)
    assert made.states() == {PaymentState.SETTLED}


@pytest.mark.parametrize("every_s", [1, 2, 5])
async def test_a_refusal_of_what_is_used_is_not_asked_for_again(every_s: int) -> None:
    """One node says that it is used, and finds nothing: its looks find out."""
    made = Service(X402, answers=lambda _path: REFUSED)
    made.spend("used elsewhere", x402_payments(VALID_S)[:3])
    for one in made.nodes.values():
        one.refuses = {"eth_getLogs"}
    await begun(made)
    asked = made.rpc.most_of_rows()
    await live(made, 60, every_s)
    assert {row.state for row in unfinished(made)} == {PaymentState.PENDING}
    assert made.rpc.most_of_rows() - asked <= 2 * ANSWERS_MAX
