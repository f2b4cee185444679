"""What is to be delivered, written in the transaction of the evaluation it tells of.

So a crash loses neither: there is no evaluation without its deliveries.
"""

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.infra.sql.engine import to_us
from assay.infra.sql.tables import operators, webhook_agents, webhook_deliveries, webhooks
from assay.kit.ids import new_id
from assay.trust.model import Evaluation, Snapshot
from assay.webhooks.address import domain_of_url, same_address
from assay.webhooks.model import DeliveryState
from assay.webhooks.payload import payload
from assay.webhooks.register import EVERY_AGENT


class Outbox:
    """Adds a pending delivery for every registration that wants to hear of the agent.

    Equal addresses of one account get it once.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    async def put(
        self, connection: AsyncConnection, evaluation: Evaluation, snapshot: Snapshot
    ) -> None:
        """Within the caller's transaction; `snapshot` is as it is stored."""
        wanting = (
            select(webhooks.c.id, webhooks.c.operator_id, webhooks.c.url)
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
        if not newest:
            return
        body = payload(evaluation, snapshot, self._threshold)
        made = [
            {
                "id": new_id(),
                "webhook_id": webhook_id,
                "operator_id": operator_id,
                "url": url,
                "domain": domain_of_url(url),
                "agent_id": evaluation.agent_id,
                "payload": body,
                "state": DeliveryState.PENDING.value,
                "created_us": to_us(evaluation.evaluated_at),
            }
            for webhook_id, operator_id, url in newest.values()
        ]
        await connection.execute(insert(webhook_deliveries), made)
