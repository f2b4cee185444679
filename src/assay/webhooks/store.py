"""Stores webhook registrations and deliveries in SQL."""

import json
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from sqlalchemy import RowMapping, delete, func, insert, select, update

from assay.audit.service import AuditEntry
from assay.audit.store import record
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import operators, webhook_agents, webhook_deliveries, webhooks
from assay.webhooks.model import (
    OVER_BUDGET,
    Delivery,
    DeliveryNotFound,
    DeliveryState,
    WebhookRegistration,
)
from assay.webhooks.receiver_proof import domain_of_url
from assay.webhooks.store_outbox import Turn, due_by_turns

_ROWS = webhook_deliveries
PURGED_AT_ONCE = 10_000
_ANY_PENDING = select(_ROWS.c.seq).where(_ROWS.c.state == DeliveryState.PENDING).limit(1)


class SqlWebhookStore:
    """Implements `webhooks.ports.WebhookStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._after = ""
        """The operator whose turn was last."""

    async def add(
        self, made: WebhookRegistration, keys: Sequence[str], limit: int, entry: AuditEntry
    ) -> bool:
        mine = webhooks.c.operator_id == made.operator_id
        values = {
            "id": made.id,
            "operator_id": made.operator_id,
            "event": made.event,
            "url": made.url,
            "agent_ids": None if made.agent_ids is None else json.dumps(made.agent_ids),
            "secret": made.sealed_secret,
            "created_us": to_us(made.created_at),
        }
        async with self._database.write() as connection:
            # Counted and added in one order: of two concurrent calls, one sees the other.
            await self._database.lock(connection, f"webhooks {made.operator_id}")
            count = select(func.count()).select_from(webhooks).where(mine)
            if (await connection.execute(count)).scalar_one() >= limit:
                return False
            await connection.execute(insert(webhooks).values(values))
            rows = [{"webhook_id": made.id, "agent_id": key} for key in keys]
            await connection.execute(insert(webhook_agents), rows)
            await record(connection, entry)
        return True

    async def list(self, operator_id: str) -> Sequence[WebhookRegistration]:
        statement = (
            select(webhooks)
            .where(webhooks.c.operator_id == operator_id)
            .order_by(webhooks.c.created_us.desc(), webhooks.c.id.desc())
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_registration(row) for row in rows]

    async def find(self, operator_id: str, webhook_id: str) -> WebhookRegistration | None:
        statement = (
            select(webhooks)
            .join(operators, operators.c.id == webhooks.c.operator_id)
            .where(
                webhooks.c.operator_id == operator_id,
                webhooks.c.id == webhook_id,
                operators.c.suspended_us.is_(None),
            )
        )
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else _registration(row)

    async def remove(self, operator_id: str, webhook_id: str, entry: AuditEntry) -> bool:
        mine = (webhooks.c.operator_id == operator_id, webhooks.c.id == webhook_id)
        waiting = (_ROWS.c.webhook_id == webhook_id, _ROWS.c.state == DeliveryState.PENDING)
        gone = {
            "state": DeliveryState.FAILED.value,
            "reason": "the registration is gone",
            "ended_us": to_us(entry.at),
        }
        async with self._database.write() as connection:
            found = await connection.execute(select(webhooks.c.id).where(*mine).with_for_update())
            if found.one_or_none() is None:
                return False
            await connection.execute(
                delete(webhook_agents).where(webhook_agents.c.webhook_id == webhook_id)
            )
            await connection.execute(delete(webhooks).where(*mine))
            await connection.execute(update(_ROWS).where(*waiting).values(gone))
            await record(connection, entry)
        return True

    async def reseal(self, made: WebhookRegistration, entry: AuditEntry) -> None:
        statement = (
            update(webhooks)
            .where(webhooks.c.operator_id == made.operator_id, webhooks.c.id == made.id)
            .values(secret=made.sealed_secret)
            .returning(webhooks.c.id)
        )
        async with self._database.write() as connection:
            if (await connection.execute(statement)).one_or_none() is not None:
                await record(connection, entry)

    async def deliveries(
        self,
        operator_id: str,
        webhook_id: str | None,
        before: str | None,
        limit: int,
        offset: int = 0,
    ) -> Sequence[Delivery]:
        statement = select(_ROWS).where(_ROWS.c.operator_id == operator_id)
        if webhook_id is not None:
            statement = statement.where(_ROWS.c.webhook_id == webhook_id)
        statement = statement.order_by(_ROWS.c.seq.desc()).limit(limit).offset(offset)
        async with self._database.read() as connection:
            if before is not None:
                mine = (_ROWS.c.id == before, _ROWS.c.operator_id == operator_id)
                place = select(_ROWS.c.seq).where(*mine)
                seq = (await connection.execute(place)).scalar_one_or_none()
                if seq is None:
                    raise DeliveryNotFound("The delivery that the page begins after is not there.")
                statement = statement.where(_ROWS.c.seq < seq)
            rows = (await connection.execute(statement)).mappings().all()
        return [_delivery(row) for row in rows]

    async def count_deliveries(self, operator_id: str, webhook_id: str | None) -> int:
        statement = select(func.count()).select_from(_ROWS)
        statement = statement.where(_ROWS.c.operator_id == operator_id)
        if webhook_id is not None:
            statement = statement.where(_ROWS.c.webhook_id == webhook_id)
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalar_one()

    async def deliveries_for_admin(
        self, state: DeliveryState | None, limit: int
    ) -> Sequence[Delivery]:
        statement = select(_ROWS).order_by(_ROWS.c.seq.desc()).limit(limit)
        if state is not None:
            statement = statement.where(_ROWS.c.state == state)
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_delivery(row) for row in rows]

    async def claim_due(
        self,
        now: datetime,
        limit: int,
        exclude: Collection[str] = (),
        left: Callable[[str], int] | None = None,
    ) -> Sequence[Delivery]:
        if not await self._database.look(
            lambda transaction: transaction.rows(_ANY_PENDING, {})
        ):  # mostly
            self._after = ""
            return []
        async with self._database.read() as connection:
            due, self._after = await due_by_turns(
                connection, now, Turn(limit, exclude, self._after, left)
            )
        if not due:
            return []
        # Check again: another process may have begun or postponed it meanwhile.
        still = (_ROWS.c.state == DeliveryState.PENDING, _ROWS.c.wait_until_us <= to_us(now))
        free = select(_ROWS.c.seq).where(_ROWS.c.seq.in_(due), *still)
        free = free.with_for_update(skip_locked=True)
        statement = (
            update(_ROWS)
            .where(_ROWS.c.seq.in_(free.scalar_subquery()), *still)
            .values(state=DeliveryState.SENDING.value, begun_us=to_us(now))
            .returning(_ROWS)
        )
        async with self._database.write() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_delivery(row) for row in sorted(rows, key=lambda row: due.index(row["seq"]))]

    async def complete(
        self, delivery_id: str, state: DeliveryState, status: int | None, reason: str | None,
        now: datetime,
    ) -> None:  # fmt: skip
        statement = (
            update(_ROWS)
            .where(_ROWS.c.id == delivery_id, _ROWS.c.state == DeliveryState.SENDING)
            .values(state=state.value, status=status, reason=reason, ended_us=to_us(now))
        )
        async with self._database.write() as connection:
            await connection.execute(statement)

    async def put_back(self, delivery: Delivery, until: datetime) -> None:
        mine = (_ROWS.c.id == delivery.id, _ROWS.c.state == DeliveryState.SENDING)
        waits = {"wait_until_us": to_us(until)}
        again = update(_ROWS).where(*mine).values(state=DeliveryState.PENDING.value, **waits)
        alike = (
            _ROWS.c.state == DeliveryState.PENDING,
            _ROWS.c.domain == domain_of_url(delivery.url),
            _ROWS.c.operator_id == delivery.operator_id,
            _ROWS.c.wait_until_us < to_us(until),
        )
        async with self._database.write() as connection:
            await connection.execute(again)
            await connection.execute(update(_ROWS).where(*alike).values(**waits))

    async def give_up(self, created_before: datetime, now: datetime) -> int:
        late = (
            _ROWS.c.state == DeliveryState.PENDING,
            _ROWS.c.wait_until_us > 0,
            _ROWS.c.created_us < to_us(created_before),
        )
        async with self._database.read() as connection:
            if (
                await connection.execute(select(_ROWS.c.seq).where(*late).limit(1))
            ).first() is None:
                return 0
        why = {"state": DeliveryState.FAILED.value, "reason": OVER_BUDGET}
        statement = update(_ROWS).where(*late).values(**why, ended_us=to_us(now))
        async with self._database.write() as connection:
            return (await connection.execute(statement)).rowcount

    async def fail_abandoned(self, begun_before: datetime, now: datetime) -> int:
        lost = (
            _ROWS.c.state == DeliveryState.SENDING,
            _ROWS.c.begun_us < to_us(begun_before),
        )
        async with self._database.read() as connection:
            if (
                await connection.execute(select(_ROWS.c.seq).where(*lost).limit(1))
            ).first() is None:
                return 0
        why = {"state": DeliveryState.FAILED.value, "reason": "the attempt was cut off"}
        statement = update(_ROWS).where(*lost).values(**why, ended_us=to_us(now))
        async with self._database.write() as connection:
            return (await connection.execute(statement)).rowcount

    async def purge(self, ended_before: datetime) -> int:
        """Remove old deliveries: the lowest numbers, which need no index."""
        old = (
            select(_ROWS.c.seq)
            .where(_ROWS.c.created_us < to_us(ended_before), _ROWS.c.ended_us < to_us(ended_before))
            .order_by(_ROWS.c.seq)
            .limit(PURGED_AT_ONCE)
        )
        oldest = select(_ROWS.c.created_us).order_by(_ROWS.c.seq).limit(1)
        async with self._database.read() as connection:
            first = (await connection.execute(oldest)).scalar_one_or_none()
        if first is None or first >= to_us(ended_before):
            return 0
        async with self._database.write() as connection:
            return (await connection.execute(delete(_ROWS).where(_ROWS.c.seq.in_(old)))).rowcount


def _registration(row: RowMapping) -> WebhookRegistration:
    agent_ids = row["agent_ids"]
    return WebhookRegistration(
        id=row["id"],
        operator_id=row["operator_id"],
        event=row["event"],
        url=row["url"],
        agent_ids=None if agent_ids is None else tuple(json.loads(agent_ids)),
        sealed_secret=None if row["secret"] is None else bytes(row["secret"]),
        created_at=from_us(row["created_us"]),
    )


def _delivery(row: RowMapping) -> Delivery:
    return Delivery(
        id=row["id"],
        webhook_id=row["webhook_id"],
        operator_id=row["operator_id"],
        url=row["url"],
        agent_id=row["agent_id"],
        payload=row["payload"],
        state=DeliveryState(row["state"]),
        status=row["status"],
        reason=row["reason"],
        created_at=from_us(row["created_us"]),
        ended_at=None if row["ended_us"] is None else from_us(row["ended_us"]),
        has_waited=row["wait_until_us"] > 0,
    )
