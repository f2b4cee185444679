"""The roll-ups, on every database: always what the calls and payments themselves say."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from assay.analytics.model import CallKind, CallLogEntry, CallSums, LogFilter
from assay.analytics.store_analytics import SqlAnalyticsStore
from assay.analytics.store_calls import SqlCallStore
from assay.analytics.store_rollups import SqlRollupProof
from assay.common.clock import DAY_US
from assay.db.engine import Database, to_us
from assay.payments.model import LedgerEntry, PaymentState
from tests.support.fakes.calls import (
    CALL_FIELDS,
    KIND_FIELDS,
    PAYER,
    call,
    changed,
    claimed,
    counted_ledger,
    payment,
)
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.ledger_moves import moved_on

START = datetime(2026, 3, 1, 23, 59, 59, 999_990, UTC)
OPERATORS, WRAPPERS, AGENTS = ("one", "two"), ("w1", "w2", "w3"), (None, "7", "8", "0x" + "a" * 40)

CALLS = st.builds(
    dict,
    who=st.sampled_from(OPERATORS),
    wrapper=st.sampled_from(WRAPPERS),
    later_us=st.integers(0, 3 * DAY_US),
    agent_id=st.sampled_from(AGENTS),
    payer=st.sampled_from([None, PAYER]),
    tier=st.sampled_from([None, "A", "B"]),
    chain=st.sampled_from([None, "base", "ethereum"]),
    latency_us=st.integers(0, 10**9),
    outcome=st.sampled_from(
        ["forwarded", "replayed", "trust_denied", "rate_limit_exceeded", "payment_required"]
    ),
    status=st.sampled_from([0, 200, 304, 401, 402, 403, 404, 429, 500, 502]),
    payment=st.sampled_from([None, "settled", "failed", "pending"]),
    amount=st.integers(1, 10**12),
)


@dataclass
class Model:
    """Everything that happened, in plain lists; every answer is counted from them."""

    calls: list[CallLogEntry] = field(default_factory=list)
    settled: list[LedgerEntry] = field(default_factory=list)
    failed: list[LedgerEntry] = field(default_factory=list)
    pending: list[LedgerEntry] = field(default_factory=list)

    def of_state(self, state: PaymentState) -> list[LedgerEntry]:
        kept = {PaymentState.SETTLED: self.settled, PaymentState.FAILED: self.failed}
        return kept.get(state, self.pending)

    def counted(self, calls: Sequence[CallLogEntry], settled: Sequence[LedgerEntry]) -> CallSums:
        return CallSums(
            calls=len(calls),
            errors=sum(c.status >= 400 and c.status not in {401, 402} for c in calls),
            latency_us=sum(c.latency_us for c in calls),
            revenue=sum(e.amount for e in settled),
        )

    def of(
        self, who: str, agent: str | None = None
    ) -> tuple[list[CallLogEntry], list[LedgerEntry]]:
        calls = [c for c in self.calls if c.kind.operator_id == who]
        settled = [e for e in self.settled if e.operator_id == who]
        if agent is not None:
            calls = [c for c in calls if c.kind.agent == agent]
            settled = [e for e in settled if (e.agent_id or e.payer) == agent]
        return calls, settled

    def agents(self, who: str) -> set[str]:
        calls, settled = self.of(who)
        return {c.kind.agent for c in calls if c.kind.agent} | {
            e.agent_id or e.payer for e in settled
        }


def day_of(at: datetime | None) -> int:
    assert at is not None
    return to_us(at) // DAY_US


async def play(database: Database, steps: Sequence[dict[str, object]], model: Model) -> None:
    clock = FrozenClock(START)
    ledger, store = counted_ledger(database, clock), SqlCallStore(database)
    batch: list[CallLogEntry] = []
    kinds: dict[tuple[object, ...], CallKind] = {}
    for number, step in enumerate(steps):
        plain = {k: v for k, v in step.items() if k in KIND_FIELDS | CALL_FIELDS}
        at = START + timedelta(microseconds=int(step["later_us"]))  # type: ignore[call-overload]
        made = call(str(step["who"]), str(step["wrapper"]), at, **plain)
        if step["payment"]:
            entry = payment(made.kind.operator_id, made.kind.wrapper_id, at, int(step["amount"]))  # type: ignore[call-overload]
            entry = await claimed(ledger, replace(entry, agent_id=made.kind.agent_id or ""))
            made = changed(made, payment_id=entry.id, payer=PAYER)
            clock.move(1)
            state = PaymentState(str(step["payment"]))
            moved = await moved_on(ledger, entry, state)
            assert moved is not None
            if state is PaymentState.SETTLED:
                assert await ledger.move(entry, state) is None  # from an old reading
                assert await ledger.move(moved, PaymentState.DELIVERED) is not None
            model.of_state(state).append(moved)
        if number % 4:  # callers who come again share their kind
            made.kind = kinds.setdefault(astuple(made.kind), made.kind)
        batch.append(made)
        model.calls.append(made)
        if number % 3 == 2:
            await store.add(batch)
            batch = []
    await store.add(batch) if batch else None


async def check(database: Database, model: Model) -> None:
    store = SqlAnalyticsStore(database)
    today = day_of(START) + 1
    for who in OPERATORS:
        calls, settled = model.of(who)
        stats = await store.stats(who, today)
        assert stats.total == model.counted(calls, settled)
        assert stats.today == model.counted(
            [c for c in calls if day_of(c.at) == today],
            [e for e in settled if day_of(e.settled_at) == today],
        )
        assert stats.agents == len(model.agents(who))
        assert stats.funnel.asked == sum(c.status == 402 for c in calls)
        assert stats.funnel.settled == len(settled)
        assert stats.funnel.failed == sum(e.operator_id == who for e in model.failed)
        assert stats.funnel.denied == sum(c.outcome == "trust_denied" for c in calls)
        assert stats.funnel.limited == sum(c.outcome == "rate_limit_exceeded" for c in calls)
        assert stats.funnel.paid == len(settled) + sum(
            e.operator_id == who for e in (*model.failed, *model.pending)
        )
        days = await store.days(who, today - 1, today + 5)
        assert sum(d.calls for d in days.values()) == len(calls)
        assert sum(d.revenue for d in days.values()) == sum(e.amount for e in settled)
        await check_agents(store, model, who)
        await check_logs(store, model, who, today)
    assert not any((await SqlRollupProof(database).differences()).values())


async def check_agents(store: SqlAnalyticsStore, model: Model, who: str) -> None:
    found, total = await store.agents(who, "spent", 50, 0)
    assert total == len(found) == len(model.agents(who))
    assert [a.counted.revenue for a in found] == sorted(
        (a.counted.revenue for a in found), reverse=True
    )
    for one in found:
        calls, settled = model.of(who, one.agent_id)
        assert one.counted == model.counted(calls, settled)
        times = [*(c.at for c in calls), *(e.settled_at for e in settled if e.settled_at)]
        assert (one.first_seen, one.last_seen) == (min(times), max(times))
        graded = sorted((c.at, n, c.kind.tier) for n, c in enumerate(calls) if c.kind.tier)
        assert one.tier == (graded[-1][2] if graded else None)
        assert one.chains == tuple(sorted({c.kind.chain for c in calls if c.kind.chain}))


async def check_logs(store: SqlAnalyticsStore, model: Model, who: str, today: int) -> None:
    calls, _ = model.of(who)
    for which in (
        LogFilter(),
        LogFilter(agent_id="7"),
        LogFilter(wrapper_id="w1"),
        LogFilter(agent_id=PAYER, wrapper_id="w2", days=1),
        LogFilter(days=2),
    ):
        first = None if which.days is None else today - which.days + 1
        expected = [
            c
            for c in calls
            if which.agent_id in {None, c.kind.agent}
            and which.wrapper_id in {None, c.kind.wrapper_id}
            and (first is None or day_of(c.at) >= first)
        ]
        got = await store.logs(who, which, first, None, 500, 0)
        assert Counter(repr(one.call) for one in got) == Counter(map(repr, expected))
        assert await store.count(who, which, first) == len(expected)
        assert [one.call.at for one in got] == sorted((c.at for c in expected), reverse=True)
    settled = {e.id: e.amount for e in model.settled if e.operator_id == who}
    shown = await store.logs(who, LogFilter(), None, None, 500, 0)
    paid = {e.call.payment_id for e in shown if e.call.outcome != "replayed"}
    assert sum(one.charged for one in shown) == sum(v for k, v in settled.items() if k in paid)


@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(CALLS, max_size=14))
async def test_every_answer_is_what_counting_by_hand_gives(
    database: Database, steps: list[dict[str, object]]
) -> None:
    for table in (
        *("calls", "paid_responses", "payments", "call_totals", "call_days", "endpoint_totals"),
        *("endpoint_days", "agent_totals", "agent_days", "agent_chains"),
    ):
        async with database.write() as connection:
            await connection.execute(text(f"DELETE FROM {table}"))  # noqa: S608 - our own names
    model = Model()
    await play(database, steps, model)
    await check(database, model)


async def test_writers_at_once_count_every_call_and_every_agent_once(database: Database) -> None:
    """Two processes' writers, whose batches name the same agents in other orders."""
    one, two = SqlCallStore(database), SqlCallStore(database)
    agents = [f"agent {n}" for n in range(40)]

    async def write(store: SqlCallStore, names: list[str]) -> None:
        for _ in range(5):
            await store.add([call("op", "w", START, agent_id=name) for name in names])

    async with asyncio.TaskGroup() as group:
        group.create_task(write(one, agents))
        group.create_task(write(two, agents[::-1]))
    stats = await SqlAnalyticsStore(database).stats("op", day_of(START))
    assert (stats.total.calls, stats.agents) == (400, 40)
    assert not any((await SqlRollupProof(database).differences()).values())


