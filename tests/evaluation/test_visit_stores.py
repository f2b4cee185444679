"""Visits, the schedule and those who ask, against every database."""

import json
import random
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import insert, select

from assay.common.ids import new_id
from assay.control.proofs import KEPT_S, HostFiles
from assay.db.engine import Database, to_us
from assay.db.schema.everything import (
    operators,
    visit_schedule,
    visits,
    webhook_agents,
    webhook_deliveries,
    webhooks,
)
from assay.evaluation.history import pool
from assay.evaluation.model import Grade
from assay.evaluation.schedule import (
    AGENTS_MAX,
    EnrolmentHolder,
    EnrolmentLimitReached,
    Enrolments,
    NamedFirst,
    ScheduleEvidence,
)
from assay.evaluation.store_evaluations import SqlEvaluationStore
from assay.evaluation.store_visits import (
    SqlVisitRequests,
    SqlVisitSchedule,
    SqlVisitStore,
    add_visit,
)
from assay.evaluation.visits import (
    CRITICAL_MAX,
    SCHEDULED_MAX,
    TRIGGERED,
    TRIGGERED_MAX,
    WINDOW,
    EvaluationRequest,
    VisitRecord,
)
from assay.net.egress.ports import Failure
from assay.registries.model import Service, Subject
from assay.webhooks.model import EVENTS
from assay.webhooks.service import EVERY_AGENT
from assay.webhooks.store_outbox import WebhookOutbox
from tests.evaluation.test_stores_evaluations import evaluation, snapshot
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.control import FILE, Hosts, naming
from tests.support.fakes.trust import NETWORK, OWNER, WALLET, onchain_agent

HOST = "crowded.example"


def subject(agent_id: str = "7") -> Subject:
    return Subject(NETWORK, agent_id, WALLET, onchain_agent(agent_id))


def visit(key: str, at: object, **more: object) -> VisitRecord:
    return VisitRecord(key, at, "triggered", **more)  # type: ignore[arg-type]


class Schedules:
    """Two processes on one database, and a clock for both."""

    def __init__(self, database: Database) -> None:
        self.clock, self.database = FrozenClock(), database
        chance = random.Random("schedule").random
        self.first = SqlVisitSchedule(database, self.clock, chance)
        self.second = SqlVisitSchedule(database, self.clock, chance)
        self.enrolments = Enrolments(SqlVisitRequests(database), self.clock, chance)

    async def seen(self, agent_id: str = "7", **more: object) -> None:
        made = ScheduleEvidence(HOST, has_control=False, asked=TRIGGERED)
        await self.first.plan(subject(agent_id), replace(made, **more))  # type: ignore[arg-type]

    async def flood(self, count: int, host: str, *, control: int = 0) -> None:
        now_us = to_us(self.clock.now())
        row = {
            "chain": NETWORK.slug,
            "host": host,
            "has_control": control,
            "rank": 3,
            "reason": "unfinished",
            "due_us": now_us - 1,
            "planned_us": now_us - 1,
            "confirms": 0,
            "tries": 0,
            "visited_us": 0,
            "asked_us": now_us,
            "lease_us": 0,
        }
        rows = [{**row, "subject_key": f"{host}/{n}", "agent_id": str(n)} for n in range(count)]
        async with self.database.write(120) as connection:
            for start in range(0, count, 1000):
                await connection.execute(insert(visit_schedule), rows[start : start + 1000])


async def test_a_visit_is_stored_with_its_evaluation_and_read_back(database: Database) -> None:
    one = evaluation()
    made = VisitRecord(
        one.subject_key,
        one.evaluated_at,
        "scheduled",
        label="unannounced",
        outcomes={"answers": "passed", "leaks": "failed"},
        critical=("leaks",),
        states={"https://a.example": "functional"},
        fingerprints={"card https://a.example": "aa"},
        facts={"payees": {"u": ["0xa"]}},
        silent_changes=("payee",),
        rung=2,
    )
    await SqlEvaluationStore(database).add(one, snapshot(one), made)
    store = SqlVisitStore(database)
    assert await store.recent(one.subject_key, one.evaluated_at) == [made]
    assert await store.recent(one.subject_key, one.evaluated_at + timedelta(seconds=1)) == []
    assert await store.recent("eip155:1/8", one.evaluated_at) == []


async def test_triggers_displace_neither_scheduled_visits_nor_critical_findings(
    database: Database,
) -> None:
    clock = FrozenClock()
    async with database.write() as connection:
        await add_visit(
            connection, visit("a/7", clock.now(), critical=("leaks",), outcomes={"leaks": "failed"})
        )
        for number in range(TRIGGERED_MAX + 20):
            at = clock.now() + timedelta(hours=1 + number)
            await add_visit(connection, visit("a/7", at, outcomes={"leaks": "passed"}))
    found = await SqlVisitStore(database).recent("a/7", clock.now())
    assert len(found) == TRIGGERED_MAX + 1
    assert len(found) <= SCHEDULED_MAX + TRIGGERED_MAX + CRITICAL_MAX
    assert pool(found, clock.now()).open_critical == ("leaks",)


