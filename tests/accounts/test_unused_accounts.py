"""Accounts that nobody used leave in time; any use keeps one, also in the same moment."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import text

from assay.accounts.model import ApiKey, Operator, OperatorNotFound, Plan, Role
from assay.accounts.ports import SignUp
from assay.accounts.store_operators import SqlAllowanceStore, SqlApiKeyStore, SqlOperatorStore
from assay.admin.store import SqlUnusedAccounts
from assay.admin.store_retention import SqlRetention
from assay.analytics.store_calls import SqlCallStore
from assay.app.retention import Retention
from assay.audit.service import TERMINAL, Action, Actor, new_entry
from assay.audit.store import SqlAuditStore
from assay.common.errors import TooMany
from assay.common.ids import new_id
from assay.db.engine import Database
from assay.db.store_costs import SqlCostStore
from assay.settings import load
from assay.webhooks.model import WebhookRegistration
from assay.webhooks.store import SqlWebhookStore
from tests.support.fakes.calls import call, claimed, counted_ledger, payment
from tests.support.fakes.clock import FrozenClock

CLOCK = FrozenClock()
NOW = CLOCK.now()
THEN = FrozenClock(NOW - timedelta(days=91))
YESTERDAY = NOW - timedelta(days=1)
BEFORE = NOW - timedelta(days=90)
STRANGER = Actor("anonymous", None, "192.0.2.1", "r")


def sign_up(now: FrozenClock, invite: str | None = None) -> SignUp:
    return SignUp(("0" * 32,), ("0" * 32,), now.now() - timedelta(days=1), 1, 1, invite)


async def account(
    database: Database, *, clock: FrozenClock = THEN, by: Actor = STRANGER, plan: Plan = Plan.FREE
) -> tuple[str, str]:
    """Ids of a new account and of its first key, as a sign-up makes them."""
    at = clock.now()
    made = Operator(new_id(), f"{new_id()}@b.cc", "A", Role.OPERATOR, plan, Decimal("0.00"), at, at)
    key = ApiKey(
        new_id(), made.id, "svc_op_abc", None, revoked=False, last_used=None, created_at=at
    )
    told = new_entry(clock, by, "account.registered", made.id)
    from_where = sign_up(clock) if by is STRANGER else None
    await SqlOperatorStore(database).add(made, "hash", told, from_where)
    issued = new_entry(clock, by, "key.issued", made.id, key.id)
    await SqlApiKeyStore(database).add(key, new_id(), issued)
    return made.id, key.id


async def removed(database: Database) -> list[str]:
    """Ids of the accounts that a whole removal took."""
    unused = SqlUnusedAccounts(database)
    due = await unused.due(BEFORE, 100)
    return [one for one in due if await unused.remove(one, BEFORE, NOW, YESTERDAY)]


async def rows(database: Database, table: str) -> int:
    async with database.read() as connection:
        return (await connection.execute(text(f"SELECT COUNT(*) FROM {table}"))).scalar_one()  # noqa: S608


async def alive(database: Database) -> int:
    return await rows(database, "operators WHERE deleted_us IS NULL")


async def lives(database: Database, operator_id: str) -> bool:
    found = await SqlOperatorStore(database).find(operator_id)
    return found is not None and found.deleted_at is None


async def test_an_account_that_nobody_used_goes_with_all_that_is_its_own(
    database: Database,
) -> None:
    one, _ = await account(database)
    assert await removed(database) == [one]
    found = await SqlOperatorStore(database).find(one)
    assert found is not None
    assert (found.email, found.deleted_at) == (f"{one}@deleted.invalid", NOW)
    assert [key.revoked for key in await SqlApiKeyStore(database).list(one)] == [True]
    assert await rows(database, "login_origins") == 0
    (line, *earlier) = await SqlAuditStore(database).page_for_admin(one, None, 10)
    assert (line.action, line.details) == ("account.deleted", {"reason": "never used"})
    assert [(a.action, a.actor.client) for a in earlier] == [
        ("key.issued", ""),
        ("account.registered", ""),
    ]
    assert await removed(database) == []


async def test_young_accounts_and_those_that_admins_made_stay(database: Database) -> None:
    await account(database, clock=FrozenClock(NOW - timedelta(days=89)))
    for by in (TERMINAL, Actor("admin", "a")):
        await account(database, by=by)
    assert await removed(database) == []
    assert await alive(database) == 3


async def test_an_address_has_no_more_accounts_for_those_that_were_removed(
    database: Database,
) -> None:
    await account(database, clock=FrozenClock(NOW - timedelta(hours=25)))
    young = FrozenClock(NOW - timedelta(hours=1))
    await account(database, clock=young)
    settings = load(unused_account_days=1, snapshot_blocks_mib=0)
    stores = SqlRetention(database), SqlCostStore(database, CLOCK)
    await Retention(*stores, None, settings, CLOCK).run()  # type: ignore[arg-type]
    assert await alive(database) == 1
    with pytest.raises(TooMany):
        await account(database, clock=CLOCK)


async def noted(database: Database, owner: str, action: Action, kind: str = "operator") -> None:
    actor = Actor(kind, owner if kind == "operator" else None)  # type: ignore[arg-type]
    await SqlOperatorStore(database).record(new_entry(THEN, actor, action, owner))


async def executed(database: Database, statement: str, **values: object) -> None:
    async with database.write() as connection:
        await connection.execute(text(statement), values)


USES: dict[str, Callable[[Database, str, str], Awaitable[object]]] = {
    "a call": lambda d, who, _: SqlCallStore(d).add([call(who, "w", NOW)]),
    "a key": lambda d, _, key: SqlApiKeyStore(d).touch({key: NOW}),
    "a log-in": lambda d, who, _: noted(d, who, "login.succeeded"),
    "a reset": lambda d, who, _: noted(d, who, "password.reset", "anonymous"),
    "a wrapper": lambda d, who, _: noted(d, who, "endpoint.created"),
    "a webhook": lambda d, who, _: SqlWebhookStore(d).add(
        WebhookRegistration(new_id(), who, "evaluation_complete", "https://x.yy", None, None, NOW),
        ("local/7",), 10, new_entry(THEN, STRANGER, "key.issued", who),
    ),
    "an allowance": lambda d, who, _: SqlAllowanceStore(d).add({(who, "2026-03"): 1}),
    "a proven address": lambda d, who, _: executed(
        d, "UPDATE operators SET email_verified_us = 1 WHERE id = :who", who=who
    ),
    "a change of it": lambda d, who, _: SqlOperatorStore(d).rename(who, "B", NOW),
    "prepaid gas": lambda d, who, _: executed(
        d, "INSERT INTO gas_accounts (operator_id, currency, balance) VALUES (:who, 'usd', 1)",
        who=who,
    ),
    "money": lambda d, who, _: claimed(counted_ledger(d, THEN), payment(who, "w", NOW, 5)),
    "a plan": lambda d, who, _: executed(
        d, "UPDATE operators SET plan = 'pro' WHERE id = :who", who=who
    ),
    "a session": lambda d, who, _: executed(
        d,
        "INSERT INTO dashboard_sessions"
        " (id, operator_id, created_us, used_us, expires_us, user_agent, client)"
        " VALUES ('s', :who, 1, 1, 1, '', '')",
        who=who,
    ),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
async def test_whatever_used_it_keeps_it_also_after_it_was_found(
    database: Database, use: str
) -> None:
    one, key = await account(database)
    unused = SqlUnusedAccounts(database)
    assert await unused.due(BEFORE, 100) == [one]
    await USES[use](database, one, key)
    assert not await unused.remove(one, BEFORE, NOW, YESTERDAY)
    assert await unused.due(BEFORE, 100) == []
    assert await lives(database, one)


async def test_what_strangers_do_to_an_account_is_no_use_of_it(database: Database) -> None:
    one, _ = await account(database)
    for action in ("login.failed", "password.reset_link"):
        await noted(database, one, action, "anonymous")
    assert await removed(database) == [one]


async def outcome(use: Awaitable[object]) -> None:
    """A use may come too late."""
    with suppress(OperatorNotFound):
        await use


@pytest.mark.parametrize("use", ["a key", "a webhook", "a change of it"])
async def test_of_a_use_and_a_removal_at_once_one_sees_the_other(
    database: Database, use: str
) -> None:
    for number in range(10):
        clock = FrozenClock(THEN.now() - timedelta(days=2 * number))
        one, key = await account(database, clock=clock)
        removal = SqlUnusedAccounts(database).remove(one, BEFORE, NOW, YESTERDAY)
        async with asyncio.TaskGroup() as group:
            tried = group.create_task(removal)
            group.create_task(outcome(USES[use](database, one, key)))
        gone = tried.result()
        assert await lives(database, one) is not gone
        await executed(database, "UPDATE operators SET sign_up_origin = NULL")


@pytest.mark.parametrize(("days", "left"), [(90, 0), (0, 1)])
async def test_the_setting_says_when_and_zero_keeps_them(
    database: Database, days: int, left: int
) -> None:
    await account(database)
    settings = load(unused_account_days=days, snapshot_blocks_mib=0)
    stores = SqlRetention(database), SqlCostStore(database, CLOCK)
    await Retention(*stores, None, settings, CLOCK).run()  # type: ignore[arg-type]
    assert await alive(database) == left