async def test_a_batch_that_fails_counts_nothing_and_its_agents_are_new_again(
    database: Database,
) -> None:
    store = SqlCallStore(database)
    broken = call("op", "w", START, agent_id="8", path="x" * 10, method="G\0")
    with pytest.raises(Exception, match="NUL"):
        await store.add([call("op", "w", START, agent_id="7"), broken])
    await store.add([call("op", "w", START, agent_id="7")])
    stats = await SqlAnalyticsStore(database).stats("op", day_of(START))
    assert (stats.total.calls, stats.agents) == (1, 1)


async def test_a_payment_that_settles_days_later_is_revenue_of_that_day(database: Database) -> None:
    clock = FrozenClock(START)
    ledger, store = counted_ledger(database, clock), SqlAnalyticsStore(database)
    entry = await claimed(ledger, payment("op", "w", START, 2_500_000))
    held = call(
        *("op", "w", START), payment_id=entry.id, payer=PAYER, status=503,
        outcome="settlement_pending",
    )  # fmt: skip
    await SqlCallStore(database).add([held])
    pending = await moved_on(ledger, entry, PaymentState.PENDING)
    assert pending is not None
    [before] = await store.logs("op", LogFilter(), None, None, 10, 0)
    assert before.charged == 0
    assert (await store.stats("op", day_of(START))).total.revenue == 0
    clock.move(2 * 86_400)
    settled = await ledger.move(pending, PaymentState.SETTLED)
    days = await store.days("op", 0, 10**6)
    assert {day: c.revenue for day, c in days.items()} == {
        day_of(START): 0,
        day_of(START) + 2: 2_500_000,
    }
    [after] = await store.logs("op", LogFilter(), None, None, 10, 0)
    assert (after.charged, after.transaction) == (2_500_000, "0x" + "ee" * 32)
    assert settled is not None
    await ledger.move(settled, PaymentState.REVERSED)  # what was taken back was charged to nobody
    [taken] = await store.logs("op", LogFilter(), None, None, 10, 0)
    assert taken.charged == 0


