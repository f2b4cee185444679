"""The admin's views and the audit trail, on every database."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from assay.accounts.model import AccountChange, ApiKey, Operator, OperatorNotFound, Plan, Role
from assay.accounts.store_operators import SqlApiKeyStore, SqlOperatorStore
from assay.admin.store import SqlAccountEnd, SqlAdminStore
from assay.analytics.store_calls import SqlCallStore
from assay.audit.service import Actor, AuditEntry, AuditEntryNotFound, new_entry
from assay.audit.store import SqlAuditStore
from assay.common.clock import DAY_US
from assay.common.errors import Unavailable
from assay.common.ids import new_id
from assay.db.engine import Database, to_us
from assay.payments.model import PaymentState
from tests.support.fakes.calls import call, claimed, counted_ledger, payment
from tests.support.fakes.clock import FrozenClock

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TODAY = to_us(NOW) // DAY_US
ADMIN = Actor("admin", "an-admin", "203.0.113.9", "request-1")


async def account(database: Database, email: str, **fields: object) -> str:
    plain = {"role": Role.OPERATOR, "plan": Plan.FREE, "at": NOW, **fields}
    made = Operator(
        *(new_id(), email, "A", plain["role"], plain["plan"], Decimal("0.00")),  # type: ignore[arg-type]
        *(plain["at"], plain["at"]),  # type: ignore[arg-type]
    )
    await SqlOperatorStore(database).add(made, "hash", told("account.registered", made.id))
    return made.id


def told(action: str, operator_id: str) -> AuditEntry:
    return new_entry(FrozenClock(NOW), ADMIN, action, operator_id, kind="x")  # type: ignore[arg-type]


async def test_the_platform_is_the_sum_of_its_accounts(database: Database) -> None:
    ann = await account(database, "a@b.cc", role=Role.ADMIN, plan=Plan.PRO)
    bea = await account(database, "b@b.cc")
    key = ApiKey(new_id(), bea, "svc_op_x", None, revoked=False, last_used=None, created_at=NOW)
    await SqlApiKeyStore(database).add(key, "a" * 64)
    yesterday = NOW - timedelta(days=1)
    calls = [call(ann, "w", NOW, agent_id="7"), call(bea, "w", yesterday, agent_id="7", status=500)]
    await SqlCallStore(database).add(calls)
    ledger = counted_ledger(database, FrozenClock(NOW))
    entry = await claimed(ledger, payment(bea, "w", NOW, 7))
    await ledger.move(entry, PaymentState.SETTLED)
    stats = await SqlAdminStore(database).stats_for_admin(TODAY)
    assert (stats.operators, stats.pro, stats.admins, stats.suspended) == (2, 1, 1, 0)
    assert (stats.active_keys, stats.active_endpoints, stats.agents) == (1, 0, 3)
    assert (stats.total.calls, stats.total.errors, stats.total.revenue) == (2, 1, 7)
    assert (stats.today.calls, stats.today.revenue) == (1, 7)
    assert stats.funnel.settled == 1


async def test_an_empty_platform_is_all_zeros(database: Database) -> None:
    stats = await SqlAdminStore(database).stats_for_admin(TODAY)
    assert (stats.operators, stats.total.calls, stats.today.revenue) == (0, 0, 0)
    assert await SqlAdminStore(database).operators_for_admin(10, 0) == ([], 0)


async def test_accounts_are_paged_newest_first_with_their_own_sums(database: Database) -> None:
    ids = [await account(database, f"{n}@b.cc", at=NOW + timedelta(seconds=n)) for n in range(5)]
    await SqlCallStore(database).add([call(ids[2], "w", NOW, agent_id="7")] * 3)
    store = SqlAdminStore(database)
    pages = [await store.operators_for_admin(2, offset) for offset in (0, 2, 4, 6)]
    assert {total for _, total in pages} == {5}
    rows = [row for page, _ in pages for row in page]
    assert [row.operator.id for row in rows] == ids[::-1]
    assert [row.counted.calls for row in rows] == [0, 0, 3, 0, 0]
    assert [row.agents for row in rows] == [0, 0, 1, 0, 0]


async def test_a_change_and_its_note_are_one(database: Database) -> None:
    store, trail = SqlOperatorStore(database), SqlAuditStore(database)
    ann = await account(database, "a@b.cc")
    change = AccountChange(plan=Plan.PRO, fee_rate=Decimal("0.5"), suspended=True)
    later = NOW + timedelta(hours=1)
    made = await store.change_for_admin(ann, change, later, told("account.changed", ann))
    assert made == await store.find(ann)
    assert (made.plan, made.suspended_at, made.updated_at) == (Plan.PRO, later, later)
    again = later + timedelta(hours=1)
    kept = await store.change_for_admin(ann, change, again, told("account.changed", ann))
    assert kept.suspended_at == later  # it was suspended already
    second, first, registered = await trail.page_for_admin(ann, None, 10)
    assert registered.action == "account.registered"
    assert first.details == {
        "plan": {"from": "free", "to": "pro"},
        "fee_rate": {"from": "0.00", "to": "0.5"},
        "suspended": {"from": False, "to": True},
    }
    assert second.details == {}
    assert first.actor == ADMIN
    with pytest.raises(OperatorNotFound):
        await store.change_for_admin("nobody", change, later, told("account.changed", "nobody"))
    assert await trail.page_for_admin("nobody", None, 10) == []


async def test_notes_are_read_back_as_they_were_page_by_page(database: Database) -> None:
    trail, store = SqlAuditStore(database), SqlOperatorStore(database)
    notes = [told("login.succeeded", f"operator {n % 2}") for n in range(6)]
    for one in notes:
        await store.record(one)
    assert await trail.page_for_admin(None, None, 10) == notes[::-1]
    assert await trail.page_for_admin("operator 1", None, 2) == [notes[5], notes[3]]
    assert await trail.page_for_admin("operator 1", notes[3].id, 2) == [notes[1]]
    with pytest.raises(AuditEntryNotFound):
        await trail.page_for_admin(None, "nothing", 10)


async def test_the_database_refuses_to_change_or_to_forget_a_note(database: Database) -> None:
    await SqlOperatorStore(database).record(told("login.succeeded", "o"))
    attempts = ["UPDATE audit SET action = 'nothing'", "DELETE FROM audit"]
    attempts += ["TRUNCATE audit"] if database.kind == "postgresql" else []
    for attempt in attempts:
        with pytest.raises((Unavailable, IntegrityError)) as refusal:
            async with database.write() as connection:
                await connection.execute(text(attempt))
        assert "only added to" in f"{refusal.value} {refusal.value.__cause__}"
    assert len(await SqlAuditStore(database).page_for_admin(None, None, 10)) == 1


async def test_only_personal_fields_of_deleted_accounts_can_be_erased(database: Database) -> None:
    store, trail = SqlOperatorStore(database), SqlAuditStore(database)
    clock = FrozenClock(NOW)
    ann, bea = await account(database, "ann@b.cc"), await account(database, "bea@b.cc")
    owner = Actor("operator", ann, "192.0.2.1", "hers")
    admin = Actor("admin", bea, "192.0.2.2", "theirs")
    await store.record(new_entry(clock, owner, "key.issued", ann, "k", label="Ann's laptop"))
    await store.record(new_entry(clock, Actor("anonymous", None, "192.0.2.3"), "login.failed", ann))
    await store.record(new_entry(clock, admin, "account.changed", ann, plan="pro"))
    erase = text("UPDATE audit SET client = '', request_id = '', details = '{}'")
    with pytest.raises((Unavailable, IntegrityError)) as refusal:
        async with database.write() as connection:
            await connection.execute(erase)
    assert "only added to" in f"{refusal.value} {refusal.value.__cause__}"
    deleted = new_entry(clock, owner, "account.deleted", ann)
    await SqlAccountEnd(database).erase(ann, NOW, NOW, deleted)
    lines = [
        (one.action, one.actor.client, one.actor.request_id, dict(one.details))
        for one in await trail.page_for_admin(ann, None, 10)
    ]
    assert lines[:4] == [
        ("account.deleted", "", "", {}),
        ("account.changed", "192.0.2.2", "theirs", {"plan": "pro"}),
        ("login.failed", "", "", {}),
        ("key.issued", "", "", {}),
    ]
    for statement in (
        text("UPDATE audit SET action = 'x' WHERE id = :id"),
        text("UPDATE audit SET client = '192.0.2.9' WHERE id = :id"),
        text("UPDATE audit SET details = '[]' WHERE id = :id"),
    ):
        with pytest.raises((Unavailable, IntegrityError)):
            async with database.write() as connection:
                await connection.execute(statement.bindparams(id=deleted.id))
