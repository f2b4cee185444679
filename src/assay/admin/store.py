"""The admin's views in SQL: sums of sums, never of calls."""

from collections.abc import Sequence

from sqlalchemy import Table, func, select

from assay.accounts.store_operators import operator_of
from assay.admin.model import OperatorOverview, PlatformStats
from assay.analytics.model import CallSums
from assay.analytics.store_analytics import funnel_of
from assay.db.engine import Database
from assay.db.schema.everything import api_keys, call_days, call_totals, operators, wrappers
from assay.payments.store_ledger_statements import BEING_SETTLED

_PLAIN = ("calls", "errors", "latency_us", "revenue")
_FUNNEL = ("asked", "paid", "settled", "failed", "denied", "limited")


class SqlAdminStore:
    """Implements `admin.ports.AdminStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def stats_for_admin(self, today: int) -> PlatformStats:
        accounts = select(
            func.count().label("operators"),
            func.count().filter(operators.c.plan == "pro").label("pro"),
            func.count().filter(operators.c.role == "admin").label("admins"),
            func.count().filter(operators.c.suspended_us.is_not(None)).label("suspended"),
            select(func.count())
            .select_from(api_keys)
            .where(api_keys.c.revoked.is_(False))
            .scalar_subquery()
            .label("keys"),
            select(func.count())
            .select_from(wrappers)
            .where(wrappers.c.active.is_(True))
            .scalar_subquery()
            .label("endpoints"),
        ).select_from(operators)
        under_way = BEING_SETTLED.scalar_subquery().label("under_way")
        totals = _sums(call_totals, (*_PLAIN, *_FUNNEL, "agents")).add_columns(under_way)
        days = _sums(call_days, _PLAIN).where(call_days.c.day == today)
        async with self._database.read() as connection:
            about = (await connection.execute(accounts)).mappings().one()
        async with self._database.read() as connection:
            total = (await connection.execute(totals)).mappings().one()
        async with self._database.read() as connection:
            day = (await connection.execute(days)).mappings().one()
        return PlatformStats(
            operators=about["operators"],
            pro=about["pro"],
            admins=about["admins"],
            suspended=about["suspended"],
            active_keys=about["keys"],
            active_endpoints=about["endpoints"],
            agents=int(total["agents"]),
            total=CallSums(*(int(total[name]) for name in _PLAIN)),
            today=CallSums(*(int(day[name]) for name in _PLAIN)),
            funnel=funnel_of(total),
        )

    async def operators_for_admin(
        self, at_most: int, offset: int
    ) -> tuple[Sequence[OperatorOverview], int]:
        page = (
            select(operators)
            .order_by(operators.c.created_us.desc(), operators.c.id.desc())
            .limit(at_most)
            .offset(offset)
            .subquery()
        )
        statement = (
            select(
                page,
                *(func.coalesce(call_totals.c[name], 0).label(name) for name in _PLAIN),
                func.coalesce(call_totals.c.agents, 0).label("agents"),
                select(func.count())
                .where(api_keys.c.operator_id == page.c.id, api_keys.c.revoked.is_(False))
                .scalar_subquery()
                .label("active_keys"),
                select(func.count())
                .where(wrappers.c.operator_id == page.c.id, wrappers.c.active.is_(True))
                .scalar_subquery()
                .label("active_endpoints"),
            )
            .select_from(page.outerjoin(call_totals, call_totals.c.operator_id == page.c.id))
            .order_by(page.c.created_us.desc(), page.c.id.desc())
        )
        count = select(func.count()).select_from(operators)
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        async with self._database.read() as connection:
            total = (await connection.execute(count)).scalar_one()
        found = [
            OperatorOverview(
                operator=operator_of(row),
                counted=CallSums(*(int(row[name]) for name in _PLAIN)),
                agents=row["agents"],
                active_keys=row["active_keys"],
                active_endpoints=row["active_endpoints"],
            )
            for row in rows
        ]
        return found, total


def _sums(table: Table, names: Sequence[str]):  # noqa: ANN202 - a statement of as many columns
    return select(*(func.coalesce(func.sum(table.c[name]), 0).label(name) for name in names))
