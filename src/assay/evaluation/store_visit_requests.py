"""Stores requests for visits in SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Update, case, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import operators, visit_requests, visit_schedule
from assay.evaluation.enrolment import EnrolmentHolder, VisitRequest
from assay.evaluation.schedule import ASKED_FOR, ENROLLED, REST
from assay.registries.subject import Subject

OPERATORS_NEEDED: Final = 2
"""Unrelated operators that must request an agent before it is visited for them."""

_R = visit_requests.c
_S = visit_schedule.c
_ACCOUNT = ("operator", "seller", "gate")


class SqlVisitRequests:
    """Stores requests in SQL; implements `evaluation.enrolment.VisitRequests`."""

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

    async def remove_gates(self, before: datetime, at_most: int) -> int:
        """Remove gates' requests from before then, and rank their agents again; return how many."""
        old = (
            select(_R.holder, _R.subject_key)
            .where(_R.kind == "gate", _R.created_us < to_us(before))
            .limit(at_most)
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
