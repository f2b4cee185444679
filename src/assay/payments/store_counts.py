"""What metrics tell of the ledger and of gas budgets: three statements, each of bounded work."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import bindparam, case, func, select

from assay.common.clock import DAY_US
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import payments
from assay.db.schema.gas import daily_budgets
from assay.payments.model import PaymentState
from assay.payments.store_gas import ALL, SHARED

ROWS_MAX: Final = 10_000
"""Most rows that are counted: beyond them a number says "at least"."""
STUCK: Final = timedelta(minutes=10)
"""How long after its claim a payment that has not ended is stuck."""


@dataclass(frozen=True, slots=True)
class OpenPayments:
    """Payments of a network that are being settled and have not ended."""

    count: int
    stuck: int
    oldest_at: datetime


@dataclass(frozen=True, slots=True)
class PaymentCounts:
    """As the database says at one moment."""

    open: Mapping[str, OpenPayments]
    """By network."""
    free_used: int
    """Free settlements of today, of every account's own budget."""
    free_shared_used: int
    """The same of self-registered accounts together."""


_OPEN = (
    select(payments.c.network, payments.c.created_us)
    .where(payments.c.state.in_([PaymentState.SETTLING, PaymentState.PENDING]))
    .limit(ROWS_MAX)
    .subquery()
)
_BY_NETWORK = select(
    _OPEN.c.network,
    func.count().label("count"),
    func.sum(case((_OPEN.c.created_us < bindparam("stuck_us"), 1), else_=0)).label("stuck"),
    func.min(_OPEN.c.created_us).label("oldest_us"),
).group_by(_OPEN.c.network)
_BUDGETS = (
    select(daily_budgets.c.name, daily_budgets.c.day, daily_budgets.c.used)
    .where(daily_budgets.c.name > f"{ALL} ", daily_budgets.c.name < f"{ALL}!")
    .limit(ROWS_MAX)
    .subquery()
)
_USED = select(func.coalesce(func.sum(_BUDGETS.c.used), 0)).where(
    _BUDGETS.c.day == bindparam("a_day"), _BUDGETS.c.name != SHARED
)
_SHARED_USED = select(daily_budgets.c.used).where(
    daily_budgets.c.name == SHARED, daily_budgets.c.day == bindparam("a_day")
)


class SqlPaymentCounts:
    """Reads `PaymentCounts`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, now: datetime) -> PaymentCounts:
        """Raises `Unavailable`."""
        day = {"a_day": to_us(now) // DAY_US}
        async with self._database.read() as connection:
            stuck = {"stuck_us": to_us(now - STUCK)}
            rows = (await connection.execute(_BY_NETWORK, stuck)).all()
            used = (await connection.execute(_USED, day)).scalar_one()
            shared = (await connection.execute(_SHARED_USED, day)).scalar_one_or_none()
        return PaymentCounts(
            {
                network: OpenPayments(int(count), int(few), from_us(oldest))
                for network, count, few, oldest in rows
            },
            int(used),
            int(shared or 0),
        )
