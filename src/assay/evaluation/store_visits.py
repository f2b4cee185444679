"""Stores visits to agents in SQL, with the evaluation they belong to."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, delete, insert, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import agent_identities, host_visits, visits
from assay.evaluation.visits import CRITICAL_MAX, SCHEDULED_MAX, TRIGGERED_MAX, VisitRecord

DAY_S = 86_400


class SqlVisitStore:
    """Stores visits in SQL; implements `evaluation.visits.VisitStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recent(self, subject_key: str, since: datetime) -> Sequence[VisitRecord]:
        wanted = (
            (visits.c.timing == "scheduled", SCHEDULED_MAX),
            (visits.c.timing == "triggered", TRIGGERED_MAX),
            (visits.c.is_critical == 1, CRITICAL_MAX),
        )
        parts = [
            select(visits.c.seq)
            .where(visits.c.subject_key == subject_key, visits.c.at_us >= to_us(since), kind)
            .order_by(visits.c.at_us.desc(), visits.c.seq.desc())
            .limit(at_most)
            .subquery()
            for kind, at_most in wanted
        ]
        found = union(*(select(part.c.seq) for part in parts))
        statement = (
            select(visits).where(visits.c.seq.in_(found)).order_by(visits.c.at_us, visits.c.seq)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_record(row) for row in rows]

    async def of_group(self, group: str, exclude: str, since: datetime) -> VisitRecord | None:
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

    async def remove(self, before: datetime, at_most: int) -> int:
        """Remove visits from before then, and equally old counts of hosts; return how many rows."""
        old = select(visits.c.seq).where(visits.c.at_us < to_us(before)).limit(at_most)
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
