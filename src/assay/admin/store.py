"""Reads the admin's views, and deletes accounts, in SQL.

Views are sums of sums, never of calls. An account is deleted in one transaction over everything
that belongs to its owner. It also deletes accounts that strangers opened and nobody ever used.

A use is anything that the account's owner could have done: a call, a key, a log-in, a proven
address, a wrapper, a webhook, money, or any line of the audit trail that an anonymous caller cannot
cause.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Table, delete, func, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.accounts.model import OperatorNotFound, Role
from assay.accounts.store_operators import ADMINS, operator_of, require_another_admin
from assay.admin.model import OperatorOverview, PlatformStats
from assay.analytics.model import CallSums
from assay.analytics.store_analytics import funnel_of
from assay.audit.service import TERMINAL, AuditEntry
from assay.audit.store import erase_personal_fields, record
from assay.common.ids import new_id
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.accounts import (
    account_codes,
    api_keys,
    dashboard_sessions,
    login_origins,
    operators,
    recovery_codes,
)
from assay.db.schema.everything import (
    call_days,
    call_totals,
    observed_totals,
    webhook_agents,
    webhook_deliveries,
    webhooks,
    wrapper_revisions,
    wrappers,
)
from assay.payments.store_ledger_statements import BEING_SETTLED
from assay.webhooks.model import DeliveryState

_PLAIN = ("calls", "errors", "latency_us", "revenue")
_FUNNEL = ("asked", "paid", "settled", "failed", "denied", "limited")


class SqlAdminStore:
    """Reads across all accounts; every method is for admins only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def stats_for_admin(self, today: int) -> PlatformStats:
        """Return the platform's sums; `today` is a day numbered from 1970-01-01, UTC."""
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
        observed = select(func.coalesce(func.sum(observed_totals.c.would_deny), 0))
        totals = _sums(call_totals, (*_PLAIN, *_FUNNEL, "agents")).add_columns(
            under_way, observed.scalar_subquery().label("would_deny")
        )
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
        self, limit: int, offset: int
    ) -> tuple[Sequence[OperatorOverview], int]:
        """Return accounts with their sums, newest first, and how many there are."""
        page = (
            select(operators)
            .order_by(operators.c.created_us.desc(), operators.c.id.desc())
            .limit(limit)
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


NAME = "deleted account"
NO_PASSWORD = "!"  # noqa: S105 - the hash of no password
"""Stored instead of a password hash; no e-mail address leads to it."""


class SqlAccountEnd:
    """Erases what is personal of an account, and ends everything that acts for it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def erase(
        self, operator_id: str, at: datetime, origin_until: datetime, entry: AuditEntry
    ) -> None:
        """Delete the account in one transaction.

        Personal fields are erased, keys and sessions become invalid, wrappers are deactivated, and
        webhooks are removed. Calls and payments stay under the account's id, which is a pseudonym
        from then on. The hash of the network that signed up is erased too, unless that was after
        `origin_until`.

        Raises `OperatorNotFound`, and `LastAdmin` for the only admin that is not suspended.
        """
        async with self._database.write() as connection:
            await self._database.lock(connection, ADMINS)
            await _end_account(connection, operator_id, at, origin_until, entry)


async def _end_account(
    connection: AsyncConnection,
    operator_id: str,
    at: datetime,
    origin_until: datetime,
    entry: AuditEntry,
) -> None:
    """Do what `SqlAccountEnd.erase` does, in the caller's transaction."""
    await _erase_account(connection, operator_id, at, origin_until)
    await _erase_credentials(connection, operator_id, at)
    await _deactivate_wrappers(connection, operator_id)
    await _remove_webhooks(connection, operator_id, at)
    await record(connection, entry)
    await erase_personal_fields(connection, operator_id)


async def _erase_account(
    connection: AsyncConnection, operator_id: str, at: datetime, origin_until: datetime
) -> None:
    mine = (operators.c.id == operator_id, operators.c.deleted_us.is_(None))
    found = select(operators.c.role, operators.c.created_us).where(*mine).with_for_update()
    row = (await connection.execute(found)).mappings().one_or_none()
    if row is None:
        raise OperatorNotFound("There is no account of this id.")
    if row["role"] == Role.ADMIN:
        await require_another_admin(connection, operator_id)
    values = {
        "email": pseudonym(operator_id),
        "email_lower": pseudonym(operator_id),
        "name": NAME,
        "role": Role.OPERATOR.value,
        "password_hash": NO_PASSWORD,
        "email_verified_us": None,
        "totp_secret": None,
        "totp_confirmed_us": None,
        "totp_step": None,
        "suspended_us": to_us(at),
        "deleted_us": to_us(at),
        "updated_us": to_us(at),
    }
    if from_us(row["created_us"]) <= origin_until:  # else deletion evades the quota
        values["sign_up_origin"] = None
    await connection.execute(update(operators).where(*mine).values(values))


async def _erase_credentials(connection: AsyncConnection, operator_id: str, at: datetime) -> None:
    for table in (dashboard_sessions, recovery_codes, login_origins):
        await connection.execute(delete(table).where(table.c.operator_id == operator_id))
    # Otherwise deleting would allow unlimited mail: rows count what was sent in a day.
    codes = update(account_codes).where(account_codes.c.operator_id == operator_id)
    await connection.execute(codes.values(email_lower=None, spent_us=to_us(at)))
    keys = update(api_keys).where(api_keys.c.operator_id == operator_id)
    await connection.execute(keys.values(revoked=True, label=None))


async def _deactivate_wrappers(connection: AsyncConnection, operator_id: str) -> None:
    """Deactivate wrappers, and erase what their owner wrote or entrusted.

    The rows stay, because calls and payments refer to them.
    """
    values = {
        "description": "",
        "target_url": "",
        "cors_origins": "",
        "pass_response_headers": "",
        "upstream_auth_header": None,
        "upstream_auth_secret": None,
    }
    statement = update(wrappers).where(wrappers.c.operator_id == operator_id)
    await connection.execute(statement.values({**values, "active": False, "route_key": None}))
    past = update(wrapper_revisions).where(wrapper_revisions.c.operator_id == operator_id)
    await connection.execute(past.values({**values, "changes": "[]"}))


async def _remove_webhooks(connection: AsyncConnection, operator_id: str, at: datetime) -> None:
    own = webhooks.c.operator_id == operator_id
    ids = select(webhooks.c.id).where(own)
    await connection.execute(delete(webhook_agents).where(webhook_agents.c.webhook_id.in_(ids)))
    await connection.execute(delete(webhooks).where(own))
    theirs = webhook_deliveries.c.operator_id == operator_id
    pending = webhook_deliveries.c.state == DeliveryState.PENDING
    gone = {
        "state": DeliveryState.FAILED.value,
        "reason": "the registration is gone",
        "ended_us": to_us(at),
    }
    await connection.execute(update(webhook_deliveries).where(theirs, pending).values(gone))
    erased = {"url": "", "domain": None}
    await connection.execute(update(webhook_deliveries).where(theirs).values(erased))


def pseudonym(operator_id: str) -> str:
    """Return what replaces the e-mail address; `.invalid` leads nowhere (RFC 2606)."""
    return f"{operator_id}@deleted.invalid"


_OWN = (
    *("dashboard_sessions", "allowance", "gas_accounts", "wrappers", "webhooks"),
    *("call_totals", "payments", "transfers"),
)
_BY_ANYBODY = "'account.registered', 'key.issued', 'login.failed', 'password.reset_link'"
"""Actions that a sign-up records itself, and that strangers can cause for an account, as
`anonymous`."""

_NONE_OF_ITS_OWN = "".join(
    f" AND NOT EXISTS (SELECT 1 FROM {table} t WHERE t.operator_id = o.id)"  # noqa: S608 - our own names
    for table in _OWN
)
_UNUSED = f"""
SELECT o.id FROM operators o WHERE o.self_registered AND o.deleted_us IS NULL
  AND o.role = 'operator' AND o.plan = 'free' AND o.created_us < :before_us
  AND o.updated_us = o.created_us AND o.email_verified_us IS NULL AND o.totp_secret IS NULL
  AND EXISTS (SELECT 1 FROM audit a WHERE a.operator_id = o.id
    AND a.action = 'account.registered' AND a.actor_kind = 'anonymous')
  AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.operator_id = o.id
    AND NOT (a.actor_kind = 'anonymous' AND a.action IN ({_BY_ANYBODY})))
  AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.actor_id = o.id)
  AND NOT EXISTS (SELECT 1 FROM api_keys k
    WHERE k.operator_id = o.id AND k.last_used_us IS NOT NULL)
 {_NONE_OF_ITS_OWN}"""  # noqa: S608 - our own words
_DUE = text(f"{_UNUSED} ORDER BY o.created_us LIMIT :limit")
_STILL = text(f"{_UNUSED} AND o.id = :id")


class SqlUnusedAccounts:
    """Finds unused accounts, and deletes one at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self, before: datetime, limit: int) -> Sequence[str]:
        """Return ids of unused accounts that were created before then, the oldest first."""
        values = {"before_us": to_us(before), "limit": limit}
        async with self._database.read() as connection:
            return (await connection.execute(_DUE, values)).scalars().all()

    async def remove(
        self, operator_id: str, before: datetime, at: datetime, origin_until: datetime
    ) -> bool:
        """Delete the account unless it is used by now; return whether it was deleted.

        The account and its keys are locked first: if a use is written at the same moment, one of
        the two sees the other.
        """
        entry = AuditEntry(
            *(new_id(), at, TERMINAL, "account.deleted", operator_id, operator_id),
            {"reason": "never used"},
        )
        own = select(operators.c.id).where(operators.c.id == operator_id).with_for_update()
        keys = select(api_keys.c.id).where(api_keys.c.operator_id == operator_id)
        still = {"id": operator_id, "before_us": to_us(before)}
        async with self._database.write() as connection:
            await connection.execute(own)
            await connection.execute(keys.with_for_update())
            if (await connection.execute(_STILL, still)).one_or_none() is None:
                return False
            await _end_account(connection, operator_id, at, origin_until, entry)
        return True
