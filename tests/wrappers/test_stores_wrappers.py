"""Wrapper configs, on every database: one of a kind, each operator's own, none of the suspended."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from assay.accounts.model import AccountChange, Operator, Plan, Role
from assay.accounts.store_operators import SqlOperatorStore
from assay.admin.store_retention import SqlRetention
from assay.audit.service import TERMINAL, Actor, new_entry
from assay.audit.store import SqlAuditStore
from assay.db.engine import Database
from assay.wrappers.history import FieldChange, changes_between
from assay.wrappers.matching import route_key
from assay.wrappers.model import UpstreamAuth, WrapperConfig
from assay.wrappers.store import SqlWrapperStore
from tests.support.fakes.clock import FrozenClock

AT = datetime(2026, 3, 1, 12, 0, 0, 123_456, UTC)
CLOCK = FrozenClock(AT)
HOUR = timedelta(hours=1)


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
    told = new_entry(CLOCK, TERMINAL, "endpoint.deactivated", "two", "a")
    assert not await store.deactivate("two", "a", told)
    assert not await store.deactivate("one", "z", told)
    await store.reseal("two", "a", bytes(range(256)), b"stolen", told)
    stolen = replace(config(who="two"), revision=2, target_url="https://theirs.example")
    assert await store.change(stolen, [], told) == "stale"
    assert await store.find("two", "a") is None
    assert await store.history("two", "a", 10, 0) == ([], 0)
    assert await store.revision("two", "a", 1) is None
    assert await store.quoted("two", "a", "eip155:8453", 2**52, AT - HOUR) == []
    assert await store.sealed("two") == []
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
    told = new_entry(CLOCK, TERMINAL, "endpoint.resealed", "one", "a")
    assert await store.sealed("one") == [("a", bytes(range(256)))]
    await store.reseal("one", "a", bytes(range(256)), b"sealed anew", told)
    await store.reseal("one", "a", bytes(range(256)), b"another", told)  # it is no more
    assert await store.list("one") == [anew]
    assert await store.revision("one", "a", 1) == anew
    assert await store.sealed("one") == [("a", b"sealed anew")]
    assert await SqlAuditStore(database).page_for_admin("one", None, 10) == [told]


async def test_a_suspended_account_has_no_active_config(
    store: SqlWrapperStore, database: Database
) -> None:
    assert await add(store, config())
    accounts = SqlOperatorStore(database)
    for suspended, found in ((True, []), (False, [config()])):
        told = new_entry(CLOCK, TERMINAL, "account.changed", "one")
        await accounts.change_for_admin("one", AccountChange(suspended=suspended), AT, told)
        assert await store.active("one") == found
        assert await store.list("one") == [config()]


async def test_a_config_and_its_note_are_stored_together_or_not_at_all(
    store: SqlWrapperStore, database: Database
) -> None:
    trail = SqlAuditStore(database)
    told = new_entry(CLOCK, TERMINAL, "endpoint.created", "one", "a")
    assert await store.add(config(), "GET /quote", told)
    with pytest.raises(IntegrityError):
        await store.add(config("b", path="/b"), "GET /b", told)  # the note is there already
    assert [c.id for c in await store.list("one")] == ["a"]
    assert await trail.page_for_admin("one", None, 10) == [told]


async def changed(
    store: SqlWrapperStore, before: WrapperConfig, seconds: int = 0, **fields: Any
) -> tuple[WrapperConfig, str]:
    """The next revision of a config, so many seconds after the first; and what became of it."""
    after = replace(before, **{"revision": before.revision + 1, **fields})
    clock = FrozenClock(AT + timedelta(seconds=seconds))
    told = new_entry(clock, Actor("operator", "one"), "endpoint.changed", "one", before.id)
    return after, await store.change(after, changes_between(before, after), told)


async def test_what_a_config_has_been_is_kept_and_is_in_the_trail(
    store: SqlWrapperStore, database: Database
) -> None:
    assert await add(store, config())
    second, result = await changed(store, config(), 5, price=7, target_url="https://b.example")
    assert result == "changed"
    assert await store.list("one") == [second]
    assert await store.active("one") == [second]
    newest, first = (await store.history("one", "a", 10, 0))[0]
    assert (first.config, first.at, first.until) == (config(), AT, AT + timedelta(seconds=5))
    assert (newest.config, newest.until) == (second, None)
    assert (newest.actor_kind, newest.actor_id) == ("operator", "one")
    assert newest.action == "endpoint.changed"
    assert newest.changes == [
        FieldChange("pricePerCall", "4503599627.370496", "0.000007"),
        FieldChange("targetUrl", "https://up.example/base", "https://b.example"),
    ]
    assert await store.history("one", "a", 1, 1) == ([first], 2)
    assert await store.revision("one", "a", 1) == config()
    assert await store.revision("one", "a", 3) is None
    [told] = await SqlAuditStore(database).page_for_admin("one", None, 10)
    assert told.action == "endpoint.changed"


async def test_a_change_made_from_an_old_reading_comes_to_nothing(store: SqlWrapperStore) -> None:
    assert await add(store, config())
    tries = (changed(store, config(), price=n) for n in range(8))
    async with asyncio.TaskGroup() as group:
        done = [group.create_task(one) for one in tries]
    results = [task.result() for task in done]
    assert sorted(result for _, result in results) == ["changed"] + ["stale"] * 7
    [kept] = [made for made, result in results if result == "changed"]
    assert await store.list("one") == [kept]
    assert (await store.history("one", "a", 10, 0))[1] == 2


async def test_a_change_takes_no_path_that_another_config_has(store: SqlWrapperStore) -> None:
    assert await add(store, config())
    assert await add(store, config("b", path="/items/{id}"))
    _, result = await changed(store, config(), path="/items/{name}")
    assert result == "overlaps"
    assert await store.find("one", "a") == config()
    assert (await store.history("one", "a", 10, 0))[1] == 1
    stopped, result = await changed(store, config(), path="/items/{name}", active=False)
    assert result == "changed"  # it answers nobody
    again, result = await changed(store, stopped, active=True)
    assert result == "overlaps"
    assert await store.deactivate("one", "b")
    assert (await changed(store, stopped, active=True))[1] == "changed"
    assert await store.find("one", "a") == again


async def test_deactivating_is_a_revision_and_doing_it_twice_is_none(
    store: SqlWrapperStore,
) -> None:
    assert await add(store, config())
    for _ in range(2):
        assert await store.deactivate("one", "a")
    newest, _ = (await store.history("one", "a", 10, 0))[0]
    assert newest.config == replace(config(), active=False, revision=2)
    assert newest.changes == [FieldChange("active", True, False)]  # noqa: FBT003 - its values


async def test_only_what_was_asked_for_while_it_answered_counts_as_quoted(
    store: SqlWrapperStore,
) -> None:
    made = replace(config(), price=1)
    assert await add(store, made)
    steps: list[dict[str, Any]] = [
        {"price": 2},
        {"active": False, "price": 3},  # a price that nobody was asked for
        {"active": True, "price": 4, "network": "eip155:84532"},
        {"price": 4, "network": "eip155:84532", "target_url": ""},
        {"price": 1, "target_url": "https://up.example/base", "network": "eip155:8453"},
    ]
    for number, fields in enumerate(steps, 1):
        made, result = await changed(store, made, number * 10, **fields)
        assert result == "changed"

    async def quoted(price: int, network: str = "eip155:8453", since: int = 0) -> list[int]:
        moment = AT + timedelta(seconds=since)
        found = await store.quoted("one", "a", network, price, moment)
        return [one.config.revision for one in found]

    assert await quoted(1) == [6, 1]
    assert await quoted(1, since=10) == [6]  # the first ended then
    assert await quoted(2) == [2]
    assert await quoted(3) == []
    assert await quoted(4) == []
    assert await quoted(4, "eip155:84532") == [4]
    assert await quoted(4, "eip155:84532", since=40) == []


async def test_what_a_config_was_comes_with_the_accounts_rate_of_now(
    store: SqlWrapperStore, database: Database
) -> None:
    """Quotes of earlier terms are honoured at the rate that its account has by then."""
    assert await add(store, config())
    assert (await changed(store, config(), 5, price=7))[1] == "changed"
    rate = Decimal("0.05")
    told = new_entry(CLOCK, TERMINAL, "account.changed", "one")
    change = AccountChange(fee_rate=rate)
    await SqlOperatorStore(database).change_for_admin("one", change, AT, told)
    [quoted] = await store.quoted("one", "a", config().network, config().price, AT)
    found = [quoted.config, *await store.list("one"), *await store.active("one")]
    found += [one.config for one in (await store.history("one", "a", 9, 0))[0]]
    for one in (await store.find("one", "a"), await store.revision("one", "a", 1), *found):
        assert one is not None
        assert one.fee_rate == rate


async def test_a_revision_leads_nowhere_once_it_must_not_be_called(
    store: SqlWrapperStore, database: Database
) -> None:
    """While its account is suspended, and when the secret that belongs to it is forgotten."""
    assert await add(store, config())
    assert (await changed(store, config(), 5, price=7))[1] == "changed"
    accounts = SqlOperatorStore(database)
    for suspended, target in ((True, ""), (False, "https://up.example/base")):
        told = new_entry(CLOCK, TERMINAL, "account.changed", "one")
        await accounts.change_for_admin("one", AccountChange(suspended=suspended), AT, told)
        found = await store.revision("one", "a", 1)
        assert found == replace(config(), target_url=target)
    await SqlRetention(database).forget_upstream_secrets(AT + timedelta(seconds=5))
    assert await store.revision("one", "a", 1) == config()  # it ended only then
    await SqlRetention(database).forget_upstream_secrets(AT + HOUR)
    assert await store.revision("one", "a", 1) == replace(config(), target_url="", auth=None)
    newest = await store.revision("one", "a", 2)
    assert newest is not None
    assert newest.auth == config().auth
    assert await store.owner_for_admin("a") == "one"
    assert await store.owner_for_admin("z") is None
