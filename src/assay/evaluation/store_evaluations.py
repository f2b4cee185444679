"""Stores evaluations with their evidence, and the chains of snapshots, in SQL.

Stores an evaluation's results about control, in the evaluation's own transaction.

So a crash loses neither: no evaluation with an open critical finding is left without its record.

Removes the oldest evaluations of a subject with their snapshots.

Its chain continues from the hash of the last removed snapshot. Only the oldest are removed, so the
rest is always the newest part of a chain.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from itertools import takewhile
from typing import Any, Final, TypeAlias

from sqlalchemy import RowMapping, Select, delete, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.common.json import JsonObject, is_array, is_object
from assay.control.identity import REPUTATION
from assay.control.ports import FOLLOWS_US
from assay.control.similarity import bands
from assay.db.engine import USE_S, Database, from_us, to_us
from assay.db.schema.everything import evaluations, open_findings, removed_snapshots, snapshots
from assay.evaluation.listing import AgentListing
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
from assay.evaluation.store_listing import put_listing
from assay.evaluation.store_visits import add_visit
from assay.evaluation.visits import VisitRecord

BAD_REPUTATION = 40.0
SURE = 0.5
"""A reputation below the first, with at least the second's confidence, is bad."""

KEYS_MAX = 64


_KEY = text(
    "INSERT INTO control_keys (subject_key, key, proof, disputed, seen_us)"
    " VALUES (:subject, :key, :proof, :disputed, :now_us)"
    " ON CONFLICT (subject_key, key) DO UPDATE SET proof = excluded.proof,"
    " disputed = excluded.disputed, seen_us = excluded.seen_us"
)
_OPEN = text(
    "INSERT INTO open_findings (subject_key, check_name, opened_us, seen_us)"
    " VALUES (:subject, :check, :now_us, :now_us)"
    " ON CONFLICT (subject_key, check_name) DO UPDATE SET seen_us = excluded.seen_us,"
    " opened_us = CASE WHEN open_findings.seen_us < :since_us THEN excluded.opened_us"
    " ELSE open_findings.opened_us END"
)
_IDENTITY = text(
    "INSERT INTO agent_identities (subject_key, owner, owner_us, group_key, skeleton, signature,"
    " rung, first_us, seen_us) VALUES (:subject, :owner, :owner_us, :group_key, :skeleton,"
    " :signature, :rung, :now_us, :now_us)"
    " ON CONFLICT (subject_key) DO UPDATE SET owner = excluded.owner,"
    " owner_us = COALESCE(excluded.owner_us, agent_identities.owner_us),"
    " group_key = excluded.group_key, skeleton = excluded.skeleton,"
    " signature = excluded.signature, rung = excluded.rung, seen_us = excluded.seen_us"
)
_BAND = text(
    "INSERT INTO content_bands (band, subject_key, seen_us) VALUES (:band, :subject, :now_us)"
    " ON CONFLICT (band, subject_key) DO UPDATE SET seen_us = excluded.seen_us"
)


class ControlRecords:
    """Writes keys, findings, names and texts of each evaluation that is stored."""

    def __init__(self, critical: Callable[[Evaluation], Sequence[str]]) -> None:
        """Create it; `critical` returns the checks with an open critical finding."""
        self._critical = critical

    async def put(self, connection: AsyncConnection, evaluation: Evaluation) -> None:
        """Write within the caller's transaction."""
        data = _behaviour(evaluation)
        now_us = to_us(evaluation.evaluated_at)
        values = {
            "subject": evaluation.subject_key,
            "now_us": now_us,
            "since_us": now_us - FOLLOWS_US,
        }
        is_open = await self._findings(connection, evaluation, data, values)
        identity = data.get("identity")
        if not is_object(identity):
            return
        await _keys(connection, identity, values)
        history = data.get("history")
        rung = history.get("heldRung") if is_object(history) else 0
        signature = str(identity.get("signature", ""))
        await connection.execute(
            _IDENTITY,
            {
                **_without_since(values),
                "owner": str(identity.get("owner", "")),
                "owner_us": now_us if identity.get("transferred") else None,
                "group_key": identity.get("group"),
                "skeleton": str(identity.get("name", "")),
                "signature": signature,
                "rung": rung if isinstance(rung, int) else 0,
            },
        )
        found = [{**_without_since(values), "band": band} for band in bands(signature)]
        if is_open and found:
            await connection.execute(_BAND, found)

    async def _findings(
        self,
        connection: AsyncConnection,
        evaluation: Evaluation,
        data: JsonObject,
        values: dict[str, str | int],
    ) -> bool:
        """Open and close findings; return whether a critical one is open now."""
        critical = list(dict.fromkeys(self._critical(evaluation)))[:KEYS_MAX]
        bad = _reputation_is_bad(evaluation)
        opened = [*critical, *([REPUTATION] if bad else [])]
        if opened:
            await connection.execute(_OPEN, [{**values, "check": name[:64]} for name in opened])
        rows = open_findings.c
        mine = delete(open_findings).where(rows.subject_key == evaluation.subject_key)
        if bad is False:
            await connection.execute(mine.where(rows.check_name == REPUTATION))
        history = data.get("history")
        listed = history.get("openCritical") if is_object(history) else None
        if is_array(listed):
            kept = [*critical, *(_name(one) for one in listed), REPUTATION]
            await connection.execute(mine.where(rows.check_name.not_in(kept)))
            return bool(critical or listed)
        return bool(critical)


