"""Which pending deliveries are next: operators take turns, whatever each of them has waiting.

An operator is found by one step in an index, not by reading what the one before has pending. What
is not due yet is passed over within the index.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Select, func, literal, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.db.engine import to_us
from assay.db.schema.webhooks import webhook_deliveries
from assay.webhooks.model import DeliveryState

PAGE: Final = 64
"""Operators looked at together."""

PAGES_MAX: Final = 16
"""Pages looked at for one batch: the next one goes on from there."""

_ROWS = webhook_deliveries
_IS_PENDING = _ROWS.c.state == DeliveryState.PENDING


@dataclass(frozen=True, slots=True)
class Turn:
    """What is asked for."""

    at_most: int
    but_not: Collection[str]
    after: str
    """The operator whose turn was last."""
    left: Callable[[str], int] | None
    """How many an operator may have; None: any number."""


async def due_by_turns(
    connection: AsyncConnection, now: datetime, turn: Turn
) -> tuple[list[int], str]:
    """Numbers of deliveries that are due, in turn, and whose turn was last."""
    after, is_round = turn.after, False
    for _ in range(PAGES_MAX):
        page, but_not = await _operators(connection, after, turn.but_not), turn.but_not
        if len(page) < PAGE:  # and on from the start
            page += await _operators(connection, "", [*but_not, *page]) if after else []
            is_round = True
        due = await _due_of(connection, page, now, turn) if page else []
        if due:
            return [seq for seq, _ in due], due[-1][1]
        if is_round:
            break
        after = page[-1]
    return [], after if not is_round else ""


async def _operators(
    connection: AsyncConnection, after: str, but_not: Collection[str]
) -> list[str]:
    """The next operators that have something pending, by id, a page of them."""

    def following(previous: object) -> Select[tuple[str]]:
        found = select(func.min(_ROWS.c.operator_id)).where(
            _IS_PENDING, _ROWS.c.operator_id > previous
        )
        return found.where(_ROWS.c.operator_id.not_in(but_not)) if but_not else found

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
    """The oldest due deliveries of these operators: everybody's first, everybody's second, ..."""
    parts = [
        select(
            select(_ROWS.c.seq, _ROWS.c.operator_id)
            .where(
                _IS_PENDING,
                _ROWS.c.operator_id == operator,
                _ROWS.c.wait_until_us <= to_us(now),
            )
            .order_by(_ROWS.c.seq)
            .limit(turn.at_most)
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
    return [(seq, operator) for _, _, seq, operator in sorted(ranked)[: turn.at_most]]