async def test_money_is_shown_with_the_call_it_bought_and_with_no_other(database: Database) -> None:
    clock = FrozenClock(START)
    ledger, store = counted_ledger(database, clock), SqlAnalyticsStore(database)
    entry = await claimed(ledger, payment("op", "w", START, 10))
    await ledger.move(entry, PaymentState.SETTLED)
    paid = {"payment_id": entry.id, "payer": PAYER}
    tries = [
        call("op", "w", START, status=502, outcome="wrapper_request_failed", **paid),
        call("op", "w", START, status=200, **paid),
        call("op", "w", START, status=200, outcome="replayed", **paid),
    ]
    await SqlCallStore(database).add(tries)
    found = await store.logs("op", LogFilter(), None, None, 10, 0)
    assert [one.charged for one in found] == [0, 10, 0]


async def test_money_is_shown_though_another_sellers_call_with_it_is_logged_later(
    database: Database,
) -> None:
    clock = FrozenClock(START)
    ledger, store = counted_ledger(database, clock), SqlAnalyticsStore(database)
    entry = await claimed(ledger, payment("op", "w", START, 10))
    await ledger.move(entry, PaymentState.SETTLED)
    paid = {"payment_id": entry.id, "payer": PAYER}
    await SqlCallStore(database).add([call("op", "w", START, status=200, **paid)])
    await SqlCallStore(database).add([call("other", "v", START, status=502, **paid)])
    found = await store.logs("op", LogFilter(), None, None, 10, 0)
    assert [one.charged for one in found] == [10]
    others = await store.logs("other", LogFilter(), None, None, 10, 0)
    assert [one.charged for one in others] == [0]


