"""Stores deliveries in the transaction of their evaluation, and finds those that are due.

A crash loses neither: an evaluation is stored with its deliveries, or with the row from which the
rest of them is made, some accounts at a time.

Operators take turns, however many deliveries each has waiting. One step in an index finds an
operator; the deliveries of the one before need not be read. What is not due yet is skipped within
the index.
"""

import asyncio
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    delete,
    func,
    insert,
    literal,
    select,
    union_all,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.accounts.allowance import operator_bearer
from assay.accounts.model import Plan, Role
from assay.common.costs import Cost, CostLedger
from assay.common.ids import new_id
from assay.db.engine import Database, to_us
from assay.db.schema.everything import (
    operators,
    webhook_agents,
    webhook_deliveries,
    webhook_events,
    webhooks,
)
from assay.evaluation.model import Evaluation, EvaluationChange, Snapshot
from assay.webhooks.model import AGENT_DRIFT, EVENT, GRADE_CHANGED, DeliveryState
from assay.webhooks.payload import change_payload, payload
from assay.webhooks.receiver_proof import domain_of_url, same_address
from assay.webhooks.service import EVERY_AGENT

PAGE: Final = 64
"""Operators that are read together."""

PAGES_MAX: Final = 16
"""Pages that are read for one batch: the next batch continues there."""

_ROWS = webhook_deliveries
_IS_PENDING = _ROWS.c.state == DeliveryState.PENDING


@dataclass(frozen=True, slots=True)
class Turn:
    """A request for due deliveries."""

    limit: int
    exclude: Collection[str]
    after: str
    """The operator whose turn was last."""
    left: Callable[[str], int] | None
    """How many deliveries an operator may have; None: any number."""


async def due_by_turns(
    connection: AsyncConnection, now: datetime, turn: Turn
) -> tuple[list[int], str]:
    """Return numbers of due deliveries, in turn, and the operator whose turn was last."""
    after, is_round = turn.after, False
    for _ in range(PAGES_MAX):
        page, exclude = await _operators(connection, after, turn.exclude), turn.exclude
        if len(page) < PAGE:  # then from the start
            page += await _operators(connection, "", [*exclude, *page]) if after else []
            is_round = True
        due = await _due_of(connection, page, now, turn) if page else []
        if due:
            return [seq for seq, _ in due], due[-1][1]
        if is_round:
            break
        after = page[-1]
    return [], after if not is_round else ""


async def _operators(
    connection: AsyncConnection, after: str, exclude: Collection[str]
) -> list[str]:
    """Return the next operators with pending deliveries, by id, one page of them."""

    def following(previous: object) -> Select[tuple[str]]:
        found = select(func.min(_ROWS.c.operator_id)).where(
            _IS_PENDING, _ROWS.c.operator_id > previous
        )
        return found.where(_ROWS.c.operator_id.not_in(exclude)) if exclude else found

    walk = select(
        following(after).scalar_subquery().label("operator_id"), literal(1).label("place")
    ).cte("walk", recursive=True)
    further = select(following(walk.c.operator_id).scalar_subquery(), walk.c.place + 1).where(
        walk.c.operator_id.is_not(None), walk.c.place < PAGE
    )
    walk = walk.union_all(further)
    statement = select(walk.c.operator_id).where(walk.c.operator_id.is_not(None))
    return list((await connection.execute(statement)).scalars())


async def _due_of(
    connection: AsyncConnection, operators: list[str], now: datetime, turn: Turn
) -> list[tuple[int, str]]:
    """Return the oldest due deliveries of these operators: everybody's first, then second, ..."""
    parts = [
        select(
            select(_ROWS.c.seq, _ROWS.c.operator_id)
            .where(
                _IS_PENDING,
                _ROWS.c.operator_id == operator,
                _ROWS.c.wait_until_us <= to_us(now),
            )
            .order_by(_ROWS.c.seq)
            .limit(turn.limit)
            .subquery()
        )
        for operator in operators
    ]
    found: dict[str, list[int]] = {operator: [] for operator in operators}
    for seq, operator in (await connection.execute(union_all(*parts))).all():
        found[operator].append(seq)
    ranked = [
        (rank, place, seq, operator)
        for place, operator in enumerate(operators)
        for rank, seq in enumerate(sorted(found[operator]))
        if turn.left is None or rank < turn.left(operator)
    ]
    return [(seq, operator) for _, _, seq, operator in sorted(ranked)[: turn.limit]]


NO_CHANGE = EvaluationChange()

AT_ONCE: Final = 250
"""Deliveries that are made before other work runs: about ten milliseconds."""

_ANY = select(webhook_events.c.seq).limit(1)


