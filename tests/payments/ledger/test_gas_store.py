"""Budgets of gas, on every database: exact over processes, given back once, never spent twice."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import Executable, text
from sqlalchemy.dialects.sqlite import dialect

from assay.accounts.model import Operator, Plan, Role
from assay.accounts.ports import SignUp
from assay.accounts.store_operators import SqlOperatorStore
from assay.audit.service import TERMINAL, new_entry
from assay.audit.store import SqlAuditStore
from assay.common.ids import new_id
from assay.db.engine import Database
from assay.db.sql_transaction import DriverTransaction, Values
from assay.db.store_costs import DailyBudgets
from assay.payments.gas import GasSpent, GasTerms
from assay.payments.model import LedgerEntry, PaymentClaim, PaymentState
from assay.payments.outcomes import SettlementAttempt
from assay.payments.store import SqlLedgerStore
from assay.payments.store_gas import IN_FLIGHT, SqlGasStore
from tests.payments.ledger.test_ledger_store import entry
from tests.support.fakes.clock import FrozenClock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TODAY = int(NOON.timestamp()) // 86_400
HOUR = timedelta(hours=1)
COIN = "eip155:8453"
SENT = SettlementAttempt("0x" + "ee" * 32, "0xraw")


def cost(spent: int) -> SettlementAttempt:
    return replace(SENT, spent=spent)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(NOON)


@pytest.fixture
async def other(database_url: str) -> AsyncGenerator[Database]:
    """The same database, as a second process has it."""
    opened = await Database.open(database_url)
    yield opened
    await opened.close()


async def account(database: Database, *, registers: bool = False) -> str:
    """A new account: made by an admin, or by a stranger."""
    operator = Operator(
        new_id(), f"{new_id()}@x.example", "n", Role.OPERATOR, Plan.FREE, Decimal(0), NOON, NOON
    )
    sign_up = SignUp(("origin",), ("network",), NOON - HOUR, 10_000, 10_000) if registers else None
    await SqlOperatorStore(database).add(operator, "hash", None, sign_up)
    return operator.id


def terms(free: int = 0, shared: int = 1_000_000, most: int = 100) -> GasTerms:
    return GasTerms(COIN, most, free, shared)


def payment(number: int, operator_id: str, clock: FrozenClock) -> LedgerEntry:
    now = clock.now()
    return entry(
        f"0x{number}",
        operator_id=operator_id,
        payer=f"0x{number:040x}",
        created_at=now,
        updated_at=now,
        lease_until=now + timedelta(seconds=30),
    )


async def claim(
    ledger: SqlLedgerStore, made: LedgerEntry, budget: GasTerms
) -> PaymentClaim | GasSpent:
    try:
        return await ledger.claim(made, NOON - HOUR, budget)
    except GasSpent as refusal:
        return refusal


async def claimed(ledger: SqlLedgerStore, made: LedgerEntry, budget: GasTerms) -> LedgerEntry:
    found = await ledger.claim(made, NOON - HOUR, budget)
    assert found.is_ours
    return found.entry


async def credit(database: Database, operator_id: str, amount: int, clock: FrozenClock) -> int:
    told = new_entry(clock, TERMINAL, "gas.credited", operator_id)
    return await SqlGasStore(database).credit_for_admin(operator_id, COIN, amount, told)


async def balance(database: Database, operator_id: str) -> int:
    return (await SqlGasStore(database).account(operator_id, TODAY)).prepaid[COIN]


async def free_used(database: Database, operator_id: str) -> int:
    return (await SqlGasStore(database).account(operator_id, TODAY)).free_used


async def test_two_processes_take_no_more_free_settlements_than_there_are(
    database: Database, other: Database, clock: FrozenClock
) -> None:
    seller = await account(database)
    ledgers = SqlLedgerStore(database, clock), SqlLedgerStore(other, clock)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(claim(ledgers[n % 2], payment(n, seller, clock), terms(free=7)))
            for n in range(30)
        ]
    found = [task.result() for task in tasks]
    assert sum(isinstance(one, PaymentClaim) for one in found) == 7
    assert await free_used(other, seller) == 7


async def test_all_self_registered_accounts_share_one_budget(
    database: Database, other: Database, clock: FrozenClock
) -> None:
    sellers = [await account(database, registers=True) for _ in range(10)]
    own = await account(database)
    ledgers = SqlLedgerStore(database, clock), SqlLedgerStore(other, clock)
    budget = terms(free=5, shared=12)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(claim(ledgers[n % 2], payment(n, sellers[n % 10], clock), budget))
            for n in range(50)
        ]
    assert sum(isinstance(task.result(), PaymentClaim) for task in tasks) == 12
    store = SqlGasStore(database)
    assert await store.shared_used(TODAY) == 12
    assert sum([await free_used(database, one) for one in sellers]) == 12
    for number in range(100, 105):  # an account that an admin made does not count there
        assert isinstance(
            await claim(ledgers[0], payment(number, own, clock), budget), PaymentClaim
        )
    assert await store.shared_used(TODAY) == 12


async def test_a_race_spends_no_prepaid_gas_twice(
    database: Database, other: Database, clock: FrozenClock
) -> None:
    seller = await account(database)
    assert await credit(database, seller, 950, clock) == 950
    ledgers = SqlLedgerStore(database, clock), SqlLedgerStore(other, clock)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(claim(ledgers[n % 2], payment(n, seller, clock), terms()))
            for n in range(20)
        ]
    assert sum(isinstance(task.result(), PaymentClaim) for task in tasks) == 9
    assert await balance(database, seller) == 50


async def test_a_claim_that_is_refused_leaves_nothing(
    database: Database, clock: FrozenClock
) -> None:
    seller = await account(database, registers=True)
    ledger = SqlLedgerStore(database, clock)
    refusal = await claim(ledger, payment(1, seller, clock), terms(free=1, shared=0))
    assert isinstance(refusal, GasSpent)
    assert refusal.code == "payments_unavailable"
    assert refusal.retry_after_s == 12 * 3600  # until tomorrow
    assert await ledger.find(COIN, "digest 0x1") is None
    assert await free_used(database, seller) == 0


async def test_while_claims_may_give_back_a_refusal_asks_to_come_again_soon(
    database: Database, clock: FrozenClock
) -> None:
    seller = await account(database)
    ledger = SqlLedgerStore(database, clock)
    first = await claimed(ledger, payment(1, seller, clock), terms(free=1))
    refusal = await claim(ledger, payment(2, seller, clock), terms(free=1))
    assert isinstance(refusal, GasSpent)
    assert refusal.retry_after_s == 5
    assert await ledger.move(first, PaymentState.RELEASED) is not None
    assert await free_used(database, seller) == 0
    await claimed(ledger, payment(2, seller, clock), terms(free=1))


@pytest.mark.parametrize("registers", [False, True])
async def test_a_released_payment_that_is_claimed_again_gives_nothing_back(
    database: Database, clock: FrozenClock, *, registers: bool
) -> None:
    """What its first claim had reserved was given back when it was released."""
    seller, ledger = await account(database, registers=registers), SqlLedgerStore(database, clock)
    released = payment(1, seller, clock)
    sent = await claimed(ledger, payment(2, seller, clock), terms(free=2))
    assert await ledger.move(sent, PaymentState.SETTLED, attempt=cost(7))
    for _ in range(3):
        now = await claimed(ledger, released, terms(free=2))
        assert await free_used(database, seller) == 2
        assert await ledger.move(now, PaymentState.RELEASED, reason="nobody was served")
        assert await free_used(database, seller) == 1


async def test_a_prepaid_claim_that_was_abandoned_is_given_back_once(
    database: Database, clock: FrozenClock
) -> None:
    seller, ledger = await account(database), SqlLedgerStore(database, clock)
    await credit(database, seller, 100, clock)
    sent = await claimed(ledger, payment(1, seller, clock), terms(free=1))
    assert await ledger.move(sent, PaymentState.SETTLED, attempt=cost(7))
    await claimed(ledger, payment(2, seller, clock), terms(free=1))
    clock.move(60)
    assert await SqlGasStore(database).release_abandoned(clock.now(), 10) == 1
    assert await balance(database, seller) == 100
    again = await claimed(ledger, payment(2, seller, clock), terms(free=1))
    assert (again.gas.payer, await free_used(database, seller)) == ("prepaid", 1)


async def test_a_reservation_is_given_back_once_where_its_claim_moves_while_it_is_taken_over(
    database: Database, other: Database, clock: FrozenClock
) -> None:
    """Of a process that was slow, not gone: its reservation pays for its settlement then."""
    seller = await account(database)
    await credit(database, seller, 100, clock)
    ours, theirs = SqlLedgerStore(database, clock), SqlLedgerStore(other, clock)
    slow = await claimed(ours, payment(1, seller, clock), terms())
    clock.move(60)
    async with asyncio.TaskGroup() as group, database.write() as connection:
        # Whoever takes it over waits for this to give it back.
        await connection.execute(text("UPDATE gas_accounts SET balance = balance"))
        taking = group.create_task(theirs.claim(payment(1, seller, clock), NOON, terms()))
        await asyncio.sleep(0.3)
        moving = group.create_task(ours.move(slow, PaymentState.SETTLING, attempt=SENT))
        await asyncio.sleep(0.3)
    taken, moved = taking.result(), moving.result()
    assert taken.is_ours is (moved is None)
    ended = await ours.move(moved or taken.entry, PaymentState.SETTLED, attempt=cost(7))
    assert ended is not None
    assert await balance(database, seller) == 93


async def test_tomorrow_is_another_budget(database: Database, clock: FrozenClock) -> None:
    seller = await account(database)
    ledger = SqlLedgerStore(database, clock)
    await claimed(ledger, payment(1, seller, clock), terms(free=1))
    clock.move(12 * 3600)
    await claimed(ledger, payment(2, seller, clock), terms(free=1))
    store = SqlGasStore(database)
    assert await store.forget(TODAY + 1) == 1
    assert await free_used(database, seller) == 0


async def test_free_settlements_go_before_what_is_prepaid(
    database: Database, clock: FrozenClock
) -> None:
    seller = await account(database)
    await credit(database, seller, 250, clock)
    ledger = SqlLedgerStore(database, clock)
    payers = [
        (await claimed(ledger, payment(n, seller, clock), terms(free=2))).gas.payer
        for n in range(4)
    ]
    assert payers == ["free", "free", "prepaid", "prepaid"]
    assert await balance(database, seller) == 50
    assert isinstance(await claim(ledger, payment(9, seller, clock), terms(free=2)), GasSpent)


@pytest.mark.parametrize("end", [PaymentState.SETTLED, PaymentState.FAILED])
async def test_what_was_sent_is_charged_once_whatever_became_of_it(
    database: Database, clock: FrozenClock, end: PaymentState
) -> None:
    seller = await account(database)
    await credit(database, seller, 100, clock)
    ledger = SqlLedgerStore(database, clock)
    made = await claimed(ledger, payment(1, seller, clock), terms())
    assert await balance(database, seller) == 0
    sent = await ledger.move(made, PaymentState.SETTLING, attempt=SENT)
    assert sent is not None
    ended = await ledger.move(sent, end, attempt=cost(30))
    assert ended is not None
    assert (ended.gas.reserved, ended.gas.spent) == (100, 30)
    assert await balance(database, seller) == 70
    again = await ledger.move(ended, PaymentState.SETTLED, attempt=cost(90))
    assert again is not None
    assert again.gas.spent == 30
    assert (
        await ledger.move(ended, PaymentState.SETTLED, attempt=cost(1)) is None
    )  # from an old reading
    assert await balance(database, seller) == 70


async def test_what_cannot_be_asked_about_has_cost_what_was_reserved(
    database: Database, clock: FrozenClock
) -> None:
    seller = await account(database)
    await credit(database, seller, 150, clock)
    ledger = SqlLedgerStore(database, clock)
    made = await claimed(ledger, payment(1, seller, clock), terms())
    sent = await ledger.move(made, PaymentState.SETTLING, attempt=SENT)
    assert sent is not None
    ended = await ledger.move(sent, PaymentState.FAILED, reason="expired_unused")
    assert ended is not None
    assert ended.gas.spent == 100
    assert await balance(database, seller) == 50


async def test_more_than_was_reserved_is_charged_all_the_same(
    database: Database, clock: FrozenClock
) -> None:
    seller = await account(database)
    await credit(database, seller, 100, clock)
    ledger = SqlLedgerStore(database, clock)
    made = await claimed(ledger, payment(1, seller, clock), terms())
    sent = await ledger.move(made, PaymentState.SETTLING, attempt=SENT)
    assert sent is not None
    await ledger.move(sent, PaymentState.SETTLED, attempt=cost(160))
    assert await balance(database, seller) == -60
    assert isinstance(await claim(ledger, payment(2, seller, clock), terms(most=1)), GasSpent)


async def test_a_payment_that_somebody_else_settled_costs_nothing(
    database: Database, clock: FrozenClock
) -> None:
    seller = await account(database)
    await credit(database, seller, 100, clock)
    ledger = SqlLedgerStore(database, clock)
    made = await claimed(ledger, payment(1, seller, clock), terms())
    settled = await ledger.move(
        made, PaymentState.SETTLED, attempt=SettlementAttempt("0x" + "11" * 32)
    )
    assert settled is not None
    assert settled.gas.payer == ""
    assert await balance(database, seller) == 100


async def test_a_free_settlement_that_was_sent_is_never_given_back(
    database: Database, clock: FrozenClock
) -> None:
    """Attempts that revert or are cancelled cost us as much: a payer can make them at will."""
    seller = await account(database, registers=True)
    ledger = SqlLedgerStore(database, clock)
    made = await claimed(ledger, payment(1, seller, clock), terms(free=5))
    sent = await ledger.move(made, PaymentState.SETTLING, attempt=SENT)
    assert sent is not None
    await ledger.move(sent, PaymentState.FAILED, reason="authorization_cancelled")
    assert await free_used(database, seller) == 1
    assert await SqlGasStore(database).shared_used(TODAY) == 1


async def test_a_claim_taken_over_after_a_crash_is_reserved_for_once(
    database: Database, clock: FrozenClock
) -> None:
    seller = await account(database)
    await credit(database, seller, 100, clock)
    ledger = SqlLedgerStore(database, clock)
    await claimed(ledger, payment(1, seller, clock), terms())
    clock.move(60)
    taken = await claimed(ledger, payment(1, seller, clock), terms())
    assert taken.gas.payer == "prepaid"
    assert await balance(database, seller) == 0
    assert await ledger.move(taken, PaymentState.RELEASED) is not None
    assert await balance(database, seller) == 100


async def test_a_crash_between_count_and_send_counts_too_much_and_never_too_little(
    database: Database, clock: FrozenClock
) -> None:
    seller = await account(database)
    await credit(database, seller, 100, clock)
    ledger, store = SqlLedgerStore(database, clock), SqlGasStore(database)
    await claimed(ledger, payment(1, seller, clock), terms(free=1))
    await claimed(ledger, payment(2, seller, clock), terms(free=1))
    assert (await free_used(database, seller), await balance(database, seller)) == (1, 0)
    clock.move(2 * 3600)  # nobody comes again: what is prepaid is given back in the end
    assert await store.release_abandoned(clock.now() - HOUR, 10) == 1
    assert await store.release_abandoned(clock.now() - HOUR, 10) == 0
    assert (await free_used(database, seller), await balance(database, seller)) == (1, 100)
    entry_now = await ledger.find(COIN, "digest 0x2")
    assert entry_now is not None
    assert (entry_now.state, entry_now.gas.payer) == (PaymentState.RELEASED, "")


async def test_what_waits_for_the_key_is_counted_over_all_processes(
    database: Database, other: Database, clock: FrozenClock
) -> None:
    seller = await account(database)
    ledger, store = SqlLedgerStore(database, clock), SqlGasStore(other)
    first = await claimed(ledger, payment(1, seller, clock), terms(free=9))
    second = await claimed(ledger, payment(2, seller, clock), terms(free=9))
    await claimed(ledger, payment(3, seller, clock), terms(free=9))
    begun = clock.now()
    assert await store.in_flight(COIN, begun, begun) == 3
    clock.move(1)
    sent = await ledger.move(first, PaymentState.SETTLING, attempt=SENT)
    assert sent is not None
    await ledger.move(sent, PaymentState.SETTLED)
    await ledger.move(second, PaymentState.SETTLING, attempt=SENT)
    settled = clock.now()
    assert await store.in_flight(COIN, settled, settled) == 3  # a balance of before still has it
    clock.move(60)  # a claim whose process is gone will not be sent
    assert await store.in_flight(COIN, clock.now(), settled) == 2
    assert await store.in_flight(COIN, clock.now(), clock.now()) == 1


async def test_what_waits_for_the_key_is_counted_without_reading_what_ended_before(
    database: Database,
) -> None:
    if database.kind != "sqlite":
        pytest.skip("the other's plan depends on what it has counted")
    text_ = str(IN_FLIGHT.compile(dialect=dialect())).replace("?", "1")
    plan = text(f"EXPLAIN QUERY PLAN {text_}")
    rows = await database.look(lambda transaction: transaction.rows(plan, {}))
    reads = [row["detail"] for row in rows if "payments" in row["detail"]]
    assert len(reads) == 5
    for detail in reads:
        assert ("ix_payments_state" in detail) or ("ix_payments_settled" in detail), reads


async def test_a_credit_is_a_line_of_the_audit_trail(
    database: Database, clock: FrozenClock
) -> None:
    seller = await account(database)
    assert await credit(database, seller, 500, clock) == 500
    assert await credit(database, seller, -200, clock) == 300
    trail = await SqlAuditStore(database).page_for_admin(seller, None, 10)
    assert [one.action for one in trail] == ["gas.credited", "gas.credited"]


async def test_an_account_that_registered_itself_is_known_by_it(database: Database) -> None:
    stranger, own = await account(database, registers=True), await account(database)
    store = SqlGasStore(database)
    assert (await store.account(stranger, TODAY)).is_self_registered
    assert not (await store.account(own, TODAY)).is_self_registered


async def test_of_several_budgets_a_unit_of_each_is_taken_or_of_none(
    database: Database, other: Database
) -> None:
    budgets = DailyBudgets(database), DailyBudgets(other)
    limits = [("all", 8), ("one", 3)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(budgets[n % 2].take_all(limits, TODAY)) for n in range(10)]
    assert [task.result() for task in tasks].count(None) == 3
    assert await budgets[0].used(["all", "one", "none"], TODAY) == {"all": 3, "one": 3}
    assert await budgets[0].take_all([("all", 3), ("two", 3)], TODAY) == "all"
    assert await budgets[0].used(["two"], TODAY) == {}


async def test_a_payments_gas_is_read_as_it_was_written(
    database: Database, clock: FrozenClock
) -> None:
    seller = await account(database)
    ledger = SqlLedgerStore(database, clock)
    made = await claimed(ledger, payment(1, seller, clock), terms(free=1))
    assert await ledger.find(COIN, made.digest) == made


async def test_a_paid_call_asks_one_statement_more_and_none_when_it_settles(
    database: Database, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two for a self-registered account; who it is was read before. On SQLite, which counts."""
    if database.kind != "sqlite":
        pytest.skip("counted where statements are run by us")
    asked: list[object] = []
    run = DriverTransaction._run

    def counted(self: DriverTransaction, statement: Executable, values: Values) -> object:
        asked.append(statement)
        return run(self, statement, values)

    monkeypatch.setattr(DriverTransaction, "_run", counted)
    ledger = SqlLedgerStore(database, clock)

    async def statements(seller: str, number: int, gas: GasTerms | None) -> tuple[int, int]:
        asked.clear()
        made = (await ledger.claim(payment(number, seller, clock), NOON - HOUR, gas)).entry
        claiming = len(asked)
        sent = await ledger.move(made, PaymentState.SETTLING, attempt=SENT)
        assert sent is not None
        await ledger.move(sent, PaymentState.SETTLED, attempt=cost(1))
        return claiming, len(asked) - claiming

    own, stranger = await account(database), await account(database, registers=True)
    await statements(own, 1, terms(free=9))
    await statements(stranger, 2, terms(free=9))
    claiming, ending = await statements(own, 3, None)
    assert await statements(own, 4, terms(free=9)) == (claiming + 1, ending)
    assert await statements(stranger, 5, terms(free=9)) == (claiming + 2, ending)
