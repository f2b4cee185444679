"""A settlement that was begun and not sent is tried again by its buyer's return, and ends in time.

Gas may cost too much for a while, a facilitator may be out, or a process has died before it signed.
"""

from contextlib import suppress
from dataclasses import replace

import pytest

from assay.app.background import RECONCILE_EVERY_S
from assay.payments.model import LedgerEntry, PaymentRefused, PaymentState
from assay.payments.outcomes import ANSWERS_MAX, SettlementAttempt
from assay.payments.settlement import PaymentPending
from assay.payments.x402.protocol import PROTOCOL as X402
from assay.payments.x402.transaction_sender import GAS_PRICE_MAX
from tests.payments.unit.test_authorization_outcomes import ONE
from tests.payments.unit.test_questions_by_row import Service, x402_payments

VALID_S = 95


async def begun(made: Service, valid_s: int) -> None:
    for entry in x402_payments(valid_s)[:3]:
        await made.put(replace(entry, attempt=SettlementAttempt("")), PaymentState.SETTLING)


async def come_again(made: Service) -> None:
    """Every buyer sends the same request once more."""
    for key in list(made.ledger.rows):
        row = made.ledger.rows[key]
        if row.state not in {PaymentState.SETTLING, PaymentState.PENDING}:
            continue
        with suppress(PaymentPending, PaymentRefused):
            await made.settlement.finish(row)


def unfinished(made: Service) -> list[LedgerEntry]:
    rows = list(made.ledger.rows.values())
    return [row for row in rows if row.state in {PaymentState.SETTLING, PaymentState.PENDING}]


def price(made: Service, wei: int) -> None:
    for one in made.nodes.values():
        one.gas_price = wei


async def live(made: Service, seconds: int, every_s: int) -> None:
    """Buyers come again every so many seconds; the background does its part."""
    for second in range(1, seconds + 1):
        made.move(1)
        if second % int(RECONCILE_EVERY_S) == 0:
            await made.settlement.reconcile(is_due_only=True)
        if second % every_s == 0:
            await come_again(made)


@pytest.mark.parametrize("every_s", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("outage_s", [10, 30, 60])
async def test_it_is_sent_once_it_can_be(outage_s: int, every_s: int) -> None:
    """No row is given up because questions ran out."""
    made = Service(X402, has_key=True)
    await begun(made, VALID_S)
    price(made, GAS_PRICE_MAX + 1)
    await live(made, outage_s, every_s)
    assert not any(row.attempt.raw for row in unfinished(made))
    price(made, 10**9)
    await live(made, 10, every_s)
    assert all(row.attempt.raw for row in unfinished(made))
    assert len(unfinished(made)) == 3


@pytest.mark.parametrize("has_key", [False, True])
@pytest.mark.parametrize("every_s", [1, 2, 5])
@pytest.mark.parametrize("valid_s", [VALID_S, 395])
async def test_what_can_never_be_sent_is_asked_about_five_times(
    valid_s: int, every_s: int, *, has_key: bool
) -> None:
    made = Service(X402, has_key=has_key)
    await begun(made, valid_s)
    price(made, GAS_PRICE_MAX + 1)
    await live(made, valid_s + 60, every_s)
    assert made.states() == {PaymentState.FAILED}
    assert made.rpc.most_of_rows() <= ANSWERS_MAX


@pytest.mark.parametrize("how", ["cancelled", "used elsewhere"])
@pytest.mark.parametrize("is_second_blind", [False, True])
async def test_what_is_spent_meanwhile_ends(how: str, *, is_second_blind: bool) -> None:
    made = Service(X402, has_key=True, is_second_blind=is_second_blind)
    await begun(made, VALID_S)
    price(made, GAS_PRICE_MAX + 1)
    await live(made, 4, 2)
    made.spend(how, unfinished(made))
    await live(made, VALID_S + 60, 2)
    assert made.states() == {PaymentState.FAILED}
    assert not made.nodes[ONE].taken
    assert (
        made.rpc.most_of_rows() <= ANSWERS_MAX + is_second_blind
    )  # nodes that contradict each other


async def test_nothing_is_sent_whose_time_is_over() -> None:
    made = Service(X402, has_key=True)
    await begun(made, 20)
    price(made, GAS_PRICE_MAX + 1)
    await live(made, 18, 2)
    price(made, 10**9)
    made.move(4)
    await come_again(made)
    assert not any(one.taken for one in made.nodes.values())


async def test_while_no_node_answers_buyers_who_come_again_ask_nothing() -> None:
    made = Service(X402, has_key=True)
    await begun(made, VALID_S)
    for one in made.nodes.values():
        one.is_down = True
    await live(made, 60, 1)
    assert max(one.tried for one in made.nodes.values()) == 4  # after 1, 6, 16 and 36 seconds