class WebhookOutbox:
    """Adds a pending delivery for every registration that wants events of the agent.

    Equal addresses of one account receive it once. Each delivery is a row and bytes of the
    registration's owner. Beyond its quota none is added, which does not affect the evaluation.
    """

    def __init__(self, threshold: float, costs: CostLedger | None = None) -> None:
        self._threshold = threshold
        self._costs = costs
        self.undelivered = 0
        """Deliveries that were not added because their owners had used up a quota of the day."""

    async def put(
        self,
        connection: AsyncConnection,
        evaluation: Evaluation,
        snapshot: Snapshot,
        change: EvaluationChange = NO_CHANGE,
    ) -> None:
        """Add deliveries within the caller's transaction; `snapshot` is as it is stored.

        It makes the deliveries of one batch of accounts. If there are more accounts, it adds a row
        from which `go_on` makes theirs.
        """
        body = payload(evaluation, snapshot, self._threshold)
        events = _events(evaluation, change)
        outbox_event = _OutboxEvent(
            evaluation.agent_id,
            {EVENT: body} | {e: change_payload(e, body, change) for e in events[1:]},
            to_us(evaluation.evaluated_at),
        )
        after = await self._tell_next(connection, outbox_event, "")
        if after is not None:
            await connection.execute(
                insert(webhook_events).values(**outbox_event.row(), after_operator=after)
            )

    async def go_on(self, database: Database) -> bool:
        """Make the deliveries of one more batch; return whether any evaluation was left."""
        if not await database.look(lambda transaction: transaction.rows(_ANY, {})):  # mostly
            return False
        oldest = select(webhook_events).order_by(webhook_events.c.seq).limit(1)
        async with database.write() as connection:
            found = await connection.execute(oldest.with_for_update(skip_locked=True))
            row = found.mappings().one_or_none()
            if row is None:
                return False
            mine = webhook_events.c.seq == row["seq"]
            outbox_event = _OutboxEvent(
                row["agent_id"], json.loads(row["bodies"]), row["created_us"]
            )
            after = await self._tell_next(connection, outbox_event, row["after_operator"])
            left = update(webhook_events).where(mine).values(after_operator=after)
            await connection.execute(delete(webhook_events).where(mine) if after is None else left)
        return True

    async def _tell_next(
        self, connection: AsyncConnection, outbox_event: "_OutboxEvent", after: str
    ) -> str | None:
        """Make deliveries of the next accounts; return the last one, None if there are no more."""
        wanted = outbox_event.wanted()
        batch, is_last = await _batch(connection, wanted, after)
        if not batch:
            return None
        registrations = await _registrations(
            connection, (*wanted, webhooks.c.operator_id.in_(batch))
        )
        for at in range(0, len(registrations), AT_ONCE):
            await asyncio.sleep(0)
            made = [
                {
                    "id": new_id(),
                    "webhook_id": row.id,
                    "operator_id": row.operator_id,
                    "url": row.url,
                    "domain": domain_of_url(row.url),
                    "agent_id": outbox_event.agent_id,
                    "payload": outbox_event.bodies[row.event],
                    "state": DeliveryState.PENDING.value,
                    "created_us": outbox_event.created_us,
                }
                for row in registrations[at : at + AT_ONCE]
                if self._charge(row, len(outbox_event.bodies[row.event]))
            ]
            if made:
                await connection.execute(insert(webhook_deliveries), made)
        return None if is_last else batch[-1]

    def _charge(self, row: Row[*tuple[Any, ...]], size_bytes: int) -> bool:
        """Return whether the owner can bear one more row of that size, and count it then."""
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


@dataclass(frozen=True, slots=True)
class _OutboxEvent:
    """An evaluation as receivers see it: the payload of each event by the event's name."""

    agent_id: str
    bodies: dict[str, str]
    created_us: int

    def row(self) -> dict[str, object]:
        return {
            "agent_id": self.agent_id,
            "bodies": json.dumps(self.bodies),
            "created_us": self.created_us,
        }

    def wanted(self) -> _Wanted:
        """Return the conditions for a registration that receives it."""
        return (
            webhook_agents.c.agent_id.in_([self.agent_id, EVERY_AGENT]),
            operators.c.suspended_us.is_(None),
            webhooks.c.event.in_(list(self.bodies)),
            webhooks.c.created_us <= self.created_us,
        )


async def _batch(
    connection: AsyncConnection, wanted: _Wanted, after: str
) -> tuple[list[str], bool]:
    """Return the next accounts that want the event, and whether they are the last.

    They have at most `AT_ONCE` registrations together, but are at least one: an account's are made
    together.
    """
    statement = _joined(select(webhooks.c.operator_id, func.count()))
    statement = statement.where(*wanted, webhooks.c.operator_id > after)
    statement = statement.group_by(webhooks.c.operator_id).order_by(webhooks.c.operator_id)
    batch: list[str] = []
    left = AT_ONCE
    for operator_id, count in (await connection.execute(statement.limit(AT_ONCE + 1))).all():
        if batch and count > left:
            return batch, False
        batch.append(operator_id)
        left -= count
    return batch, True


async def _registrations(
    connection: AsyncConnection, wanted: _Wanted
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the registrations of some accounts that receive it.

    Of equal addresses of one account it is the newest, which the account asked for last.
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


def _events(evaluation: Evaluation, change: EvaluationChange) -> list[str]:
    """Return the events of an evaluation, the one of the specification first."""
    events = [EVENT]
    if change.tier_before not in {None, evaluation.grade.tier}:
        events.append(GRADE_CHANGED)
    if change.drift:
        events.append(AGENT_DRIFT)
    return events
