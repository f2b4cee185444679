"""`assay webhooks`: deliveries, and the secrets they are signed with."""

import json
import sys
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from assay.app import App
from assay.cli.command import AsJson, with_app
from assay.common.clock import iso
from assay.webhooks.model import Delivery, DeliveryState

LIMIT_MAX = 10_000


def deliveries(
    *,
    state: Annotated[
        Literal["pending", "sending", "sent", "failed"] | None,
        Parameter(help="Only deliveries in this state."),
    ] = None,
    limit: Annotated[int, Parameter(help="How many, newest first.")] = 50,
    as_json: AsJson = False,
) -> int:
    """Print deliveries, newest first."""

    async def work(app: App) -> int:
        wanted = None if state is None else DeliveryState(state)
        found = await app.webhook_store.deliveries_for_admin(wanted, max(1, min(limit, LIMIT_MAX)))
        rows = [_row(one) for one in found]
        if as_json:
            sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        else:
            _print(rows)
        return 0

    return with_app(work)


def _row(one: Delivery) -> dict[str, str]:
    return {
        "id": one.id,
        "createdAt": iso(one.created_at),
        "endedAt": "" if one.ended_at is None else iso(one.ended_at),
        "state": one.state.value,
        "status": "" if one.status is None else str(one.status),
        "reason": one.reason or "",
        "agentId": one.agent_id,
        "url": one.url,
        "webhookId": one.webhook_id,
        "operatorId": one.operator_id,
    }


def _print(rows: list[dict[str, str]]) -> None:
    shown = ("createdAt", "state", "status", "reason", "agentId", "url", "operatorId")
    table = Table()
    for column in shown:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(row[column] for column in shown))
    Console().print(table)
