"""Stores visits, their schedule and requests for them in SQL.

Stores visits to agents in SQL, with the evaluation they belong to.

Stores requests for visits in SQL.

Stores the schedule of visits in SQL: one lease a visit, over all processes.

Stores commitments to the seeds of visits in SQL.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    RowMapping,
    Update,
    case,
    delete,
    func,
    insert,
    select,
    union,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert as pg_insert
from sqlalchemy.dialects.sqlite import insert as lite_insert
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.common.clock import Clock
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import (
    agent_identities,
    host_visits,
    operators,
    service_credentials,
    visit_requests,
    visit_schedule,
    visit_seeds,
    visits,
)
from assay.evaluation.schedule import (
    ASKED_FOR,
    ENROLLED,
    REST,
    Chance,
    DueVisit,
    EnrolmentHolder,
    ScheduleEvidence,
    VisitPlan,
    VisitRequest,
    choose,
    prepared,
    replan,
)
from assay.evaluation.visits import CRITICAL_MAX, SCHEDULED_MAX, TRIGGERED_MAX, WINDOW, VisitRecord
from assay.registries.model import Subject

DAY_S = 86_400


class SqlVisitStore:
    """Stores visits of the window, with the evaluation they belong to."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recent(self, subject_key: str, since: datetime) -> Sequence[VisitRecord]:
        """Return the newest visits of each kind not older than `since`, oldest first."""
        wanted = (
            (visits.c.timing == "scheduled", SCHEDULED_MAX),
            (visits.c.timing == "triggered", TRIGGERED_MAX),
            (visits.c.is_critical == 1, CRITICAL_MAX),
        )
        parts = [
            select(visits.c.seq)
            .where(visits.c.subject_key == subject_key, visits.c.at_us >= to_us(since), kind)
            .order_by(visits.c.at_us.desc(), visits.c.seq.desc())
            .limit(limit)
            .subquery()
            for kind, limit in wanted
        ]
        found = union(*(select(part.c.seq) for part in parts))
        statement = (
            select(visits).where(visits.c.seq.in_(found)).order_by(visits.c.at_us, visits.c.seq)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_record(row) for row in rows]

    async def of_group(self, group: str, exclude: str, since: datetime) -> VisitRecord | None:
        """Return the newest scheduled visit to another agent of the group of siblings."""
        siblings = select(agent_identities.c.subject_key).where(
            agent_identities.c.group_key == group, agent_identities.c.subject_key != exclude
        )
        statement = (
            select(visits)
            .where(visits.c.subject_key.in_(siblings), visits.c.timing == "scheduled")
            .where(visits.c.at_us >= to_us(since))
            # A shared visit keeps its time, but has a later number.
            .order_by(visits.c.at_us.desc(), visits.c.seq)
            .limit(1)
        )
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else _record(row)

    async def remove(self, before: datetime, limit: int) -> int:
        """Remove visits from before then, and equally old counts of hosts; return how many rows."""
        old = select(visits.c.seq).where(visits.c.at_us < to_us(before)).limit(limit)
        day = int(before.timestamp()) // DAY_S
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of visits")
            removed = await connection.execute(delete(visits).where(visits.c.seq.in_(old)))
            await connection.execute(delete(host_visits).where(host_visits.c.day < day))
            return removed.rowcount


async def add_visit(connection: AsyncConnection, visit: VisitRecord) -> None:
    """Store a visit within the caller's transaction."""
    seen = {
        "outcomes": dict(visit.outcomes),
        "critical": list(visit.critical),
        "states": dict(visit.states),
        "fingerprints": dict(visit.fingerprints),
        "facts": visit.facts,
        "silentChanges": list(visit.silent_changes),
        "findings": list(visit.findings),
        "source": visit.source,
        "calls": list(visit.calls),
        "sharedBy": visit.shared_by,
    }
    row = {
        "subject_key": visit.subject_key,
        "at_us": to_us(visit.at),
        "timing": visit.timing,
        "label": visit.label,
        "rung": visit.rung,
        "is_critical": int(bool(visit.critical)),
        "seen": json.dumps(seen),
    }
    await connection.execute(insert(visits).values(row))


