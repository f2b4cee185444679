"""Stores budgets of gas in SQL, and counts what metrics show of them and of the ledger.

It counts over all processes what our key has still to pay for. A claim reserves in its own
transaction, from rows that any number of processes share, so nothing is spent twice. A reservation
ends with the change of the ledger that ends the settlement. Metrics take three statements, each of
bounded work.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    ScalarSelect,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from assay.audit.service import AuditEntry
from assay.audit.store import record
from assay.common.cache import BoundedMap
from assay.common.clock import DAY_US
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.accounts import operators
from assay.db.schema.everything import payments, wrappers
from assay.db.schema.payments import daily_budgets, gas_accounts
from assay.db.sql_transaction import SqlRow, SqlTransaction
from assay.db.store_costs import DailyBudgets
from assay.payments.gas import RETRY_S, GasAccount, GasSpent, GasTerms, SoldOn
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.outcomes import Gas, GasPayer

LIVE_CLAIM = and_(
    payments.c.state == PaymentState.CLAIMED, payments.c.lease_us > bindparam("now_us")
)
"""A claim that a process is working on."""


def _count_of(*which: ColumnElement[bool]) -> ScalarSelect[int]:
    # The network is an expression: otherwise SQLite uses its index and reads every payment there.
    network = payments.c.network.concat("") == bindparam("a_network")
    wanted = (network, payments.c.gas_payer != "", *which)
    return select(func.count()).where(*wanted).scalar_subquery()


_SINCE = bindparam("since_us", type_=BigInteger())
IN_FLIGHT = select(
    (
        _count_of(LIVE_CLAIM)
        + _count_of(payments.c.state == PaymentState.SETTLING)
        + _count_of(payments.c.state == PaymentState.PENDING)
        + _count_of(payments.c.settled_us >= _SINCE)
        # A payment that failed on the chain has spent gas while a process had it leased.
        + _count_of(payments.c.state == PaymentState.FAILED, payments.c.lease_us >= _SINCE)
    ).label("total")
)
"""One index for each part: nothing that ended earlier is read."""


SHARED = "settlements of self-registered accounts"
ALL = "settlements"
OPERATORS_KNOWN = 10_000

_ACCOUNT = (
    gas_accounts.c.operator_id == bindparam("an_operator"),
    gas_accounts.c.currency == bindparam("a_currency"),
)
_SPEND = (
    update(gas_accounts)
    .where(*_ACCOUNT, gas_accounts.c.balance >= bindparam("an_amount"))
    .values(balance=gas_accounts.c.balance - bindparam("an_amount"))
)
_ADJUST = (
    update(gas_accounts)
    .where(*_ACCOUNT)
    .values(balance=gas_accounts.c.balance + bindparam("an_amount"))
)
_ORIGIN = select(operators.c.self_registered).where(operators.c.id == bindparam("an_operator"))
_CLAIMED = select(func.count().label("total")).where(
    LIVE_CLAIM,
    or_(
        and_(payments.c.operator_id == bindparam("an_operator"), payments.c.gas_payer != ""),
        payments.c.gas_payer == bindparam("a_payer"),
    ),
)

_SOLD = (
    select(
        wrappers.c.payment_network,
        wrappers.c.payment_protocol,
        func.max(wrappers.c.price).label("highest"),
    )
    .where(wrappers.c.active.is_(True), wrappers.c.price > 0)
    .group_by(wrappers.c.payment_network, wrappers.c.payment_protocol)
    .order_by(wrappers.c.payment_network)
)
_ABANDONED = (
    select(
        *(payments.c.id, payments.c.moves, payments.c.operator_id),
        *(payments.c.gas_currency, payments.c.gas_reserved),
    )
    .where(
        payments.c.state == PaymentState.CLAIMED,
        payments.c.lease_us < bindparam("us"),
        payments.c.gas_payer == "prepaid",
    )
    .limit(bindparam("n"))
)
_RELEASE = (
    update(payments)
    .where(payments.c.id == bindparam("an_id"), payments.c.moves == bindparam("moves_read"))
    .values(
        state=PaymentState.RELEASED,
        gas_payer="",
        gas_currency="",
        gas_reserved=0,
        reason="abandoned",
        look_us=payments.c.lease_us,  # somebody may have seen it: the chain is asked first
        moves=bindparam("moves_read") + 1,
    )
)


def _name_of(operator_id: str) -> str:
    """Return the name of an account's free budget."""
    return f"{ALL} {operator_id}"