async def test_visits_leave_with_the_window(database: Database) -> None:
    clock, store = FrozenClock(), SqlVisitStore(database)
    async with database.write() as connection:
        for days in (0, 1, 100):
            await add_visit(connection, visit("a/7", clock.now() + timedelta(days=days)))
    clock.move(100 * 86_400)
    assert await store.remove(clock.now() - WINDOW, 1) == 1
    assert await store.remove(clock.now() - WINDOW, 10) == 1
    assert await store.remove(clock.now() - WINDOW, 10) == 0
    async with database.read() as connection:
        assert len((await connection.execute(select(visits))).all()) == 1


async def test_a_due_visit_is_one_process_s(database: Database) -> None:
    both = Schedules(database)
    await both.seen(pending="unfinished")
    assert await both.first.lease(100, 10, 60) == []
    both.clock.move(600)
    [due] = await both.first.lease(100, 10, 60)
    assert (due.subject_key, due.asked) == (
        subject().key,
        EvaluationRequest("triggered", is_background=True),
    )
    assert await both.second.lease(100, 10, 60) == []
    both.clock.move(61)  # that process died
    assert len(await both.second.lease(100, 10, 60)) == 1


async def test_an_owner_enrols_three_and_an_operator_a_thousand(database: Database) -> None:
    both = Schedules(database)
    owner = EnrolmentHolder("owner", OWNER)
    for number in range(AGENTS_MAX["owner"]):
        await both.enrolments.enrol(owner, subject(str(number)))
        await both.enrolments.enrol(owner, subject(str(number)))  # once is enough
    try:
        await both.enrolments.enrol(owner, subject("9"))
    except EnrolmentLimitReached:
        pass
    else:
        raise AssertionError
    assert [one.agent_id for one in await both.enrolments.list(owner)] == ["0", "1", "2"]
    plan = await both.first.find(subject("0").key)
    assert plan is not None
    assert plan.rank == 1
    assert timedelta(minutes=10) <= plan.due - both.clock.now() <= timedelta(hours=24)
    await both.enrolments.withdraw(owner, subject("0").key)
    plan = await both.first.find(subject("0").key)
    assert plan is not None
    assert plan.rank == 3
    await both.enrolments.enrol(owner, subject("9"))


async def test_two_unrelated_operators_count_and_accounts_of_one_origin_do_not(
    database: Database,
) -> None:
    both = Schedules(database)
    names = {origin: await add_operator(database, origin) for origin in ("a", "a2", "b")}
    for name, rank in (("a", 3), ("a2", 3), ("b", 2)):
        await both.enrolments.enrol(EnrolmentHolder("operator", names[name]), subject())
        plan = await both.first.find(subject().key)
        assert plan is not None
        assert plan.rank == rank
    await both.enrolments.enrol(EnrolmentHolder("seller", names["a"]), subject("8"))
    plan = await both.first.find(subject("8").key)
    assert plan is not None
    assert plan.rank == 2


async def add_operator(database: Database, origin: str) -> str:
    row = {
        "id": new_id(),
        "email": f"{origin}@example.com",
        "email_lower": f"{origin}@example.com",
        "name": "Op",
        "password_hash": "x",
        "role": "operator",
        "plan": "free",
        "fee_rate": "0.00",
        "created_us": 1,
        "updated_us": 1,
        "sign_up_origin": origin[0],
    }
    names = {column.name for column in operators.c}
    async with database.write() as connection:
        await connection.execute(insert(operators).values({k: row[k] for k in row if k in names}))
    return str(row["id"])


async def test_a_proven_agent_ends_within_a_day_beside_ten_thousand_ids_at_its_host(
    database: Database,
) -> None:
    """A host has 40 visits a day; whatever comes first, the agent's turn is not theirs."""
    both = Schedules(database)
    await both.flood(10_000, HOST)
    await both.seen(has_control=True, pending="waiting_for_budget")
    made: list[str] = []
    for _ in range(24 * 2):
        both.clock.move(1800)
        for due in await both.first.lease(40, 4, 600):
            made.append(due.subject_key)
            if due.subject_key != subject().key:
                await both.first.put_off(due.subject_key, 3600)
        if made[-1:] == [subject().key]:
            break
    assert subject().key in made
    assert len(made) - 1 <= 2 * 4  # a tenth of 40, on each of two days


def calling(agent_id: str = "7") -> Subject:
    """An agent that declares a service."""
    made = onchain_agent(agent_id)
    assert made.registration is not None
    file = replace(made.registration, services=(Service("A2A", "https://agent.example/a2a"),))
    return Subject(NETWORK, agent_id, WALLET, replace(made, registration=file))


