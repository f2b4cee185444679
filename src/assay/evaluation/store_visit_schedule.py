"""Stores the schedule of visits in SQL: one lease a visit, over all processes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import RowMapping, Update, case, delete, func, select, union_all, update
from sqlalchemy.dialects.postgresql import insert as pg_insert
from sqlalchemy.dialects.sqlite import insert as lite_insert
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.common.clock import Clock
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import host_visits, service_credentials, visit_schedule, visits
from assay.evaluation.schedule import (
    ASKED_FOR,
    ENROLLED,
    REST,
    Chance,
    DueVisit,
    ScheduleEvidence,
    VisitPlan,
    choose,
    prepared,
    replan,
)
from assay.evaluation.store_visit_requests import rank_of
from assay.evaluation.visits import WINDOW
from assay.registries.subject import Subject

DAY_S = 86_400
CANDIDATES: Final = 64
"""Due visits read at a time, of agents with and without proven control each, so that many of one
kind cannot hide the other."""

_S = visit_schedule.c


class SqlVisitSchedule:
    """Stores the schedule in SQL; implements `evaluation.schedule.PlansVisits` and leases."""

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

    async def lease(self, per_host: int, at_most: int, lease_s: float) -> list[DueVisit]:
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
            chosen, full = choose(due, used, per_host, at_most)
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

    async def remove_idle(self, before: datetime, at_most: int) -> int:
        """Delete agents of the last rank that no caller requested since then; return how many."""
        idle = (
            select(_S.subject_key)
            .where(_S.rank == REST, _S.asked_us < to_us(before))
            .limit(at_most)
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