def _record(row: RowMapping) -> VisitRecord:
    seen: dict[str, Any] = json.loads(row["seen"])
    return VisitRecord(
        subject_key=row["subject_key"],
        at=from_us(row["at_us"]),
        timing=row["timing"],
        label=row["label"],
        outcomes=seen["outcomes"],
        critical=tuple(seen["critical"]),
        states=seen["states"],
        fingerprints=seen["fingerprints"],
        facts=seen["facts"],
        silent_changes=tuple(seen["silentChanges"]),
        rung=row["rung"],
        findings=tuple(seen.get("findings", ())),
        source=seen.get("source", ""),
        calls=tuple(seen.get("calls", (0, 0))),
        shared_by=seen.get("sharedBy", ""),
    )


OPERATORS_NEEDED: Final = 2
"""Unrelated operators that must request an agent before it is visited for them."""

_R = visit_requests.c
_S = visit_schedule.c
_ACCOUNT = ("operator", "seller", "gate")


class SqlVisitRequests:
    """Stores requests in SQL; implements `evaluation.schedule.VisitRequests`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, holder: EnrolmentHolder, subject: Subject, now: datetime, due: datetime, limit: int
    ) -> bool:
        row = {
            "kind": holder.kind,
            "holder": holder.name,
            "subject_key": subject.key,
            "chain": subject.network.slug,
            "agent_id": subject.agent_id,
            "created_us": to_us(now),
        }
        kinds = _ACCOUNT if holder.kind in _ACCOUNT else (holder.kind,)
        mine = select(_R.kind, _R.subject_key).where(_R.kind.in_(kinds), _R.holder == holder.name)
        async with self._database.write() as connection:
            await self._database.lock(connection, f"visits for {holder.name}")
            found = [tuple(one) for one in await connection.execute(mine)]
            if (holder.kind, subject.key) in found:
                await connection.execute(_again(holder, subject.key, now))
                return True
            if len({key for _, key in found} | {subject.key}) > limit:
                return False
            # Like the schedule's own writers: of two for one agent, the second sees the first.
            await self._database.lock(connection, f"visits of {subject.key}")
            await connection.execute(insert(visit_requests).values(row))
            await _schedule(connection, subject, now, due)
        return True

    async def remove(self, holder: EnrolmentHolder, subject_key: str) -> bool:
        wanted = [_R.kind == holder.kind, _R.subject_key == subject_key]
        if holder.kind != "owner":
            wanted.append(_R.holder == holder.name)
        async with self._database.write() as connection:
            await self._database.lock(connection, f"visits of {subject_key}")
            removed = await connection.execute(delete(visit_requests).where(*wanted))
            if removed.rowcount:
                rank = await rank_of(connection, subject_key)
                now_ranked = update(visit_schedule).where(_S.subject_key == subject_key)
                await connection.execute(now_ranked.values(rank=rank))
        return bool(removed.rowcount)

    async def remove_gates(self, before: datetime, limit: int) -> int:
        """Remove gates' requests from before then, and rank their agents again; return how many."""
        old = (
            select(_R.holder, _R.subject_key)
            .where(_R.kind == "gate", _R.created_us < to_us(before))
            .limit(limit)
        )
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of gates' askings")
            rows = (await connection.execute(old)).all()
            for row in rows:
                asked = delete(visit_requests).where(
                    _R.kind == "gate", _R.holder == row.holder, _R.subject_key == row.subject_key
                )
                await connection.execute(asked)
            for key in {row.subject_key for row in rows}:
                ranked = update(visit_schedule).where(_S.subject_key == key)
                await connection.execute(ranked.values(rank=await rank_of(connection, key)))
        return len(rows)

    async def list(self, holder: EnrolmentHolder) -> Sequence[VisitRequest]:
        statement = (
            select(visit_requests)
            .where(_R.kind == holder.kind, _R.holder == holder.name)
            .order_by(_R.created_us, _R.subject_key)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [VisitRequest(r["chain"], r["agent_id"], from_us(r["created_us"])) for r in rows]


def _again(holder: EnrolmentHolder, subject_key: str, now: datetime) -> Update:
    """Renew a request: a gate's request counts from its last call."""
    mine = (_R.kind == holder.kind, _R.holder == holder.name, _R.subject_key == subject_key)
    since = to_us(now) if holder.kind == "gate" else _R.created_us
    return update(visit_requests).where(*mine).values(created_us=since)


async def rank_of(connection: AsyncConnection, subject_key: str) -> int:
    """Return the rank by who requested it; operators that signed up at one address count as one."""
    of_subject = select(_R.kind).where(_R.subject_key == subject_key).distinct()
    kinds = set((await connection.execute(of_subject)).scalars())
    if "owner" in kinds:
        return ENROLLED
    if "seller" in kinds:
        return ASKED_FOR
    if not kinds & {"operator", "gate"}:
        return REST
    who = func.coalesce(operators.c.sign_up_origin, operators.c.id)
    statement = (
        select(func.count(who.distinct()))
        .select_from(visit_requests.join(operators, operators.c.id == _R.holder))
        .where(_R.subject_key == subject_key, _R.kind.in_(("operator", "gate")))
    )
    asking = (await connection.execute(statement)).scalar_one()
    return ASKED_FOR if asking >= OPERATORS_NEEDED else REST


async def _schedule(
    connection: AsyncConnection, subject: Subject, now: datetime, due: datetime
) -> None:
    """Set the agent's rank; it is due at `due` at the latest if a request counts."""
    rank, due_us = await rank_of(connection, subject.key), to_us(due)
    sooner = case((_S.due_us > due_us, due_us), else_=_S.due_us)
    values = {"rank": rank} | ({} if rank == REST else {"due_us": sooner, "planned_us": sooner})
    known = update(visit_schedule).where(_S.subject_key == subject.key).values(values)
    if (await connection.execute(known)).rowcount:
        return
    row = {
        "subject_key": subject.key,
        "chain": subject.network.slug,
        "agent_id": subject.agent_id,
        "host": "",
        "has_control": 0,
        "rank": rank,
        "reason": "routine",
        "due_us": due_us,
        "planned_us": due_us,
        "confirms": 0,
        "tries": 0,
        "visited_us": to_us(now),
        "asked_us": to_us(now),
        "lease_us": 0,
        "quiet_us": to_us(due),
    }
    await connection.execute(insert(visit_schedule).values(row))


CANDIDATES: Final = 64
"""Due visits read at a time, of agents with and without proven control each, so that many of one
kind cannot hide the other."""


class SqlVisitSchedule:
    """The due visits, shared by all processes."""

    def __init__(self, database: Database, clock: Clock, chance: Chance) -> None:
        self._database = database
        self._clock = clock
        self._chance = chance

    async def plan(self, subject: Subject, seen: ScheduleEvidence) -> datetime:
        async with self._database.write() as connection:
            await self._database.lock(connection, f"visits of {subject.key}")
            rank = await rank_of(connection, subject.key)
            old = await _plan(connection, subject.key)
            ranked = None if old is None else replace(old, rank=rank)
            plan = replan(ranked, seen, self._now(), self._chance)
            row: dict[str, str | int] = {
                "chain": subject.network.slug,
                "agent_id": subject.agent_id,
                **plan_row(plan),
                "rank": rank,
            }
            if seen.asked.is_background:
                row["lease_us"] = 0
            await self._upsert(connection, subject.key, row)
        return plan.due

    async def find(self, subject_key: str) -> VisitPlan | None:
        """Return an agent's plan."""
        async with self._database.read() as connection:
            return await _plan(connection, subject_key)

    async def lease(self, per_host: int, limit: int, lease_s: float) -> list[DueVisit]:
        """Return visits to make now; each is leased to this caller for `lease_s` seconds.

        Visits whose hosts had their visits of today are postponed to tomorrow. All processes
        together lease at most `per_host` visits of a host a day.
        """
        now = self._now()
        due = await self._due(now)
        if not due:
            return []
        async with self._database.write() as connection:
            await self._database.lock(connection, "visits of hosts")
            used = await _used(connection, {visit.host for visit in due}, _day(now))
            chosen, full = choose(due, used, per_host, limit)
            taken = [v for v in chosen if await _take(connection, v, now, lease_s)]
            for visit in taken:
                await self._count(connection, visit, now)
            announced = await _announced(connection, [visit.subject_key for visit in taken], now)
            for visit in full:
                tomorrow = from_us((_day(now) + 1) * DAY_S * 1_000_000)
                later = tomorrow + timedelta(days=1) * self._chance()
                await connection.execute(_due_at(visit.subject_key, later, now))
        return [replace(v, announced=announced.get(v.subject_key, 0)) for v in taken]

    async def put_off(self, subject_key: str, seconds: float) -> None:
        """Postpone a leased visit that could not be made."""
        later = self._now() + timedelta(seconds=seconds)
        values = {"due_us": to_us(later), "lease_us": 0}
        statement = update(visit_schedule).where(_S.subject_key == subject_key).values(values)
        async with self._database.write() as connection:
            await connection.execute(statement)

    async def prepared(self, subject_key: str) -> None:
        """Record that robots.txt of a leased agent's sites was read: it is visited next."""
        async with self._database.write() as connection:
            await self._database.lock(connection, f"visits of {subject_key}")
            plan = await _plan(connection, subject_key)
            if plan is not None and plan.reason == "robots":
                row = {**plan_row(prepared(plan, self._now(), self._chance)), "lease_us": 0}
                mine = update(visit_schedule).where(_S.subject_key == subject_key)
                await connection.execute(mine.values(row))

    async def drop(self, subject_key: str) -> None:
        """Remove an agent that no longer exists, with its services' credentials."""
        gone = delete(service_credentials).where(service_credentials.c.subject_key == subject_key)
        async with self._database.write() as connection:
            await connection.execute(gone)
            await connection.execute(delete(visit_schedule).where(_S.subject_key == subject_key))

    async def remove_idle(self, before: datetime, limit: int) -> int:
        """Delete agents of the last rank that no caller requested since then; return how many."""
        idle = (
            select(_S.subject_key).where(_S.rank == REST, _S.asked_us < to_us(before)).limit(limit)
        )
        statement = delete(visit_schedule).where(_S.subject_key.in_(idle))
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of the schedule")
            return (await connection.execute(statement)).rowcount

    async def _due(self, now: datetime) -> list[DueVisit]:
        """Return the first due visits of each rank and kind: a flood of one cannot hide another."""
        parts = [
            select(visit_schedule)
            .where(_S.has_control == kind, _S.rank == rank, _S.due_us <= to_us(now))
            .where(_S.lease_us <= to_us(now))
            .order_by(_S.due_us)
            .limit(CANDIDATES)
            .subquery()
            for kind in (1, 0)
            for rank in (ENROLLED, ASKED_FOR, REST)
        ]
        statement = union_all(*(select(part) for part in parts))
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_due_visit(row) for row in rows]

    async def _upsert(
        self, connection: AsyncConnection, subject_key: str, row: Mapping[str, str | int]
    ) -> None:
        insert_into = lite_insert if self._database.kind == "sqlite" else pg_insert
        whole = {"lease_us": 0, **row, "subject_key": subject_key}
        statement = insert_into(visit_schedule).values(whole)
        await connection.execute(
            statement.on_conflict_do_update(index_elements=[_S.subject_key], set_=row)
        )

    async def _count(self, connection: AsyncConnection, visit: DueVisit, now: datetime) -> None:
        if not visit.host or not visit.is_visit:
            return
        insert_into = lite_insert if self._database.kind == "sqlite" else pg_insert
        row = {
            "host": visit.host,
            "day": _day(now),
            "has_control": int(visit.has_control),
            "visits": 1,
        }
        keys = [host_visits.c.host, host_visits.c.day, host_visits.c.has_control]
        more = {"visits": host_visits.c.visits + 1}
        statement = insert_into(host_visits).values(row)
        await connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=more))

    def _now(self) -> datetime:
        return self._clock.now()