class GasReservations:
    """What the ledger's transactions do with gas: reserve, give back, charge."""

    def __init__(self, database: Database) -> None:
        self._budgets = DailyBudgets(database)
        self._is_stranger: BoundedMap[str, bool] = BoundedMap(OPERATORS_KNOWN)
        self._free_until: BoundedMap[str, int] = BoundedMap(OPERATORS_KNOWN)
        """The day on which an account's free budget was found used up."""

    async def reserve(
        self, transaction: SqlTransaction, fresh: LedgerEntry, terms: GasTerms
    ) -> Gas:
        """Reserve for a claim that was just made. Raises `GasSpent`."""
        day = to_us(fresh.created_at) // DAY_US
        spent_free = self._free_until.get(fresh.operator_id) == day
        for is_free in (False, True) if spent_free else (True, False):
            if is_free:
                payer = await self._free(transaction, fresh.operator_id, day, terms)
            else:
                payer = await _prepaid(transaction, fresh.operator_id, terms)
            if payer:
                return Gas(payer, terms.currency, terms.most)
        raise GasSpent(await self._wait_s(transaction, fresh))

    async def settle_up(
        self, transaction: SqlTransaction, entry: LedgerEntry, moved: LedgerEntry
    ) -> None:
        """Give back what a change of the ledger has not spent of a reservation.

        `moved.gas` is the result of `payments.gas.closed` for the change.
        """
        before, after = entry.gas, moved.gas
        if before == after or not before.payer:  # nothing was reserved, or it was given back before
            return
        if before.payer == "prepaid":
            left = before.reserved - (after.spent or 0)
            values = {"an_operator": entry.operator_id, "a_currency": before.currency}
            if left:
                await transaction.change(_ADJUST, values | {"an_amount": left})
        elif not after.payer:
            await self.give_back_free(transaction, entry)

    async def give_back_free(self, transaction: SqlTransaction, entry: LedgerEntry) -> None:
        """Give back a free settlement that was not needed."""
        day = to_us(entry.created_at) // DAY_US
        await self._budgets.give_back_within(transaction, _name_of(entry.operator_id), day)
        if entry.gas.payer == "shared":
            await self._budgets.give_back_within(transaction, SHARED, day)
        self._free_until.pop(entry.operator_id)

    async def _free(
        self, transaction: SqlTransaction, operator_id: str, day: int, terms: GasTerms
    ) -> GasPayer:
        is_stranger = await self._is_self_registered(transaction, operator_id)
        mine = _name_of(operator_id)
        if await self._budgets.take_within(transaction, mine, day, terms.free_per_account):
            if not is_stranger:
                return "free"
            if await self._budgets.take_within(transaction, SHARED, day, terms.free_shared):
                return "shared"
            await self._budgets.give_back_within(transaction, mine, day)
        self._free_until.put(operator_id, day)
        return ""

    async def _is_self_registered(self, transaction: SqlTransaction, operator_id: str) -> bool:
        known = self._is_stranger.get(operator_id)
        if known is None:
            rows = await transaction.rows(_ORIGIN, {"an_operator": operator_id})
            known = bool(rows[0]["self_registered"]) if rows else True
            self._is_stranger.put(operator_id, known)
        return known

    async def _wait_s(self, transaction: SqlTransaction, fresh: LedgerEntry) -> int:
        """Return the seconds until tomorrow, or less while claims may give something back."""
        now_us = to_us(fresh.created_at)
        is_stranger = await self._is_self_registered(transaction, fresh.operator_id)
        whose = {"an_operator": fresh.operator_id, "a_payer": "shared" if is_stranger else "none"}
        claimed = (await transaction.rows(_CLAIMED, {**whose, "now_us": now_us}))[0]["total"]
        return RETRY_S if claimed else ceil((DAY_US - now_us % DAY_US) / 1_000_000)


async def _prepaid(transaction: SqlTransaction, operator_id: str, terms: GasTerms) -> GasPayer:
    values = {"an_operator": operator_id, "a_currency": terms.currency, "an_amount": terms.most}
    return "prepaid" if await transaction.change(_SPEND, values) == 1 else ""