async def test_a_rebuild_mends_whatever_was_wrong(database: Database) -> None:
    store, proof = SqlCallStore(database), SqlRollupProof(database)
    await store.add([call("op", "w", START, agent_id=a) for a in ("7", "8", "7")])
    async with database.write() as connection:
        await connection.execute(text("UPDATE call_days SET calls = calls + 1"))
        await connection.execute(text("DELETE FROM agent_totals WHERE agent_id = '8'"))
    found = await proof.rebuild()
    assert {table for table, wrong in found.items() if wrong} == {"call_days", "agent_totals"}
    assert not any((await proof.differences()).values())
    stats = await SqlAnalyticsStore(database).stats("op", day_of(START))
    assert stats.total.calls == 3


async def test_pages_neither_repeat_nor_miss_a_call_while_others_are_logged(
    database: Database,
) -> None:
    store, pages = SqlCallStore(database), SqlAnalyticsStore(database)
    # Several of one microsecond, for the number to tell apart.
    first = [call("op", "w", START + timedelta(microseconds=n // 4)) for n in range(30)]
    await store.add(first)
    seen: list[int] = []
    before = None
    while page := await pages.logs("op", LogFilter(), None, before, 7, 0):
        seen += [one.id for one in page]
        before = await pages.position("op", page[-1].id)
        await store.add([call("op", "w", START + timedelta(seconds=1))])
    assert len(seen) == len(set(seen)) == 30


async def test_a_call_of_another_operator_has_no_position(database: Database) -> None:
    await SqlCallStore(database).add([call("op", "w", START)])
    store = SqlAnalyticsStore(database)
    [mine] = await store.logs("op", LogFilter(), None, None, 10, 0)
    assert await store.position("op", mine.id) is not None
    assert await store.position("other", mine.id) is None
    assert await store.position("op", "01a201e4-09d0-7692-b3f6-737951fd1d3b") is None


async def test_a_call_and_its_money_are_of_one_agent_whoever_pays(database: Database) -> None:
    clock = FrozenClock(START)
    ledger = counted_ledger(database, clock)
    entry = await claimed(ledger, payment("op", "w", START, 5, agent_id="7"))
    await ledger.move(entry, PaymentState.SETTLED)
    made = call("op", "w", START, agent_id="7", payer=PAYER, payment_id=entry.id)
    await SqlCallStore(database).add([made])
    found, total = await SqlAnalyticsStore(database).agents("op", "calls", 10, 0)
    assert [(a.agent_id, a.counted.calls, a.counted.revenue) for a in found] == [("7", 1, 5)]
    assert total == 1


async def test_a_check_sees_one_moment_and_holds_up_nobody_who_writes(database: Database) -> None:
    store, proof = SqlCallStore(database), SqlRollupProof(database)
    await store.add([call("op", "w", START, agent_id="7")])
    count = text("SELECT COUNT(*) FROM calls")
    async with database.snapshot(10) as connection:
        await connection.execute(text("CREATE TEMPORARY TABLE cells AS SELECT * FROM calls"))
        async with asyncio.timeout(5):
            await store.add([call("op", "w", START, agent_id="8")])
        assert (await connection.execute(count)).scalar_one() == 1
        await connection.execute(text("DROP TABLE cells"))
    async with asyncio.TaskGroup() as group:
        checks = [group.create_task(proof.differences()) for _ in range(4)]
        for n in range(20):
            await store.add([call("op", "w", START, agent_id=str(n))])
    assert not any(wrong for check in checks for wrong in check.result().values())
    assert not any((await proof.differences()).values())


async def test_a_check_that_is_cut_off_leaves_nothing_behind(database: Database) -> None:
    proof = SqlRollupProof(database)
    await SqlCallStore(database).add([call("op", "w", START, agent_id="7")] * 500)
    for n in range(8):
        check = asyncio.ensure_future(proof.differences())
        await asyncio.sleep(0.004 * n)
        check.cancel()
        await asyncio.wait([check])
    assert not any((await proof.differences()).values())
    assert not any((await proof.rebuild()).values())
