"""What is to be delivered, written in the transaction of the evaluation it tells of.

So a crash loses neither: there is no evaluation without its deliveries.
"""

from typing import Any

from sqlalchemy import Row, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.accounts.bearers import operator_bearer
from assay.accounts.model import Plan, Role
from assay.infra.sql.engine import to_us
from assay.infra.sql.tables import operators, webhook_agents, webhook_deliveries, webhooks
from assay.kit.costs import Cost, CostLedger
from assay.kit.ids import new_id
from assay.trust.model import Evaluation, Snapshot
from assay.webhooks.address import domain_of_url, same_address
from assay.webhooks.model import DeliveryState
from assay.webhooks.payload import payload
from assay.webhooks.register import EVERY_AGENT


class Outbox:
    """Adds a pending delivery for every registration that wants to hear of the agent.

    Equal addresses of one account get it once. Each is a row of the registration's owner: beyond
    its quota none is added, and whatever caused the evaluation is none the worse for it.
    """

    def __init__(self, threshold: float, costs: CostLedger | None = None) -> None:
        self._threshold = threshold
        self._costs = costs
        self.undelivered = 0
        """Deliveries that were not added, for their owners had used up their rows of the day."""

    async def put(
        self, connection: AsyncConnection, evaluation: Evaluation, snapshot: Snapshot
    ) -> None:
        """Within the caller's transaction; `snapshot` is as it is stored."""
        wanting = (
            select(
                *(webhooks.c.id, webhooks.c.operator_id, webhooks.c.url),
                *(operators.c.plan, operators.c.role),
            )
            .distinct()
            .join(webhook_agents, webhook_agents.c.webhook_id == webhooks.c.id)
            .join(operators, operators.c.id == webhooks.c.operator_id)
            .where(
                webhook_agents.c.agent_id.in_([evaluation.agent_id, EVERY_AGENT]),
                operators.c.suspended_us.is_(None),
            )
            .order_by(webhooks.c.id)
        )
        rows = (await connection.execute(wanting)).all()
        # Of equal addresses of one account the newest registration is told: what it asked for last.
        newest = {(row.operator_id, same_address(row.url)): row for row in rows}
        charged = [row for row in newest.values() if self._charge(row)]
        if not charged:
            return
        body = payload(evaluation, snapshot, self._threshold)
        made = [
            {
                "id": new_id(),
                "webhook_id": row.id,
                "operator_id": row.operator_id,
                "url": row.url,
                "domain": domain_of_url(row.url),
                "agent_id": evaluation.agent_id,
                "payload": body,
                "state": DeliveryState.PENDING.value,
                "created_us": to_us(evaluation.evaluated_at),
            }
            for row in charged
        ]
        await connection.execute(insert(webhook_deliveries), made)

    def _charge(self, row: Row[*tuple[Any, ...]]) -> bool:
        """Whether the owner bears one more row; then it is counted."""
        if self._costs is None:
            return True
        bearer = operator_bearer(row.operator_id, Plan(row.plan), Role(row.role))
        if not self._costs.has_left(Cost.ROWS, bearer):
            self.undelivered += 1
            return False
        self._costs.charge(Cost.ROWS, 1, bearer)
        return True