class SqlGasStore:
    """Implements `payments.gas.GasStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._budgets = DailyBudgets(database)

    async def in_flight(self, network: str, now: datetime, since: datetime) -> int:
        values = {"a_network": network, "now_us": to_us(now), "since_us": to_us(since)}
        rows = await self._database.look(lambda transaction: transaction.rows(IN_FLIGHT, values))
        return int(rows[0]["total"])

    async def account(self, operator_id: str, day: int) -> GasAccount:
        balances = select(gas_accounts.c.currency, gas_accounts.c.balance).where(
            gas_accounts.c.operator_id == operator_id
        )
        spent = (
            select(payments.c.gas_currency, func.sum(payments.c.gas_spent))
            .where(
                payments.c.operator_id == operator_id,
                payments.c.created_us >= day * DAY_US,
                payments.c.gas_spent.is_not(None),
            )
            .group_by(payments.c.gas_currency)
        )
        async with self._database.read() as connection:
            prepaid = {name: int(amount) for name, amount in await connection.execute(balances)}
        async with self._database.read() as connection:
            costs = {name: int(amount) for name, amount in await connection.execute(spent)}
        async with self._database.read() as connection:
            origin = await connection.execute(_ORIGIN, {"an_operator": operator_id})
            is_stranger = bool(origin.scalar_one_or_none())
        mine = _name_of(operator_id)
        used = (await self._budgets.used([mine], day)).get(mine, 0)
        return GasAccount(prepaid, costs, used, is_stranger)

    async def shared_used(self, day: int) -> int:
        return (await self._budgets.used([SHARED], day)).get(SHARED, 0)

    async def credit_for_admin(
        self, operator_id: str, currency: str, amount: int, entry: AuditEntry
    ) -> int:
        made = (sqlite_insert if self._database.kind == "sqlite" else postgresql_insert)(
            gas_accounts
        ).values(operator_id=operator_id, currency=currency, balance=amount)
        add = made.on_conflict_do_update(
            index_elements=[gas_accounts.c.operator_id, gas_accounts.c.currency],
            set_={"balance": gas_accounts.c.balance + made.excluded.balance},
        ).returning(gas_accounts.c.balance)
        async with self._database.write() as connection:
            balance = (await connection.execute(add)).scalar_one()
            await record(connection, entry)
        return int(balance)

    async def sold(self) -> Sequence[SoldOn]:
        async with self._database.read() as connection:
            found = (await connection.execute(_SOLD)).all()
        return [SoldOn(str(one[0]), str(one[1]), int(one.highest)) for one in found]

    async def release_abandoned(self, before: datetime, limit: int) -> int:
        async with self._database.read() as connection:
            found = (await connection.execute(_ABANDONED, {"us": to_us(before), "n": limit})).all()

        async def work(transaction: SqlTransaction) -> int:
            released = 0
            for row in found:
                if (
                    await transaction.change(_RELEASE, {"an_id": row.id, "moves_read": row.moves})
                    == 1
                ):
                    await transaction.change(
                        _ADJUST,
                        {
                            "an_operator": row.operator_id,
                            "a_currency": row.gas_currency,
                            "an_amount": row.gas_reserved,
                        },
                    )
                    released += 1
            return released

        return await self._database.change(work) if found else 0

    async def forget(self, before_day: int) -> int:
        return await self._budgets.forget(before_day)


def gas_values(gas: Gas) -> dict[str, object]:
    """Return the columns of a payment's gas."""
    return {
        "gas_payer": gas.payer,
        "gas_currency": gas.currency,
        "gas_reserved": gas.reserved,
        "gas_spent": gas.spent,
    }


def gas_of(row: SqlRow) -> Gas:
    """Return the gas of a payment's row."""
    return Gas(row["gas_payer"], row["gas_currency"], row["gas_reserved"], row["gas_spent"])


ROWS_MAX: Final = 10_000
"""Most rows that are counted; above it a number means "at least"."""
STUCK: Final = timedelta(minutes=10)
"""Age after its claim at which an unfinished payment is stuck."""


@dataclass(frozen=True, slots=True)
class OpenPayments:
    """Payments of a network that are being settled and have not ended."""

    count: int
    stuck: int
    oldest_at: datetime


@dataclass(frozen=True, slots=True)
class PaymentCounts:
    """Counts of the database at one moment."""

    open: Mapping[str, OpenPayments]
    """By network."""
    free_used: int
    """Today's free settlements of every account's own budget."""
    free_shared_used: int
    """Today's free settlements of self-registered accounts together."""


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
        """Return the counts. Raises `Unavailable`."""
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