async def _plan(connection: AsyncConnection, subject_key: str) -> VisitPlan | None:
    statement = select(visit_schedule).where(_S.subject_key == subject_key)
    row = (await connection.execute(statement)).mappings().one_or_none()
    if row is None:
        return None
    return VisitPlan(
        rank=row["rank"],
        host=row["host"],
        has_control=bool(row["has_control"]),
        reason=row["reason"],
        due=from_us(row["due_us"]),
        planned=from_us(row["planned_us"]),
        confirms=row["confirms"],
        tries=row["tries"],
        visited=from_us(row["visited_us"]),
        asked=from_us(row["asked_us"]),
        quiet=from_us(row["quiet_us"]),
    )


def plan_row(plan: VisitPlan) -> dict[str, str | int]:
    """Return a plan's columns, except the subject."""
    return {
        "host": plan.host,
        "has_control": int(plan.has_control),
        "rank": plan.rank,
        "reason": plan.reason,
        "due_us": to_us(plan.due),
        "planned_us": to_us(plan.planned),
        "confirms": plan.confirms,
        "tries": plan.tries,
        "visited_us": to_us(plan.visited),
        "asked_us": to_us(plan.asked),
        "quiet_us": to_us(plan.quiet),
    }


async def _announced(
    connection: AsyncConnection, subjects: Sequence[str], now: datetime
) -> dict[str, int]:
    """Return by subject the announced scheduled visits of the window, less the unannounced."""
    rows = visits.c
    is_announced = case((rows.label == "announced", 1), else_=-1)
    statement = (
        select(rows.subject_key, func.sum(is_announced))
        .where(rows.subject_key.in_(subjects), rows.timing == "scheduled")
        .where(rows.at_us >= to_us(now - WINDOW))
        .group_by(rows.subject_key)
    )
    return {key: int(count) for key, count in (await connection.execute(statement)).all()}


