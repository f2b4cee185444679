"""Reads roll-ups in SQL: the work does not depend on how many calls there are."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, Table, and_, func, select

from assay.analytics.model import (
    AgentCounted,
    AgentOrder,
    CallSums,
    EndpointCounted,
    Funnel,
    LogFilter,
    LoggedCall,
    Stats,
)
from assay.analytics.store_calls import CallPages
from assay.db.engine import Database, from_us
from assay.db.schema.everything import (
    agent_chains,
    agent_days,
    agent_totals,
    call_days,
    call_totals,
    endpoint_days,
    endpoint_totals,
    observed_totals,
    payments,
    wrappers,
)
from assay.payments.store_ledger_statements import BEING_SETTLED

_PLAIN = ("calls", "errors", "latency_us", "revenue")
_FUNNEL = ("asked", "paid", "settled", "failed", "denied", "limited", "would_deny")

_ORDERS: Mapping[AgentOrder, ColumnElement[int]] = MappingProxyType(
    {
        "lastSeen": agent_totals.c.last_us,
        "calls": agent_totals.c.calls,
        "spent": agent_totals.c.revenue,
        "errors": agent_totals.c.errors,
    }
)


class SqlAnalyticsStore:
    """Sums of one operator at a time. Days are numbered from 1970-01-01, UTC."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pages = CallPages(database)

    async def stats(self, operator_id: str, today: int) -> Stats:
        """Return totals and today's sums; one statement reads both at one moment."""
        day = [call_days.c[name].label(f"today_{name}") for name in _PLAIN]
        under_way = BEING_SETTLED.where(payments.c.operator_id == operator_id)
        of_today = and_(
            call_days.c.operator_id == call_totals.c.operator_id, call_days.c.day == today
        )
        observed = select(func.coalesce(func.sum(observed_totals.c.would_deny), 0)).where(
            observed_totals.c.operator_id == operator_id
        )
        statement = (
            select(
                call_totals,
                *day,
                under_way.scalar_subquery().label("under_way"),
                observed.scalar_subquery().label("would_deny"),
            )
            .select_from(call_totals.outerjoin(call_days, of_today))
            .where(call_totals.c.operator_id == operator_id)
        )
        row = await self._one(statement)
        if row is None:
            return Stats(CallSums(), CallSums(), 0, Funnel())
        return Stats(
            total=_counted(row),
            today=CallSums(*(row[f"today_{name}"] or 0 for name in _PLAIN)),
            agents=row["agents"],
            funnel=funnel_of(row),
        )

    async def days(self, operator_id: str, first: int, last: int) -> Mapping[int, CallSums]:
        """Return the days with calls or money, both ends included."""
        statement = select(call_days).where(
            call_days.c.operator_id == operator_id, call_days.c.day.between(first, last)
        )
        return {row["day"]: _counted(row) for row in await self._all(statement)}

    async def top_endpoints(
        self, operator_id: str, limit: int, offset: int = 0
    ) -> tuple[Sequence[EndpointCounted], int]:
        """Return wrappers by calls, most first, inactive ones too, and how many there are."""
        ranked = select(endpoint_totals).where(endpoint_totals.c.operator_id == operator_id)
        by_calls = (endpoint_totals.c.calls.desc(), endpoint_totals.c.wrapper_id)
        counted = ranked.order_by(*by_calls).limit(limit).offset(offset).subquery()
        total = await self._one(select(func.count().label("rows")).select_from(ranked.subquery()))
        found = await self._named(operator_id, select(counted))
        return found, 0 if total is None else total["rows"]

    async def agents(
        self, operator_id: str, order: AgentOrder, limit: int, offset: int
    ) -> tuple[Sequence[AgentCounted], int]:
        """Return agents in that order, highest first, and how many there are."""
        statement = (
            select(agent_totals)
            .where(agent_totals.c.operator_id == operator_id)
            .order_by(_ORDERS[order].desc(), agent_totals.c.agent_id.desc())
            .limit(limit)
            .offset(offset)
        )
        total = select(call_totals.c.agents).where(call_totals.c.operator_id == operator_id)
        found = await self._one(total)
        rows = await self._all(statement)
        return await self._with_chains(operator_id, rows), 0 if found is None else found["agents"]

    async def agent(self, operator_id: str, agent_id: str) -> AgentCounted | None:
        """Return one agent."""
        statement = select(agent_totals).where(
            agent_totals.c.operator_id == operator_id, agent_totals.c.agent_id == agent_id
        )
        row = await self._one(statement)
        return None if row is None else (await self._with_chains(operator_id, [row]))[0]

    async def agent_endpoints(self, operator_id: str, agent_id: str) -> Sequence[EndpointCounted]:
        """Return what one agent called, by calls, most first."""
        table = agent_days
        counted = (
            select(table.c.wrapper_id, *(func.sum(table.c[name]).label(name) for name in _PLAIN))
            .where(table.c.operator_id == operator_id, table.c.agent_id == agent_id)
            .group_by(table.c.wrapper_id)
        )
        return await self._named(operator_id, counted)

    async def count(self, operator_id: str, which: LogFilter, first_day: int | None) -> int:
        """Return how many calls are in the log, from the roll-ups."""
        table = _counting(which, first_day)
        wanted = [table.c.operator_id == operator_id]
        if which.agent_id is not None:
            wanted.append(table.c.agent_id == which.agent_id)
        if which.wrapper_id is not None:
            wanted.append(table.c.wrapper_id == which.wrapper_id)
        if first_day is not None:
            wanted.append(table.c.day >= first_day)
        row = await self._one(select(func.sum(table.c.calls).label("calls")).where(*wanted))
        return 0 if row is None else int(row["calls"] or 0)

    async def position(self, operator_id: str, call_id: str) -> tuple[int, int] | None:
        """Return the position of an operator's call in the log: its time and its number."""
        return await self._pages.position(operator_id, call_id)

    async def logs(
        self,
        operator_id: str,
        which: LogFilter,
        first_day: int | None,
        before: tuple[int, int] | None,
        limit: int,
        offset: int,
    ) -> Sequence[LoggedCall]:
        """Return calls, newest first, from just before that position on."""
        return await self._pages.page(operator_id, which, first_day, before, limit, offset)

    async def _named(
        self,
        operator_id: str,
        counted: Select[*tuple[Any, ...]],
    ) -> Sequence[EndpointCounted]:
        """Return sums by wrapper with the wrapper's name, by calls, most first."""
        sums = counted.subquery()
        statement = (
            select(sums, wrappers.c.path, wrappers.c.method, observed_totals.c.would_deny)
            .select_from(
                sums.join(wrappers, wrappers.c.id == sums.c.wrapper_id).outerjoin(
                    observed_totals,
                    and_(
                        observed_totals.c.operator_id == operator_id,
                        observed_totals.c.wrapper_id == sums.c.wrapper_id,
                    ),
                )
            )
            .where(wrappers.c.operator_id == operator_id)
            .order_by(sums.c.calls.desc(), sums.c.wrapper_id)
        )
        return [
            EndpointCounted(
                row["wrapper_id"],
                row["path"],
                row["method"],
                _counted(row),
                int(row["would_deny"] or 0),
            )
            for row in await self._all(statement)
        ]

    async def _with_chains(
        self, operator_id: str, rows: Sequence[RowMapping]
    ) -> Sequence[AgentCounted]:
        if not rows:
            return []
        statement = (
            select(agent_chains.c.agent_id, agent_chains.c.chain)
            .where(
                agent_chains.c.operator_id == operator_id,
                agent_chains.c.agent_id.in_([row["agent_id"] for row in rows]),
            )
            .order_by(agent_chains.c.chain)
        )
        chains: dict[str, list[str]] = {}
        for row in await self._all(statement):
            chains.setdefault(row["agent_id"], []).append(row["chain"])
        return [_agent(row, tuple(chains.get(row["agent_id"], ()))) for row in rows]

    async def _one(self, statement: Select[*tuple[Any, ...]]) -> RowMapping | None:
        async with self._database.read() as connection:
            return (await connection.execute(statement)).mappings().one_or_none()

    async def _all(self, statement: Select[*tuple[Any, ...]]) -> Sequence[RowMapping]:
        async with self._database.read() as connection:
            return (await connection.execute(statement)).mappings().all()


def funnel_of(row: RowMapping) -> Funnel:
    """Return the funnel of sums, and of payments being settled, which are in no sum yet."""
    counted = {name: int(row[name]) for name in _FUNNEL}
    return Funnel(**counted | {"paid": counted["paid"] + row["under_way"]})


def _counting(which: LogFilter, first_day: int | None) -> Table:
    """Return the smallest roll-up that has the answer."""
    if which.agent_id is not None:
        if first_day is None and which.wrapper_id is None:
            return agent_totals
        return agent_days
    if which.wrapper_id is not None:
        return endpoint_totals if first_day is None else endpoint_days
    return call_totals if first_day is None else call_days


def _counted(row: RowMapping) -> CallSums:
    return CallSums(*(int(row[name]) for name in _PLAIN))


def _agent(row: RowMapping, chains: tuple[str, ...]) -> AgentCounted:
    return AgentCounted(
        agent_id=row["agent_id"],
        chains=chains,
        first_seen=from_us(row["first_us"]),
        last_seen=from_us(row["last_us"]),
        tier=row["tier"],
        counted=_counted(row),
    )
