"""Few requests cannot keep all the others waiting, and nobody is blamed for what waits for us."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from assay.common.costs import address_bearer, serve_for
from assay.common.egress_budget import ANYBODY, RESERVED, EgressUse, egress_use
from assay.net.egress.ports import EgressError, Failure
from assay.net.egress.request_slots import (
    ConnectionSlots,
    Slots,
    SlotShare,
    count_own_waits,
    new_holder,
)

PLACES = {"host": SlotShare(4, 2)}


async def take(slots: Slots, use: EgressUse = ANYBODY, *, waits_s: float = 0.0) -> object:
    with egress_use(use):
        holder = new_holder()
        ends_s = asyncio.get_running_loop().time() + waits_s
        await slots.take(PLACES, holder, ends_s)
        return holder


async def why_not(slots: Slots, use: EgressUse = ANYBODY) -> Failure:
    with pytest.raises(EgressError) as refused:
        await take(slots, use)
    assert not refused.value.is_sent
    return refused.value.failure


async def test_a_gate_finds_a_place_whatever_anybody_else_does() -> None:
    slots = Slots()
    for _ in range(2):
        await take(slots)
    assert await why_not(slots) is Failure.BUDGET
    for _ in range(2):
        await take(slots, RESERVED)
    assert await why_not(slots, RESERVED) is Failure.BUDGET


async def test_what_waits_only_for_requests_of_its_own_visit_waits_for_its_host() -> None:
    slots = Slots()
    with count_own_waits(is_visit=True) as visit:
        for _ in range(2):
            await take(slots)
        assert await why_not(slots) is Failure.TIMEOUT
        assert visit.waited_s == 0.0
    with count_own_waits(is_visit=True):
        assert await why_not(slots) is Failure.BUDGET


async def test_a_gate_whose_visit_has_its_half_waits_for_its_host() -> None:
    """Strangers' slow calls in the other half do not excuse a host that does not answer."""
    slots = Slots()
    for _ in range(2):
        await take(slots)
    with count_own_waits(is_visit=True):
        for _ in range(2):
            await take(slots, RESERVED)
        assert await why_not(slots, RESERVED) is Failure.TIMEOUT


async def test_whoever_waits_for_longest_gets_the_next_place_and_nothing_is_kept() -> None:
    slots = Slots()
    held = [await take(slots) for _ in range(2)]
    order: list[int] = []

    async def wait(number: int) -> None:
        holder = await take(slots, waits_s=60.0)
        order.append(number)
        slots.give_back(PLACES, holder)  # type: ignore[arg-type] - what `take` returned

    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(wait(number))
            await asyncio.sleep(0)
        for holder in held:
            slots.give_back(PLACES, holder)  # type: ignore[arg-type] - what `take` returned
    assert order == [0, 1, 2, 3, 4]
    assert not slots._keys


async def test_who_goes_away_while_waiting_leaves_nothing() -> None:
    slots = Slots()
    for _ in range(2):
        await take(slots)
    waiting = asyncio.get_running_loop().create_task(take(slots, waits_s=60.0))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert not slots._keys["host"].waiters


@asynccontextmanager
async def full_of_calls(connections: ConnectionSlots) -> AsyncGenerator[None]:
    """Many accounts have as many connections as they can to as many domains."""
    held = asyncio.Event()

    async def hold(account: str, number: int) -> None:
        with egress_use(EgressUse(account=account)):
            async with connections.one(f"{account}-{number}.example", 0.0):
                await held.wait()

    calls = [
        asyncio.get_running_loop().create_task(hold(f"a{n}", m))
        for n in range(30)
        for m in range(10)
    ]
    await asyncio.sleep(0)
    try:
        yield
    finally:
        held.set()
        await asyncio.wait(calls)
        refused = [call for call in calls if isinstance(call.exception(), EgressError)]
        assert len(calls) - len(refused) == 80


async def test_visits_find_connections_whatever_callers_do() -> None:
    connections = ConnectionSlots()
    async with full_of_calls(connections):
        with egress_use(EgressUse(account="b")), pytest.raises(EgressError) as refused:
            async with connections.one("b.example", 0.0):
                pass
        assert refused.value.failure is Failure.BUDGET
        for use in (ANYBODY, RESERVED, EgressUse(account="b")):
            with egress_use(use), count_own_waits(is_visit=True):
                async with connections.one("agent.example", 0.0):
                    pass


async def test_one_account_has_few_connections_and_one_domain_a_share() -> None:
    connections = ConnectionSlots()
    got: list[str] = []

    async def call(account: str, host: str, held: asyncio.Event) -> None:
        with egress_use(EgressUse(account=account)):
            async with connections.one(host, 0.0):
                got.append(account)
                await held.wait()

    held = asyncio.Event()
    calls = [
        asyncio.get_running_loop().create_task(call("a", f"a{n}.example", held)) for n in range(20)
    ]
    calls += [
        asyncio.get_running_loop().create_task(call(f"c{n}", "same.example", held))
        for n in range(40)
    ]
    await asyncio.sleep(0)
    assert got.count("a") == 8
    assert len(got) - 8 == 16
    held.set()
    await asyncio.wait(calls)
    assert sum(isinstance(call.exception(), EgressError) for call in calls) == 60 - len(got)
    assert not connections._slots._keys


async def test_one_address_holds_a_fifth_of_what_visits_have_however_many_it_begins() -> None:
    connections = ConnectionSlots()
    held = asyncio.Event()
    got: list[str] = []

    async def visit(address: str, number: int, use: EgressUse = ANYBODY) -> None:
        serve_for(lambda: address_bearer(address))
        with egress_use(use), count_own_waits(is_visit=True):
            async with connections.one(f"agent{number}.example", 0.0):
                got.append(address)
                await held.wait()

    loop = asyncio.get_running_loop()
    visits = [loop.create_task(visit("192.0.2.1", n)) for n in range(80)]
    visits += [loop.create_task(visit(f"2001:db8::{n:x}", 100 + n)) for n in range(80)]
    visits += [loop.create_task(visit("192.0.2.1", 200 + n, RESERVED)) for n in range(20)]
    visits += [loop.create_task(visit("192.0.2.9", 300))]
    await asyncio.sleep(0)
    assert got.count("192.0.2.1") == 16 + 20
    assert sum(one.startswith("2001") for one in got) == 16
    assert got.count("192.0.2.9") == 1
    held.set()
    await asyncio.wait(visits)
    refused = [one.exception() for one in visits if one.exception() is not None]
    assert {one.failure for one in refused if isinstance(one, EgressError)} == {Failure.BUDGET}
    assert len(refused) == len(visits) - len(got)
    assert not connections._slots._keys


async def test_visits_that_nobody_asked_for_have_what_there_is() -> None:
    connections = ConnectionSlots()
    held = asyncio.Event()

    async def visit(number: int) -> None:
        with count_own_waits(is_visit=True):
            async with connections.one(f"agent{number}.example", 0.0):
                await held.wait()

    visits = [asyncio.get_running_loop().create_task(visit(n)) for n in range(100)]
    await asyncio.sleep(0)
    held.set()
    await asyncio.wait(visits)
    assert sum(one.exception() is None for one in visits) == 80
