"""The audit trail in SQL; the database itself ensures that only failed log-ins are removed."""

import json
from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import RowMapping, and_, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.audit.service import Action, Actor, ActorKind, AuditEntry, AuditEntryNotFound
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import audit

_WITH_PERSONAL_DETAILS: tuple[Action, ...] = ("account.renamed", "key.issued", "endpoint.created")
"""Actions whose details are names, labels, and contents of wrappers."""


class SqlAuditStore:
    """Reads the trail from SQL; implements `audit.service.AuditStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page_for_admin(
        self, operator_id: str | None, before: str | None, limit: int, offset: int = 0
    ) -> Sequence[AuditEntry]:
        statement = select(audit).order_by(audit.c.seq.desc()).limit(limit).offset(offset)
        if operator_id is not None:
            statement = statement.where(audit.c.operator_id == operator_id)
        async with self._database.read() as connection:
            if before is not None:
                place = select(audit.c.seq).where(audit.c.id == before)
                seq = (await connection.execute(place)).scalar_one_or_none()
                if seq is None:
                    raise AuditEntryNotFound(
                        "There is no note of the id that the page begins after."
                    )
                statement = statement.where(audit.c.seq < seq)
            rows = (await connection.execute(statement)).mappings().all()
        return [_note(row) for row in rows]

    async def count_for_admin(self, operator_id: str | None) -> int:
        statement = select(func.count()).select_from(audit)
        if operator_id is not None:
            statement = statement.where(audit.c.operator_id == operator_id)
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalar_one()


async def record(connection: AsyncConnection, *made: AuditEntry | None) -> None:
    """Add entries to the caller's transaction, those that are not None."""
    rows = [
        {
            "id": one.id,
            "at_us": to_us(one.at),
            "actor_kind": one.actor.kind,
            "actor_id": one.actor.operator_id,
            "client": one.actor.client[:64],
            "request_id": one.actor.request_id[:64],
            "action": one.action,
            "operator_id": one.operator_id,
            "target": one.target,
            "details": json.dumps(one.details),
        }
        for one in made
        if one is not None
    ]
    if rows:
        await connection.execute(insert(audit), rows)


async def erase_personal_fields(connection: AsyncConnection, operator_id: str) -> None:
    """Remove a deleted account's addresses and names from the trail; every entry stays.

    The database allows no other change, and this one only for deleted accounts.
    """
    by_owner = or_(
        audit.c.actor_id == operator_id,
        and_(audit.c.operator_id == operator_id, audit.c.actor_kind == "anonymous"),
    )
    statement = update(audit).where(by_owner).values(client="", request_id="")
    await connection.execute(statement)
    written = (audit.c.operator_id == operator_id, audit.c.action.in_(_WITH_PERSONAL_DETAILS))
    await connection.execute(update(audit).where(*written).values(details="{}"))


def _note(row: RowMapping) -> AuditEntry:
    details: dict[str, Any] = json.loads(row["details"])
    kind, action = cast("ActorKind", row["actor_kind"]), cast("Action", row["action"])
    return AuditEntry(
        id=row["id"],
        at=from_us(row["at_us"]),
        actor=Actor(kind, row["actor_id"], row["client"], row["request_id"]),
        action=action,
        operator_id=row["operator_id"],
        target=row["target"],
        details=details,
    )