async def test_an_agent_its_host_names_ends_within_a_day_beside_ten_thousand_ids_there(
    database: Database,
) -> None:
    """No visit could read its control so far: the ids have used up the host's budget.

    Its host's file is asked once in three hours, however many ids want to be first.
    """
    both = Schedules(database)
    await both.flood(10_000, HOST)
    hosts = Hosts()
    hosts.pages[f"https://agent.example{FILE}"] = naming("7")
    plans = NamedFirst(both.first, HostFiles(hosts, both.clock))
    waits = ScheduleEvidence(HOST, has_control=False, asked=TRIGGERED, pending="waiting_for_budget")
    for number in (*range(100, 120), 7):
        await plans.plan(calling(f"{number}"), waits)
    assert hosts.asked == [f"https://agent.example{FILE}"]
    made: list[str] = []
    began = both.clock.now()
    while subject().key not in made and both.clock.now() - began < timedelta(days=3):
        both.clock.move(1800)
        for due in await both.first.lease(40, 4, 600):
            made.append(due.subject_key)
            if due.subject_key != subject().key:
                await both.first.put_off(due.subject_key, 3600)
    assert both.clock.now() - began <= timedelta(hours=24)
    named = await both.first.find(subject().key)
    other = await both.first.find(subject("100").key)
    assert named is not None
    assert other is not None
    assert (named.has_control, other.has_control) == (True, False)


async def test_a_file_that_cannot_be_read_puts_nobody_first(database: Database) -> None:
    both = Schedules(database)
    hosts = Hosts()
    plans = NamedFirst(both.first, HostFiles(hosts, both.clock))
    waits = ScheduleEvidence(HOST, has_control=False, asked=TRIGGERED, pending="waiting_for_budget")
    for page in (Failure.BUDGET, Failure.TIMEOUT, b"[", {"agentWallet": OWNER}):
        hosts.pages[f"https://agent.example{FILE}"] = page
        both.clock.move(KEPT_S + 1)
        await plans.plan(calling(), waits)
        found = await both.first.find(subject().key)
        assert found is not None
        assert not found.has_control
    hosts.pages[f"https://agent.example{FILE}"] = {"agentWallet": WALLET}
    both.clock.move(KEPT_S + 1)
    await plans.plan(calling(), waits)
    found = await both.first.find(subject().key)
    assert found is not None
    assert found.has_control


async def test_a_full_host_delays_no_other_host_s_agents(database: Database) -> None:
    both = Schedules(database)
    await both.flood(500, HOST)
    await both.flood(1, "quiet.example")
    made: set[str] = set()
    for _ in range(12):
        made |= {due.host for due in await both.first.lease(40, 8, 60_000)}
    assert "quiet.example" in made


@pytest.mark.slow
async def test_an_enrolled_agent_reaches_rung_two_in_days_beside_100_000_ids(
    database: Database,
) -> None:
    """Its scheduled visits: 5 on 3 days over 7, while one process makes four visits an hour."""
    both = Schedules(database)
    await both.flood(100_000, "flood.example")
    await both.flood(200, "proven.example", control=1)
    await both.enrolments.enrol(EnrolmentHolder("owner", OWNER), subject())
    start, records = both.clock.now(), list[VisitRecord]()
    while both.clock.now() - start < timedelta(days=11):
        both.clock.move(3600)
        for due in await both.first.lease(10_000, 4, 600):
            if due.subject_key != subject().key:
                continue
            records.append(replace(visit(due.subject_key, both.clock.now()), timing="scheduled"))
            seen = ScheduleEvidence("agent.example", has_control=True, asked=due.asked)
            await both.first.plan(subject(), seen)
        await both.seen(host="agent.example", has_control=True)  # somebody asks every hour
        found = pool(records, both.clock.now())
        if found.scheduled >= 5 and found.days >= 3 and found.span_days >= 7:
            break
    assert timedelta(days=7) <= both.clock.now() - start <= timedelta(days=10)


async def test_a_changed_grade_and_drift_are_delivered_to_who_registered_for_them(
    database: Database,
) -> None:
    operator = await add_operator(database, "a")
    async with database.write() as connection:
        for event in EVENTS:
            row = {"id": event, "operator_id": operator, "event": event, "created_us": 1}
            await connection.execute(
                insert(webhooks).values(row | {"url": f"https://{event}.example/"})
            )
            await connection.execute(
                insert(webhook_agents).values(webhook_id=event, agent_id=EVERY_AGENT)
            )
    store = SqlEvaluationStore(database, WebhookOutbox(65.0).put)
    first = evaluation()
    await store.add(first, snapshot(first))
    better = replace(evaluation(), grade=Grade("BA", "YELLOW", "prod_throttled"))
    made = VisitRecord(
        first.subject_key, first.evaluated_at, "scheduled", silent_changes=("payee",)
    )
    await store.add(better, snapshot(better), made)
    async with database.read() as connection:
        rows = (
            await connection.execute(
                select(webhook_deliveries.c.payload).order_by(webhook_deliveries.c.seq)
            )
        ).scalars()
        told = [json.loads(text) for text in rows]
    assert sorted(one["event"] for one in told) == [
        "agent_drift",
        "evaluation_complete",
        "evaluation_complete",
        "grade_changed",
    ]
    by_event = {one["event"]: one for one in told}
    assert by_event["grade_changed"]["previousTier"] == "CA"
    assert by_event["agent_drift"]["changes"] == ["payee"]
