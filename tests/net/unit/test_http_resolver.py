"""Slow names of few accounts or domains do not keep everybody else's from being looked up."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from assay.common.egress_budget import ANYBODY, RESERVED, EgressUse, egress_use
from assay.net import resolver as resolving
from assay.net.egress.ports import EgressError, Failure
from assay.net.resolver import LOOKUPS_MAX, SystemResolver
from tests.support.fakes.name_servers import NameServers


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServers]:
    made = NameServers(monkeypatch)
    yield made
    made.answer.set()


@pytest.fixture
async def resolver(
    servers: NameServers, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SystemResolver]:
    monkeypatch.setattr(resolving, "WAIT_S", 0.0)  # whoever would wait is told so at once
    made = SystemResolver()
    yield made
    servers.answer.set()
    made.close()


async def begin(resolver: SystemResolver, use: EgressUse, *hosts: str) -> list[asyncio.Task[str]]:
    async def look_up(host: str) -> str:
        with egress_use(use):
            try:
                return ",".join(await resolver.resolve(host, 80))
            except EgressError as error:
                return error.failure.value
            except OSError as error:
                return str(error)

    tasks = [asyncio.get_running_loop().create_task(look_up(host)) for host in hosts]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


def refused(tasks: list[asyncio.Task[str]]) -> int:
    return sum(task.done() and task.result() == Failure.BUDGET for task in tasks)


async def test_one_account_has_two_look_ups_under_way(resolver: SystemResolver) -> None:
    names = [f"slow.a{n}.example" for n in range(10)]
    assert refused(await begin(resolver, EgressUse(account="a"), *names)) == 8


async def test_names_of_one_domain_have_two_and_gates_two_more(resolver: SystemResolver) -> None:
    for n in range(10):
        tasks = await begin(resolver, EgressUse(account=f"a{n}"), f"slow{n}.same.example")
        assert refused(tasks) == (n >= 2)
    gates = await begin(resolver, RESERVED, *(f"slow-g{n}.same.example" for n in range(4)))
    assert refused(gates) == 2


async def test_gates_are_answered_while_strangers_hold_all_they_can(
    resolver: SystemResolver,
) -> None:
    for n in range(LOOKUPS_MAX):
        await begin(resolver, EgressUse(account=f"a{n}"), *(f"slow.{n}-{m}.test" for m in (1, 2)))
    [told] = await begin(resolver, ANYBODY, "fast.example")
    assert told.result() == Failure.BUDGET
    [told] = await begin(resolver, RESERVED, "fast.example")
    assert await told == "192.0.2.7"


async def test_a_thread_counts_until_it_is_free_though_nobody_waits_for_it(
    resolver: SystemResolver, servers: NameServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "LOOKUP_S", 0.0)
    for n in range(2):
        with pytest.raises(TimeoutError):
            await resolver.resolve(f"slow{n}.same.example", 80)
    monkeypatch.setattr(resolving, "LOOKUP_S", 60.0)
    with pytest.raises(EgressError) as told:
        await resolver.resolve("fast.same.example", 80)
    assert told.value.failure is Failure.BUDGET
    servers.answer.set()
    monkeypatch.setattr(resolving, "WAIT_S", 60.0)
    assert list(await resolver.resolve("fast.same.example", 80)) == ["192.0.2.7"]


async def test_many_who_ask_for_one_name_hold_one_thread(
    resolver: SystemResolver, servers: NameServers
) -> None:
    tasks = await begin(resolver, EgressUse(account="a"), *["slow.example"] * 50)
    tasks += await begin(resolver, EgressUse(account="b"), *["slow.example"] * 50)
    servers.answer.set()
    assert {await task for task in tasks} == {"no such name"}
    assert servers.asked["slow.example"] == 1
    assert not resolver._under_way
    assert not resolver._slots._keys
