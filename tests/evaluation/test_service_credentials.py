"""Deposited credentials at rest: sealed, bounded, rotated and erased, in both databases."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import insert, select

from assay.common.errors import InvalidRequest
from assay.common.keyring import SecretBox
from assay.control.store import SqlControlStore
from assay.db.engine import Database, to_us
from assay.db.schema.everything import control_keys, service_credentials
from assay.evaluation.credentials import (
    CONTROL_COUNTS,
    OTHERS_MAX,
    PER_AGENT_MAX,
    PER_OWNER_MAX,
    ControlUnproven,
    CredentialLimitReached,
    CredentialNotFound,
    NewCredential,
    ServiceCredentials,
)
from assay.evaluation.store_credentials import SqlServiceCredentials
from assay.evaluation.store_visits import SqlVisitSchedule
from assay.registries.model import RegistrationFile, Service, Subject
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.closed_agents import SECRET
from tests.support.fakes.trust import NETWORK, OWNER, STRANGER, onchain_agent

HOST = "https://shared.example"
KEY = "at https://shared.example:443/"


def subject(agent_id: str = "7", owner: str = OWNER, url: str = HOST + "/alice/a2a") -> Subject:
    file = RegistrationFile(name="Closed", services=(Service("A2A", url),))
    agent = replace(onchain_agent(agent_id), owner=owner, registration=file)
    return Subject(NETWORK, agent_id, owner, agent)


class Deposits:
    """The use case over one database, a clock, and who was proven to control what."""

    def __init__(self, database: Database, *secrets: str) -> None:
        self.database, self.clock = database, FrozenClock()
        self.rows = SqlServiceCredentials(database)
        self.use = self.under(*(secrets or ("first",)))

    def under(self, *secrets: str) -> ServiceCredentials:
        box = SecretBox.from_secrets(*secrets)
        control = SqlControlStore(self.database, self.clock)
        return ServiceCredentials(self.rows, box, control, self.clock, lambda _: False)

    async def proves(self, key: str, agent_id: str = "7", *, disputed: bool = False) -> None:
        row = {
            "subject_key": subject(agent_id).key,
            "key": key,
            "proof": "dns",
            "disputed": disputed,
            "seen_us": to_us(self.clock.now()),
        }
        async with self.database.write() as connection:
            await connection.execute(insert(control_keys).values(row))

    async def deposit(self, of: Subject | None = None, url: str = HOST + "/alice") -> str:
        asked = NewCredential(url, "header", "Authorization", f"Bearer {SECRET}")
        return (await self.use.deposit(of or subject(), asked)).id

    async def sealed(self) -> list[bytes]:
        found = select(service_credentials.c.sealed).order_by(service_credentials.c.id)
        async with self.database.read() as connection:
            return list((await connection.execute(found)).scalars())


@pytest.fixture
async def deposits(database: Database) -> Deposits:
    made = Deposits(database)
    await made.proves(KEY + "alice")
    return made


async def test_it_is_sealed_at_rest_and_opened_for_a_visit(deposits: Deposits) -> None:
    await deposits.deposit()
    assert all(SECRET.encode() not in one for one in await deposits.sealed())
    used = await deposits.use.usable(subject())
    assert [(one.name, one.value) for one in used] == [("Authorization", f"Bearer {SECRET}")]
    assert SECRET not in repr(used)
    assert SECRET not in repr(await deposits.use.list(subject()))


async def test_a_deposit_takes_the_place_of_one_for_the_same_address(deposits: Deposits) -> None:
    first = await deposits.deposit()
    second = await deposits.deposit(url="https://SHARED.example:443/alice/")
    assert [one.id for one in await deposits.use.list(subject())] == [second]
    assert first != second


async def test_keys_are_rotated_and_what_no_key_opens_is_not_used(deposits: Deposits) -> None:
    await deposits.deposit()
    deposits.use = deposits.under("second", "first")
    assert len(await deposits.use.usable(subject())) == 1
    assert await deposits.use.reseal() == 1
    assert await deposits.use.reseal() == 0
    assert len(await deposits.under("second").usable(subject())) == 1
    assert await deposits.under("first").usable(subject()) == []


async def test_a_sealed_value_moved_to_another_agent_does_not_open(deposits: Deposits) -> None:
    await deposits.deposit()
    async with deposits.database.write() as connection:
        moved = service_credentials.update().values(subject_key=subject("8").key)
        await connection.execute(moved)
    await deposits.proves(KEY + "alice", "8")
    assert await deposits.use.usable(subject("8")) == []


async def test_a_transfer_erases_what_the_former_owner_deposited(deposits: Deposits) -> None:
    await deposits.deposit()
    sold = subject(owner=STRANGER)
    assert await deposits.use.usable(sold) == []  # not used at once
    deposits.clock.move(61)
    assert await deposits.use.usable(sold) == []
    assert await deposits.sealed() == []


async def test_who_still_takes_the_former_owner_for_the_owner_erases_nothing_new(
    deposits: Deposits,
) -> None:
    await deposits.deposit(subject(owner=STRANGER))
    assert await deposits.use.usable(subject()) == []
    assert len(await deposits.use.usable(subject(owner=STRANGER))) == 1


async def test_of_an_agent_and_of_an_owner_there_are_so_many_and_not_more(
    deposits: Deposits,
) -> None:
    for number in range(PER_AGENT_MAX):
        await deposits.deposit(url=f"{HOST}/alice/{number}")
    with pytest.raises(CredentialLimitReached):
        await deposits.deposit(url=f"{HOST}/alice/more")
    made = PER_AGENT_MAX
    for agent_id in range(8, 20):
        await deposits.proves(KEY + "alice", str(agent_id))
        for number in range(PER_AGENT_MAX):
            if made == PER_OWNER_MAX:
                with pytest.raises(CredentialLimitReached):
                    await deposits.deposit(subject(str(agent_id)), f"{HOST}/alice/{number}")
                return
            await deposits.deposit(subject(str(agent_id)), f"{HOST}/alice/{number}")
            made += 1


async def _made(deposit: Awaitable[str]) -> bool:
    try:
        return bool(await deposit)
    except CredentialLimitReached:
        return False


async def test_deposits_at_once_do_not_pass_the_bound(deposits: Deposits) -> None:
    asked = [deposits.deposit(url=f"{HOST}/alice/{n}") for n in range(PER_AGENT_MAX + 4)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_made(one)) for one in asked]
    assert sum(task.result() for task in tasks) == PER_AGENT_MAX
    assert len(await deposits.sealed()) == PER_AGENT_MAX


async def test_it_is_erased_by_hand_once(deposits: Deposits) -> None:
    made = await deposits.deposit()
    with pytest.raises(CredentialNotFound):
        await deposits.use.remove(subject("8"), made)
    await deposits.use.remove(subject(), made)
    with pytest.raises(CredentialNotFound):
        await deposits.use.remove(subject(), made)


async def test_an_agent_that_is_no_more_leaves_none(deposits: Deposits) -> None:
    await deposits.deposit()
    schedule = SqlVisitSchedule(deposits.database, deposits.clock, lambda: 0.5)
    await schedule.drop(subject().key)
    assert await deposits.sealed() == []


async def test_one_that_no_visit_has_is_erased_after_its_time(deposits: Deposits) -> None:
    used, unused = await deposits.deposit(), await deposits.deposit(url=HOST + "/alice/b")
    deposits.clock.move(timedelta(days=10).total_seconds())
    await deposits.use.note(subject(), {used: "entered"})
    before = deposits.clock.now() - timedelta(days=5)
    assert await deposits.rows.remove_unused(before, 10) == 1
    kept = await deposits.use.list(subject())
    assert [(one.id, one.outcome, one.used_at) for one in kept] == [
        (used, "entered", deposits.clock.now())
    ]
    assert unused not in {one.id for one in kept}


async def test_of_a_shared_host_the_proven_path_counts_and_the_longest(
    deposits: Deposits,
) -> None:
    for url in (HOST, HOST + "/", HOST + "/bob", HOST + "/alice2"):
        with pytest.raises(ControlUnproven):
            await deposits.deposit(url=url)
    await deposits.deposit()
    await deposits.proves(KEY + "alice/bob", "9")
    await deposits.proves(KEY + "alice/a%", "9", disputed=True)
    (used,) = await deposits.use.usable(subject())
    assert used.is_for(HOST + "/alice/x")
    assert not used.is_for(HOST + "/alice/bob/x")
    with pytest.raises(ControlUnproven):
        await deposits.deposit(url=HOST + "/alice/bob")


async def test_where_too_many_others_are_nothing_is_sent(deposits: Deposits) -> None:
    await deposits.deposit()
    for number in range(OTHERS_MAX + 1):
        await deposits.proves(f"{KEY}alice/{number}", "9")
    assert await deposits.use.usable(subject()) == []


async def test_disputed_and_old_control_counts_for_nothing(deposits: Deposits) -> None:
    await deposits.proves("at https://other.example:443/", disputed=True)
    elsewhere = subject(url="https://other.example/a2a")
    with pytest.raises(ControlUnproven):
        await deposits.deposit(elsewhere, "https://other.example/")
    await deposits.deposit()
    deposits.clock.move(CONTROL_COUNTS.total_seconds() + 1)
    assert await deposits.use.usable(subject()) == []


async def test_a_service_that_is_no_longer_declared_gets_nothing(deposits: Deposits) -> None:
    await deposits.deposit()
    assert await deposits.use.usable(subject(url="https://other.example/a2a")) == []
    with pytest.raises(InvalidRequest):
        await deposits.deposit(subject(url="https://other.example/a2a"))
