"""The account stores, against every database."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from assay.accounts.model import (
    AccountChange,
    ApiKey,
    EmailTaken,
    Operator,
    OperatorNotFound,
    Plan,
    Role,
)
from assay.accounts.store_operators import SqlAllowanceStore, SqlApiKeyStore, SqlOperatorStore
from assay.audit.service import TERMINAL, new_entry
from assay.common.ids import new_id
from assay.db.engine import Database
from assay.identity.model import KeyAgent
from assay.key_agents.store import SqlKeyAgentStore
from tests.support.fakes.clock import FrozenClock

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, UTC)


def operator(email: str = "a@example.com") -> Operator:
    return Operator(
        new_id(), email, "Ann \u00e9\u4e2d", Role.OPERATOR, Plan.FREE, Decimal("0.00"), NOW, NOW
    )


def key(operator_id: str, at: datetime = NOW) -> ApiKey:
    return ApiKey(
        new_id(), operator_id, "svc_op_abc", None, revoked=False, last_used=None, created_at=at
    )


async def test_an_account_is_read_back_as_it_was_stored(database: Database) -> None:
    store, ann = SqlOperatorStore(database), operator()
    await store.add(ann, "hash")
    assert await store.find(ann.id) == ann
    assert await store.find_by_email("A@EXAMPLE.com") == (ann, "hash")
    assert await store.find(new_id()) is None
    assert await store.find_by_email("b@example.com") is None
    assert await store.list_for_admin() == [ann]


async def test_an_email_address_is_taken_in_any_case_and_by_one_of_many_at_once(
    database: Database,
) -> None:
    store = SqlOperatorStore(database)

    async def add(email: str) -> bool:
        try:
            await store.add(operator(email), "hash")
        except EmailTaken:
            return False
        return True

    async with asyncio.TaskGroup() as group:
        tried = [group.create_task(add(e)) for e in ("x@y.zz", "X@y.zz", "x@Y.zz") * 5]
    assert sum(task.result() for task in tried) == 1


async def test_changes_are_kept_and_unknown_accounts_are_refused(database: Database) -> None:
    store, ann = SqlOperatorStore(database), operator()
    later = NOW + timedelta(days=1)
    await store.add(ann, "hash")
    await store.rename(ann.id, "Bea", later)
    told = new_entry(FrozenClock(later), TERMINAL, "account.changed", ann.id)
    asked = AccountChange(plan=Plan.PRO, role=Role.ADMIN)
    changed = await store.change_for_admin(ann.id, asked, later, told)
    expected = replace(ann, name="Bea", plan=Plan.PRO, role=Role.ADMIN, updated_at=later)
    assert changed == await store.find(ann.id) == expected
    with pytest.raises(OperatorNotFound):
        await store.rename(new_id(), "Bea", later)


async def test_a_key_is_found_by_its_hash_and_only_its_operator_can_revoke_it(
    database: Database,
) -> None:
    ann, bea = operator(), operator("b@example.com")
    operators, store = SqlOperatorStore(database), SqlApiKeyStore(database)
    for one in (ann, bea):
        await operators.add(one, "hash")
    old, new = key(ann.id), key(ann.id, NOW + timedelta(seconds=1))
    await store.add(old, "a" * 64)
    await store.add(new, "b" * 64)
    assert await store.find_by_hash("a" * 64) == old
    assert await store.find_by_hash("c" * 64) is None
    assert await store.list(ann.id) == [new, old]
    assert await store.list(bea.id) == []
    assert await store.revoke(bea.id, old.id) is False
    assert await store.revoke(ann.id, old.id) is True
    assert await store.revoke(ann.id, old.id) is True
    assert await store.find_by_hash("a" * 64) == replace(old, revoked=True)


async def test_last_use_never_moves_back(database: Database) -> None:
    ann = operator()
    store = SqlApiKeyStore(database)
    await SqlOperatorStore(database).add(ann, "hash")
    used = key(ann.id)
    await store.add(used, "a" * 64)
    await store.touch({used.id: NOW + timedelta(hours=2)})
    await store.touch({used.id: NOW + timedelta(hours=1), new_id(): NOW})
    await store.touch({})
    assert [k.last_used for k in await store.list(ann.id)] == [NOW + timedelta(hours=2)]


async def test_the_allowance_adds_up_exactly_whoever_adds_at_once(database: Database) -> None:
    ann = operator()
    await SqlOperatorStore(database).add(ann, "hash")
    store = SqlAllowanceStore(database)
    async with asyncio.TaskGroup() as group:
        for _ in range(30):
            group.create_task(store.add({(ann.id, "2026-03"): 3, (ann.id, "2026-04"): 1}))
    assert await store.used(ann.id, "2026-03") == 90
    assert await store.used(ann.id, "2026-05") == 0
    assert await store.add({(ann.id, "2026-04"): -1}) == {(ann.id, "2026-04"): 29}


async def test_a_key_agent_keeps_its_first_proof(database: Database) -> None:
    store = SqlKeyAgentStore(database)
    await store.remember(KeyAgent("0x" + "a" * 40, NOW))
    await store.remember(KeyAgent("0x" + "a" * 40, NOW + timedelta(days=1)))
    assert await store.find("0x" + "a" * 40) == KeyAgent("0x" + "a" * 40, NOW)
    assert await store.find("0x" + "b" * 40) is None
