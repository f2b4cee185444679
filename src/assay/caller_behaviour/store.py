"""Scenario runs and observations at wrappers in SQL.

Stores scenario runs in SQL.
"""

import json
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import RowMapping, func, insert, select, update

from assay.caller_behaviour.observations import DailyTally
from assay.caller_behaviour.scenario import ScenarioCall
from assay.caller_behaviour.scenario_run import RecordedCall, Run
from assay.common.json import JsonObject
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import course_calls, course_runs, wrapper_conduct
from assay.db.sql_transaction import SqlTransaction, places

_ADD = (
    "INSERT INTO wrapper_conduct (address, day, calls, limited, early, error_run)"
    " VALUES ({}) ON CONFLICT (address, day) DO UPDATE SET"
    " calls = wrapper_conduct.calls + excluded.calls,"
    " limited = wrapper_conduct.limited + excluded.limited,"
    " early = wrapper_conduct.early + excluded.early,"
    " error_run = CASE WHEN excluded.error_run > wrapper_conduct.error_run"
    " THEN excluded.error_run ELSE wrapper_conduct.error_run END"
)


class SqlConductStore:
    """Stores counts in SQL; implements `caller_behaviour.observations.ObservationStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._add = _ADD.format(places(database.kind, 6))

    async def add(self, counts: Sequence[tuple[str, str, DailyTally]]) -> None:
        """Add counts in one fixed order, so that two processes cannot deadlock."""
        rows = [
            (address, day, tally.calls, tally.limited, tally.early, tally.error_run)
            for address, day, tally in sorted(counts, key=lambda row: row[:2])
        ]

        async def work(transaction: SqlTransaction) -> None:
            await transaction.connection.exec_driver_sql(self._add, rows)

        await self._database.change(work)

    async def total(self, addresses: Sequence[str], since_day: str) -> DailyTally:
        columns = wrapper_conduct.c
        statement = (
            select(
                func.coalesce(func.sum(columns.calls), 0),
                func.coalesce(func.sum(columns.limited), 0),
                func.coalesce(func.sum(columns.early), 0),
                func.coalesce(func.max(columns.error_run), 0),
            )
            .where(columns.address.in_(addresses))
            .where(columns.day >= since_day)
        )
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).one()
        return DailyTally(*(int(value) for value in row))


class SqlCourseStore:
    """Stores runs in SQL; implements `caller_behaviour.scenario_run.ScenarioRunStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, run: Run) -> None:
        values = {
            "id": run.id,
            "address": run.address,
            "seed": run.seed,
            "steps": json.dumps(run.steps),
            "begun_us": to_us(run.begun_at),
            "finished_us": None,
            "at_step": run.at_step,
            "seen": None,
        }
        async with self._database.write() as connection:
            await connection.execute(insert(course_runs).values(values))

    async def find(self, run_id: str) -> Run | None:
        statement = select(course_runs).where(course_runs.c.id == run_id)
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else _run(row)

    async def calls(self, run_id: str) -> Sequence[RecordedCall]:
        statement = (
            select(course_calls).where(course_calls.c.run_id == run_id).order_by(course_calls.c.seq)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [
            RecordedCall(
                row["id"],
                row["step"],
                ScenarioCall(row["at_ms"], row["ended_ms"], row["trail"], json.loads(row["facts"])),
            )
            for row in rows
        ]

    async def note(self, run: Run, kept: RecordedCall) -> None:
        values = {
            "id": kept.id,
            "run_id": run.id,
            "step": kept.step,
            "at_ms": kept.call.at_ms,
            "ended_ms": None,
            "trail": kept.call.trail,
            "facts": json.dumps(kept.call.facts),
        }
        further = (
            update(course_runs)
            .where(course_runs.c.id == run.id, course_runs.c.at_step < run.at_step)
            .values(at_step=run.at_step)
        )
        async with self._database.write() as connection:
            await connection.execute(insert(course_calls).values(values))
            await connection.execute(further)

    async def ended(self, call_id: str, ended_ms: int) -> None:
        statement = (
            update(course_calls).where(course_calls.c.id == call_id).values(ended_ms=ended_ms)
        )
        async with self._database.write() as connection:
            await connection.execute(statement)

    async def finish(self, run_id: str, at: datetime, seen: JsonObject) -> None:
        statement = (
            update(course_runs)
            .where(course_runs.c.id == run_id, course_runs.c.finished_us.is_(None))
            .values(finished_us=to_us(at), seen=json.dumps(seen))
        )
        async with self._database.write() as connection:
            await connection.execute(statement)

    async def finished(
        self, addresses: Sequence[str], since: datetime, limit: int
    ) -> Sequence[tuple[Run, JsonObject]]:
        statement = (
            select(course_runs)
            .where(course_runs.c.address.in_(addresses))
            .where(course_runs.c.finished_us >= to_us(since))
            .order_by(course_runs.c.finished_us.desc())
            .limit(limit)
        )
        async with self._database.read() as connection:
            found = (await connection.execute(statement)).mappings().all()
        return [(_run(row), json.loads(row["seen"] or "{}")) for row in found]

    async def newest(self, addresses: Sequence[str], since: datetime) -> JsonObject | None:
        statement = (
            select(course_runs.c.seen)
            .where(course_runs.c.address.in_(addresses))
            .where(course_runs.c.finished_us >= to_us(since))
            .order_by(course_runs.c.finished_us.desc())
            .limit(1)
        )
        async with self._database.read() as connection:
            seen = (await connection.execute(statement)).scalar_one_or_none()
        return None if seen is None else json.loads(seen)


def _run(row: RowMapping) -> Run:
    finished = row["finished_us"]
    return Run(
        id=row["id"],
        address=row["address"],
        seed=row["seed"],
        steps=tuple(json.loads(row["steps"])),
        begun_at=from_us(row["begun_us"]),
        finished_at=None if finished is None else from_us(finished),
        at_step=row["at_step"],
    )