async def _used(
    connection: AsyncConnection, hosts: set[str], day: int
) -> dict[tuple[str, bool], int]:
    rows = host_visits.c
    statement = select(host_visits).where(rows.day == day, rows.host.in_(sorted(hosts)))
    found = (await connection.execute(statement)).mappings()
    return {(row["host"], bool(row["has_control"])): row["visits"] for row in found}


async def _take(
    connection: AsyncConnection, visit: DueVisit, now: datetime, lease_s: float
) -> bool:
    until = to_us(now + timedelta(seconds=lease_s))
    statement = (
        update(visit_schedule)
        .where(_S.subject_key == visit.subject_key, _S.due_us == to_us(visit.due))
        .where(_S.lease_us <= to_us(now))
        .values(lease_us=until)
        .returning(_S.subject_key)
    )
    return (await connection.execute(statement)).one_or_none() is not None


def _due_at(subject_key: str, due: datetime, now: datetime) -> Update:
    return (
        update(visit_schedule)
        .where(_S.subject_key == subject_key, _S.lease_us <= to_us(now))
        .values(due_us=to_us(due), planned_us=to_us(due))
    )


def _day(now: datetime) -> int:
    return int(now.timestamp()) // DAY_S


def _due_visit(row: RowMapping) -> DueVisit:
    return DueVisit(
        subject_key=row["subject_key"],
        chain=row["chain"],
        agent_id=row["agent_id"],
        host=row["host"],
        has_control=bool(row["has_control"]),
        rank=row["rank"],
        reason=row["reason"],
        tries=row["tries"],
        visited=from_us(row["visited_us"]),
        due=from_us(row["due_us"]),
        quiet=from_us(row["quiet_us"]),
    )


_SEEDS = visit_seeds.c


class SqlSeeds:
    """Stores commitments in SQL; implements `probing.unannounced.Seeds`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def keep(self, subject_key: str, commitment: str) -> None:
        now_us = to_us(self._clock.now())
        row = {"commitment": commitment, "subject_key": subject_key, "at_us": now_us}
        async with self._database.write() as connection:
            await connection.execute(insert(visit_seeds).values(row))

    async def since(self, commitments: Sequence[str]) -> dict[str, datetime]:
        statement = select(_SEEDS.commitment, _SEEDS.at_us).where(
            _SEEDS.commitment.in_(commitments)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).all()
        return {row.commitment: from_us(row.at_us) for row in rows}

    async def remove(self, before: datetime, limit: int) -> int:
        """Remove those from before then; return how many."""
        old = select(_SEEDS.commitment).where(_SEEDS.at_us < to_us(before)).limit(limit)
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of seeds")
            gone = await connection.execute(delete(visit_seeds).where(_SEEDS.commitment.in_(old)))
            return gone.rowcount
