"""Wrapper configs, on every database: one of a kind, each operator's own, none of the suspended."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from sqlalchemy.exc import IntegrityError

from assay.accounts.audit import TERMINAL, note
from assay.accounts.model import Change, Operator, Plan, Role
from assay.infra.sql.audit import SqlAuditStore
from assay.infra.sql.engine import Database
from assay.infra.sql.operators import SqlOperatorStore
from assay.infra.sql.wrappers import SqlWrapperStore
from assay.wrapper.match import route_key
from assay.wrapper.model import UpstreamAuth, WrapperConfig
from tests.fakes.clock import FrozenClock

AT = datetime(2026, 3, 1, 12, 0, 0, 123_456, UTC)
CLOCK = FrozenClock(AT)


@pytest.fixture
async def store(database: Database) -> SqlWrapperStore:
    accounts = SqlOperatorStore(database)
    for who in ("one", "two"):
        made = Operator(who, f"{who}@b.cc", who, Role.OPERATOR, Plan.FREE, Decimal(0), AT, AT)
        await accounts.add(made, "hash")
    return SqlWrapperStore(database)


def config(config_id: str = "a", who: str = "one", path: str = "/quote") -> WrapperConfig:
    return WrapperConfig(
        id=config_id,
        operator_id=who,
        path=path,
        method="GET",
        price=2**52,
        description="Übersetzt",
        rate_limit=None,
        target_url="https://up.example/base",
        protocol="x402",
        network="eip155:8453",
        payout_address="0x" + "ab" * 20,
        trust_enabled=True,
        min_score=66.6,
        identity_proof="asserted",
        settle="before",
        max_body_bytes=10 * 2**20,
        timeout_ms=30_000,
        auth=UpstreamAuth("x-api-key", bytes(range(256))),
        active=True,
        created_at=AT,
        pass_response_headers=("x-frame-options", "cdn-cache-control"),
        cors_origins=("https://page.example", "*"),
    )


async def add(store: SqlWrapperStore, made: WrapperConfig) -> bool:
    return await store.add(made, route_key(made.method, made.path))


async def test_a_config_comes_back_as_it_was(store: SqlWrapperStore) -> None:
    bare = replace(config("b", path="/free"), price=0, payout_address=None, auth=None)
    bare = replace(bare, rate_limit=10**9, trust_enabled=False)
    assert await add(store, config())
    assert await add(store, bare)
    assert {c.id: c for c in await store.list("one")} == {"a": config(), "b": bare}
    assert {c.id: c for c in await store.active("one")} == {"a": config(), "b": bare}


async def test_the_newest_is_listed_first(store: SqlWrapperStore) -> None:
    for n in (2, 0, 1):
        made = replace(config(f"c{n}", path=f"/{n}"), created_at=AT + timedelta(seconds=n))
        assert await add(store, made)
    assert [c.id for c in await store.list("one")] == ["c2", "c1", "c0"]


async def test_two_active_configs_never_answer_the_same(store: SqlWrapperStore) -> None:
    assert await add(store, config("a", path="/items/{id}"))
    assert not await add(store, config("b", path="/items/{name}"))
    assert await add(store, config("c", "two", "/items/{id}"))
    assert await store.deactivate("one", "a")
    assert await add(store, config("b", path="/items/{name}"))
    assert [(c.id, c.active) for c in await store.active("one")] == [("b", True)]
    assert {(c.id, c.active) for c in await store.list("one")} == {("a", False), ("b", True)}


async def test_of_many_at_once_one_is_added(store: SqlWrapperStore) -> None:
    tries = (add(store, config(f"c{n}")) for n in range(8))
    async with asyncio.TaskGroup() as group:
        done = [group.create_task(one) for one in tries]
    assert sorted(task.result() for task in done) == [False] * 7 + [True]
    assert len(await store.list("one")) == 1


async def test_a_config_of_no_account_or_of_a_known_id_is_a_fault(store: SqlWrapperStore) -> None:
    with pytest.raises(IntegrityError):
        await add(store, config("a", "nobody"))
    assert await add(store, config("a"))
    with pytest.raises(IntegrityError):
        await add(store, config("a", path="/other"))


async def test_nobody_deactivates_or_reseals_what_is_anothers(
    store: SqlWrapperStore, database: Database
) -> None:
    assert await add(store, config())
    told = note(CLOCK, TERMINAL, "endpoint.deactivated", "two", "a")
    assert not await store.deactivate("two", "a", told)
    assert not await store.deactivate("one", "z", told)
    theirs = replace(config(who="two"), auth=UpstreamAuth("x-api-key", b"stolen"))
    await store.reseal(theirs, told)
    assert await store.list("one") == [config()]
    assert await store.list("two") == []
    assert await SqlAuditStore(database).page_for_admin(None, None, 10) == []


async def test_deactivating_twice_is_no_error(store: SqlWrapperStore) -> None:
    assert await add(store, config())
    assert await store.deactivate("one", "a")
    assert await store.deactivate("one", "a")
    assert await store.active("one") == []


async def test_a_resealed_secret_changes_nothing_else_and_is_in_the_trail(
    store: SqlWrapperStore, database: Database
) -> None:
    assert await add(store, config())
    anew = replace(config(), auth=UpstreamAuth("x-api-key", b"sealed anew"))
    told = note(CLOCK, TERMINAL, "endpoint.resealed", "one", "a")
    await store.reseal(anew, told)
    assert await store.list("one") == [anew]
    assert await SqlAuditStore(database).page_for_admin("one", None, 10) == [told]


async def test_a_suspended_account_has_no_active_config(
    store: SqlWrapperStore, database: Database
) -> None:
    assert await add(store, config())
    accounts = SqlOperatorStore(database)
    for suspended, found in ((True, []), (False, [config()])):
        told = note(CLOCK, TERMINAL, "account.changed", "one")
        await accounts.change_for_admin("one", Change(suspended=suspended), AT, told)
        assert await store.active("one") == found
        assert await store.list("one") == [config()]


async def test_a_config_and_its_note_are_stored_together_or_not_at_all(
    store: SqlWrapperStore, database: Database
) -> None:
    trail = SqlAuditStore(database)
    told = note(CLOCK, TERMINAL, "endpoint.created", "one", "a")
    assert await store.add(config(), "GET /quote", told)
    with pytest.raises(IntegrityError):
        await store.add(config("b", path="/b"), "GET /b", told)  # the note is there already
    assert [c.id for c in await store.list("one")] == ["a"]
    assert await trail.page_for_admin("one", None, 10) == [told]
