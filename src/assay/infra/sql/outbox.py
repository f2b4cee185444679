"""What is to be delivered, written in the transaction of the evaluation it tells of.

So a crash loses neither: there is no evaluation without its deliveries.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import ColumnElement, Row, Select, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.accounts.bearers import operator_bearer
from assay.accounts.model import Plan, Role
from assay.infra.sql.engine import to_us
from assay.infra.sql.tables import operators, webhook_agents, webhook_deliveries, webhooks
from assay.kit.costs import Cost, CostLedger
from assay.kit.ids import new_id
from assay.trust.model import Evaluation, Snapshot
from assay.webhooks.address import domain_of_url, same_address
from assay.webhooks.model import AGENT_DRIFT, EVENT, GRADE_CHANGED, DeliveryState
from assay.webhooks.payload import Change, change_payload, payload
from assay.webhooks.register import EVERY_AGENT

NO_CHANGE = Change()

AT_ONCE: Final = 250
"""Deliveries made before others get their turn: about ten milliseconds."""


class Outbox:
    """Adds a pending delivery for every registration that wants to hear of the agent.

    Equal addresses of one account get it once. Each is a row and bytes of the registration's owner:
    beyond its quota none is added, and whatever caused the evaluation is none the worse for it.
    """

    def __init__(self, threshold: float, costs: CostLedger | None = None) -> None:
        self._threshold = threshold
        self._costs = costs
        self.undelivered = 0
        """Deliveries that were not added, for their owners had used up a quota of the day."""

    async def put(
        self,
        connection: AsyncConnection,
        evaluation: Evaluation,
        snapshot: Snapshot,
        change: Change = NO_CHANGE,
    ) -> None:
        """Within the caller's transaction; `snapshot` is as it is stored."""
        events = _events(evaluation, change)
        wanted = (
            webhook_agents.c.agent_id.in_([evaluation.agent_id, EVERY_AGENT]),
            operators.c.suspended_us.is_(None),
            webhooks.c.event.in_(events),
        )
        batches = await _batches(connection, wanted)
        if not batches:
            return
        body = payload(evaluation, snapshot, self._threshold)
        bodies = {EVENT: body} | {e: change_payload(e, body, change) for e in events[1:]}
        for batch in batches:
            told = await _told(connection, (*wanted, webhooks.c.operator_id.in_(batch)))
            for at in range(0, len(told), AT_ONCE):
                await asyncio.sleep(0)
                made = [
                    {
                        "id": new_id(),
                        "webhook_id": row.id,
                        "operator_id": row.operator_id,
                        "url": row.url,
                        "domain": domain_of_url(row.url),
                        "agent_id": evaluation.agent_id,
                        "payload": bodies[row.event],
                        "state": DeliveryState.PENDING.value,
                        "created_us": to_us(evaluation.evaluated_at),
                    }
                    for row in told[at : at + AT_ONCE]
                    if self._charge(row, len(bodies[row.event]))
                ]
                if made:
                    await connection.execute(insert(webhook_deliveries), made)

    def _charge(self, row: Row[*tuple[Any, ...]], size_bytes: int) -> bool:
        """Whether the owner bears one more row of that size; then it is counted."""
        if self._costs is None:
            return True
        bearer = operator_bearer(row.operator_id, Plan(row.plan), Role(row.role))
        if not all(self._costs.has_left(cost, bearer) for cost in (Cost.ROWS, Cost.DISK_BYTES)):
            self.undelivered += 1
            return False
        self._costs.charge(Cost.ROWS, 1, bearer)
        self._costs.charge(Cost.DISK_BYTES, size_bytes, bearer)
        return True


_Wanted: TypeAlias = tuple[ColumnElement[bool], ...]


async def _batches(connection: AsyncConnection, wanted: _Wanted) -> list[list[str]]:
    """The accounts that want to hear of it, so many together as have one batch's registrations."""
    statement = _joined(select(webhooks.c.operator_id, func.count())).where(*wanted)
    statement = statement.group_by(webhooks.c.operator_id).order_by(webhooks.c.operator_id)
    batches: list[list[str]] = []
    left = 0
    for operator_id, count in (await connection.execute(statement)).all():
        if count > left:
            batches.append([])
            left = AT_ONCE
        batches[-1].append(operator_id)
        left -= count
    return batches


async def _told(connection: AsyncConnection, wanted: _Wanted) -> Sequence[Row[*tuple[Any, ...]]]:
    """The registrations of some accounts that are told; of equal addresses of one the newest.

    It is what the account asked for last.
    """
    columns = (webhooks.c.id, webhooks.c.operator_id, webhooks.c.url, webhooks.c.event)
    statement = _joined(select(*columns, operators.c.plan, operators.c.role)).distinct()
    statement = statement.where(*wanted).order_by(webhooks.c.id)
    newest: dict[tuple[str, str, str], Row[*tuple[Any, ...]]] = {}
    for number, row in enumerate((await connection.execute(statement)).all(), 1):
        newest[row.operator_id, same_address(row.url), row.event] = row
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
    return list(newest.values())


def _joined(columns: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    joined = columns.join(webhook_agents, webhook_agents.c.webhook_id == webhooks.c.id)
    return joined.join(operators, operators.c.id == webhooks.c.operator_id)


def _events(evaluation: Evaluation, change: Change) -> list[str]:
    """What an evaluation is news of; the one of the specification first."""
    events = [EVENT]
    if change.tier_before not in {None, evaluation.grade.tier}:
        events.append(GRADE_CHANGED)
    if change.drift:
        events.append(AGENT_DRIFT)
    return events