async def _keys(
    connection: AsyncConnection, identity: JsonObject, values: dict[str, str | int]
) -> None:
    keys, disputed, sites = (identity.get(name) for name in ("keys", "disputed", "sites"))
    listed = {key: str(proof) for key, proof in keys.items()} if is_object(keys) else {}
    listed |= {str(site): "site" for site in (sites if is_array(sites) else ())}
    against = {str(key) for key in (disputed if is_array(disputed) else ())}
    rows = [
        {**_without_since(values), "key": key, "proof": proof, "disputed": key in against}
        for key, proof in sorted(listed.items())[:KEYS_MAX]
    ]
    if rows:
        await connection.execute(_KEY, rows)


def _without_since(values: dict[str, str | int]) -> dict[str, str | int]:
    return {name: value for name, value in values.items() if name != "since_us"}


def _behaviour(evaluation: Evaluation) -> JsonObject:
    for one in evaluation.collected:
        if one.signal is SignalName.SANDBOX:
            return one.evidence.data
    return {}


def _reputation_is_bad(evaluation: Evaluation) -> bool | None:
    """Return whether the reputation is bad; None if too little is known."""
    for one in evaluation.collected:
        if one.signal is SignalName.REGISTRY_8004 and one.weighed.confidence >= SURE:
            return one.weighed.value < BAD_REPUTATION
    return None


def _name(listed: object) -> str:
    """Return the check of an entry of `openCritical`: its name, or a row that has it."""
    return str(listed.get("check")) if is_object(listed) else str(listed)


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
        self,
        evaluation: Evaluation,
        snapshot: Snapshot,
        visit: VisitRecord | None = None,
        listing: AgentListing | None = None,
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
            if listing is not None:
                await put_listing(connection, evaluation, listing)
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

    async def of_subject(
        self, subject_key: str, before_seq: int | None, limit: int
    ) -> Sequence[tuple[int, Evaluation, Snapshot]]:
        """Return a subject's evaluations, newest first, each with its position in the chain."""
        chain = snapshots.c
        older = select(snapshots).where(chain.subject_key == subject_key)
        if before_seq is not None:
            older = older.where(chain.seq < before_seq)
        return await self._links(older.order_by(chain.seq.desc()).limit(limit))

    async def newest_snapshot(self, subject_key: str) -> Snapshot | None:
        async with self._database.read() as connection:
            row = await _last(connection, subject_key)
        return None if row is None else _snapshot(row)

    async def history(self, after: int, limit: int) -> Sequence[tuple[int, Evaluation, Snapshot]]:
        newer = (
            select(snapshots).where(snapshots.c.seq > after).order_by(snapshots.c.seq).limit(limit)
        )
        return await self._links(newer)

    async def _links(
        self, wanted: Select[tuple[Any, ...]]
    ) -> Sequence[tuple[int, Evaluation, Snapshot]]:
        # Old rows may be removed meanwhile.
        async with self._database.snapshot(USE_S) as connection:
            links = (await connection.execute(wanted)).mappings().all()
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


DUE: Final = text(
    "SELECT subject_key FROM evaluations GROUP BY subject_key"
    " HAVING COUNT(*) > :kept AND MIN(evaluated_us) < :before_us LIMIT :limit"
)
OF_SUBJECT: Final = text(
    "SELECT seq, evaluation_id, snapshot_hash, encrypted_data_uri, taken_us FROM snapshots"
    " WHERE subject_key = :key AND seq < (SELECT seq FROM snapshots WHERE subject_key = :key"
    " ORDER BY seq DESC LIMIT 1 OFFSET :newer) ORDER BY seq LIMIT :limit"
)
_GO_ON_FROM: Final = text(
    "INSERT INTO removed_snapshots (subject_key, snapshot_hash) VALUES (:key, :last)"
    " ON CONFLICT (subject_key) DO UPDATE SET snapshot_hash = excluded.snapshot_hash"
)


class SqlOldEvaluations:
    """Removes a bounded number at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def remove(self, kept: int, before: datetime, limit: int) -> tuple[int, Sequence[str]]:
        """Remove evaluations older than `before`, except the `kept` newest of each subject.

        Return how many, and the addresses of their snapshots' encrypted data.
        """
        values = {"kept": kept, "before_us": to_us(before), "limit": limit}
        async with self._database.read() as connection:
            keys = (await connection.execute(DUE, values)).scalars().all()
        count, uris = 0, list[str]()
        for key in keys:
            if count == limit:
                break
            gone, theirs = await self._remove(key, kept, to_us(before), limit - count)
            count += gone
            uris += theirs
        return count, uris

    async def _remove(
        self, key: str, kept: int, before_us: int, limit: int
    ) -> tuple[int, Sequence[str]]:
        values = {"key": key, "newer": kept - 1, "limit": limit}
        async with self._database.write() as connection:
            await self._database.lock(connection, key)  # Additions to the chain take it too.
            found = (await connection.execute(OF_SUBJECT, values)).all()
            old = list(takewhile(lambda row: row.taken_us < before_us, found))
            if old:
                mine = (snapshots.c.subject_key == key, snapshots.c.seq <= old[-1].seq)
                await connection.execute(delete(snapshots).where(*mine))
                ids = [row.evaluation_id for row in old]
                await connection.execute(delete(evaluations).where(evaluations.c.id.in_(ids)))
                last = {"key": key, "last": old[-1].snapshot_hash}
                await connection.execute(_GO_ON_FROM, last)
        return len(old), [row.encrypted_data_uri for row in old if row.encrypted_data_uri]
