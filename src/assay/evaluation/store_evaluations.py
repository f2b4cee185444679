"""Stores evaluations with their evidence, and the chains of snapshots, in SQL."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import RowMapping, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.db.engine import USE_S, Database, from_us, to_us
from assay.db.schema.everything import evaluations, removed_snapshots, snapshots
from assay.evaluation.model import (
    FIRST_PREVIOUS_HASH,
    Cap,
    Evaluation,
    EvaluationChange,
    Evidence,
    Grade,
    SignalName,
    SignalResult,
    SignalScore,
    Snapshot,
)
from assay.evaluation.store_control_records import ControlRecords
from assay.evaluation.store_visits import add_visit
from assay.evaluation.visits import VisitRecord

OnStored: TypeAlias = Callable[
    [AsyncConnection, Evaluation, Snapshot, EvaluationChange], Awaitable[None]
]
"""Runs inside the transaction that stores an evaluation, and only writes; the snapshot is the
stored one."""


class SqlEvaluationStore:
    """Stores evaluations in SQL; implements `evaluation.ports.EvaluationStore`."""

    def __init__(
        self,
        database: Database,
        on_stored: OnStored | None = None,
        control: ControlRecords | None = None,
    ) -> None:
        self._database = database
        self._on_stored = on_stored
        self._control = control

    async def add(
        self, evaluation: Evaluation, snapshot: Snapshot, visit: VisitRecord | None = None
    ) -> Snapshot:
        async with self._database.write() as connection:
            await self._database.lock(connection, evaluation.subject_key)
            last = await _last(connection, evaluation.subject_key)
            previous = FIRST_PREVIOUS_HASH if last is None else last["snapshot_hash"]
            stored = replace(snapshot, previous_hash=previous)
            await connection.execute(insert(evaluations).values(_evaluation_row(evaluation)))
            await connection.execute(insert(snapshots).values(_snapshot_row(stored)))
            if visit is not None:
                await add_visit(connection, visit)
            if self._on_stored is not None:
                before = await _tier_before(connection, last)
                drift = () if visit is None else visit.silent_changes
                await self._on_stored(
                    connection, evaluation, stored, EvaluationChange(before, drift)
                )
            if self._control is not None:
                await self._control.put(connection, evaluation)
        return stored

    async def newest(self, subject_key: str, since: datetime) -> Evaluation | None:
        statement = (
            select(evaluations)
            .where(evaluations.c.subject_key == subject_key)
            .where(evaluations.c.evaluated_us >= to_us(since))
            .order_by(evaluations.c.evaluated_us.desc(), evaluations.c.id.desc())
            .limit(1)
        )
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else _evaluation(row)

    async def newest_snapshot(self, subject_key: str) -> Snapshot | None:
        async with self._database.read() as connection:
            row = await _last(connection, subject_key)
        return None if row is None else _snapshot(row)

    async def history(self, after: int, at_most: int) -> Sequence[tuple[int, Evaluation, Snapshot]]:
        newer = (
            select(snapshots)
            .where(snapshots.c.seq > after)
            .order_by(snapshots.c.seq)
            .limit(at_most)
        )
        # Old rows may be removed meanwhile.
        async with self._database.snapshot(USE_S) as connection:
            links = (await connection.execute(newer)).mappings().all()
            ids = [link["evaluation_id"] for link in links]
            found = await connection.execute(select(evaluations).where(evaluations.c.id.in_(ids)))
            by_id = {row["id"]: _evaluation(row) for row in found.mappings()}
        return [(row["seq"], by_id[row["evaluation_id"]], _snapshot(row)) for row in links]

    async def is_oldest(self, snapshot: Snapshot) -> bool:
        gone, there = removed_snapshots.c, snapshots.c
        removed = select(gone.snapshot_hash).where(gone.subject_key == snapshot.subject_key)
        oldest = select(there.id).where(there.subject_key == snapshot.subject_key)
        itself = select(there.seq).where(there.id == snapshot.id)
        async with self._database.snapshot(USE_S) as connection:
            is_gone = (await connection.execute(itself)).first() is None
            first = (await connection.execute(oldest.order_by(there.seq).limit(1))).scalar()
            last = (await connection.execute(removed)).scalar_one_or_none()
        return is_gone or (first == snapshot.id and last == snapshot.previous_hash)


async def _last(connection: AsyncConnection, subject_key: str) -> RowMapping | None:
    statement = (
        select(snapshots)
        .where(snapshots.c.subject_key == subject_key)
        .order_by(snapshots.c.seq.desc())
        .limit(1)
    )
    return (await connection.execute(statement)).mappings().one_or_none()


async def _tier_before(connection: AsyncConnection, last: RowMapping | None) -> str | None:
    """Return the tier of the evaluation that the last snapshot belongs to."""
    if last is None:
        return None
    statement = select(evaluations.c.tier).where(evaluations.c.id == last["evaluation_id"])
    return (await connection.execute(statement)).scalar_one_or_none()


def _evaluation_row(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "id": evaluation.id,
        "subject_key": evaluation.subject_key,
        "chain": evaluation.chain,
        "agent_id": evaluation.agent_id,
        "wallet": evaluation.wallet,
        "collected": json.dumps([asdict(c) for c in evaluation.collected]),
        "unavailable": json.dumps(dict(evaluation.unavailable)),
        "score": evaluation.score,
        "tier": evaluation.grade.tier,
        "risk_level": evaluation.grade.risk_level,
        "route": evaluation.grade.route,
        "evaluated_us": to_us(evaluation.evaluated_at),
        "rung": evaluation.rung,
        "policy": None if evaluation.policy is None else json.dumps(evaluation.policy),
    }


def _evaluation(row: RowMapping) -> Evaluation:
    unavailable = json.loads(row["unavailable"])
    return Evaluation(
        id=row["id"],
        subject_key=row["subject_key"],
        chain=row["chain"],
        agent_id=row["agent_id"],
        wallet=row["wallet"],
        collected=tuple(_collected(c) for c in json.loads(row["collected"])),
        unavailable={SignalName(name): reason for name, reason in unavailable.items()},
        score=row["score"],
        grade=Grade(row["tier"], row["risk_level"], row["route"]),
        evaluated_at=from_us(row["evaluated_us"]),
        rung=row["rung"],
        policy=None if row["policy"] is None else json.loads(row["policy"]),
    )


def _collected(stored: dict[str, Any]) -> SignalResult:
    return SignalResult(
        SignalName(stored["signal"]), Evidence(**stored["evidence"]), _weighed(stored["weighed"])
    )


def _weighed(stored: dict[str, Any]) -> SignalScore:
    """Read a score; rows older than the ladder have neither bounds nor checks."""
    low, high = stored.get("low"), stored.get("high")
    return SignalScore(
        value=stored["value"],
        confidence=stored["confidence"],
        reasons=tuple(stored["reasons"]),
        cap=None if stored["cap"] is None else Cap(**stored["cap"]),
        low=None if low is None else _weighed(low),
        high=None if high is None else _weighed(high),
        checks=stored.get("checks", {}),
    )


def _snapshot_row(snapshot: Snapshot) -> dict[str, Any]:
    row = asdict(snapshot)
    row["taken_us"] = to_us(row.pop("taken_at"))
    return row


def _snapshot(row: RowMapping) -> Snapshot:
    return Snapshot(
        id=row["id"],
        evaluation_id=row["evaluation_id"],
        subject_key=row["subject_key"],
        agent_id=row["agent_id"],
        snapshot_hash=row["snapshot_hash"],
        previous_hash=row["previous_hash"],
        encrypted_data_uri=row["encrypted_data_uri"],
        interaction_count=row["interaction_count"],
        taken_at=from_us(row["taken_us"]),
        evidence_hash=row["evidence_hash"],
        record=row["record"],
    )
