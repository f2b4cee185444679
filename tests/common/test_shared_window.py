"""Shared counts: one suite for the fake the laws are tried on, a supervisor's, and a Valkey's."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Protocol

import pytest

from assay.cli.worker_link import Link, SupervisorWindow, counting
from assay.common.errors import Unavailable
from assay.common.quota_lease import (
    COUNTED_S,
    KEYS_MAX,
    Grant,
    LocalWindow,
    SharedWindow,
    WindowRequest,
)
from assay.net.valkey import ValkeyWindow, _key, state_address
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.window import MemoryWindow
from tests.support.valkey import ValkeyServer, valkey


class CountingService(Protocol):
    """A count, and a way to let time pass for it."""

    window: SharedWindow

    def pass_time(self, key: str, seconds: int) -> None: ...


class InMemory:
    def __init__(self) -> None:
        self.clock = FrozenClock()
        self.window: SharedWindow = MemoryWindow(self.clock)

    def pass_time(self, key: str, seconds: int) -> None:
        del key
        self.clock.move(seconds)


class AtSupervisor:
    """The supervisor's counts, asked through a socket pair as a worker asks."""

    def __init__(self, clock: FrozenClock, window: SharedWindow) -> None:
        self.clock = clock
        self.window = window

    def pass_time(self, key: str, seconds: int) -> None:
        del key
        self.clock.move(seconds)


@asynccontextmanager
async def at_supervisor() -> AsyncGenerator[AtSupervisor]:
    clock, (own, other) = FrozenClock(), socket.socketpair()
    supervisor = await Link.open(own, {"count": counting(LocalWindow(clock))})
    worker = await Link.open(other, {})
    async with asyncio.TaskGroup() as group:
        both = [group.create_task(link.run()) for link in (supervisor, worker)]
        yield AtSupervisor(clock, SupervisorWindow(worker))
        for one in both:
            one.cancel()


class InValkey:
    """Time passes by making what is there older: the server's own clock cannot be moved."""

    def __init__(self, server: ValkeyServer) -> None:
        self.server = server
        self.real = ValkeyWindow(state_address(server.url))
        self.window: SharedWindow = self.real

    def pass_time(self, key: str, seconds: int) -> None:
        for second, units in lent(self.server, key).items():
            self.server.say("HDEL", _key(key).decode(), second)
            self.server.say("HSET", _key(key).decode(), second - seconds, units)


def lent(server: ValkeyServer, key: str) -> dict[int, int]:
    found = server.say("HGETALL", _key(key).decode()).split("\r\n")
    values = [line for line in found if line and line[0] not in "*$"]
    return {int(a): int(b) for a, b in zip(values[::2], values[1::2], strict=True)}


@pytest.fixture
def server() -> ValkeyServer:
    running = valkey()
    running.say("FLUSHALL")
    return running


@pytest.fixture(params=["memory", "supervisor", "valkey"])
async def service(request: pytest.FixtureRequest) -> AsyncGenerator[CountingService]:
    if request.param == "memory":
        yield InMemory()
        return
    if request.param == "supervisor":
        async with at_supervisor() as made:
            yield made
        return
    valkey().say("FLUSHALL")
    there = InValkey(valkey())
    yield there
    await there.real.aclose()


@pytest.fixture
async def window(server: ValkeyServer) -> AsyncGenerator[ValkeyWindow]:
    made = ValkeyWindow(state_address(server.url))
    yield made
    await made.aclose()


async def one(window: SharedWindow, ask: WindowRequest) -> Grant:
    (grant,) = await window.ask([ask])
    return grant


async def test_who_waits_gets_all_there_is_and_never_more_than_the_limit(
    service: CountingService,
) -> None:
    first = await one(service.window, WindowRequest("k", 10, need=7, want=7))
    second = await one(service.window, WindowRequest("k", 10, need=7, want=7))
    third = await one(service.window, WindowRequest("k", 10, need=1, want=1))
    assert [(g.units, g.left) for g in (first, second, third)] == [(7, 3), (3, 0), (0, 0)]


async def test_what_is_only_wanted_is_lent_sparingly(service: CountingService) -> None:
    grant = await one(service.window, WindowRequest("k", 80, need=1, want=80))
    assert (grant.units, grant.left) == (10, 70)
    grant = await one(service.window, WindowRequest("k", 80, need=1, want=3))
    assert (grant.units, grant.left) == (3, 67)


async def test_many_who_ask_at_once_are_lent_the_limit_between_them(
    service: CountingService,
) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(one(service.window, WindowRequest("k", 23, 1, 1)))
            for _ in range(4 * 10)
        ]
    assert sum(task.result().units for task in tasks) == 23


async def test_a_unit_is_lent_anew_when_its_window_and_lease_are_over(
    service: CountingService,
) -> None:
    await one(service.window, WindowRequest("k", 1, 1, 1))
    service.pass_time("k", COUNTED_S)
    refused = await one(service.window, WindowRequest("k", 1, 1, 1))
    assert (refused.units, refused.left) == (0, 0)
    assert 0 <= refused.reset_s <= 1
    service.pass_time("k", 1)
    assert (await one(service.window, WindowRequest("k", 1, 1, 1))).units == 1


async def test_a_refusal_says_when_the_oldest_unit_leaves(service: CountingService) -> None:
    await one(service.window, WindowRequest("k", 2, 1, 1))
    service.pass_time("k", 20)
    await one(service.window, WindowRequest("k", 2, 1, 1))
    refused = await one(service.window, WindowRequest("k", 2, 1, 1))
    assert 40 <= refused.reset_s <= COUNTED_S + 1 - 20


async def test_what_is_given_back_is_lent_again_and_not_more_than_that(
    service: CountingService,
) -> None:
    grant = await one(service.window, WindowRequest("k", 8, 8, 8))
    await one(service.window, WindowRequest("k", 1, 0, 0, grant.second, 3))
    assert (await one(service.window, WindowRequest("k", 8, 8, 8))).units == 3
    await one(
        service.window, WindowRequest("k", 1, 0, 0, grant.second - 5, 3)
    )  # nothing was lent then
    assert (await one(service.window, WindowRequest("k", 8, 8, 8))).units == 0


async def test_more_given_back_than_was_lent_is_nothing_but_what_was_lent(
    service: CountingService,
) -> None:
    grant = await one(service.window, WindowRequest("k", 8, 2, 2))
    await one(service.window, WindowRequest("k", 1, 0, 0, grant.second, 500))
    assert (await one(service.window, WindowRequest("k", 8, 20, 20))).units == 8


async def test_each_key_has_its_own_count_and_answers_come_in_order(
    service: CountingService,
) -> None:
    grants = await service.window.ask(
        [WindowRequest(f"k{n}", n, need=n, want=n) for n in range(1, 200)]
    )
    assert [grant.units for grant in grants] == list(range(1, 200))


async def test_a_limit_that_became_smaller_lends_nothing_and_does_not_fail(
    service: CountingService,
) -> None:
    await one(service.window, WindowRequest("k", 10, 10, 10))
    grant = await one(service.window, WindowRequest("k", 3, 1, 1))
    assert (grant.units, grant.left) == (0, 0)


@pytest.mark.parametrize("key", ["", "\0\r\nFLUSHALL\r\n", "\ud800", "é" * 100_000, "{a}[*]"])
async def test_any_text_is_a_key_of_its_own(service: CountingService, key: str) -> None:
    assert (await one(service.window, WindowRequest("untouched", 1, 1, 1))).units == 1
    assert (await one(service.window, WindowRequest(key, 1, 1, 1))).units == 1
    assert (await one(service.window, WindowRequest(key, 1, 1, 1))).units == 0
    assert (await one(service.window, WindowRequest("untouched", 1, 1, 1))).units == 0


async def test_nothing_a_caller_names_can_be_read_on_the_server(
    server: ValkeyServer, window: ValkeyWindow
) -> None:
    await one(window, WindowRequest("wrapper w 203.0.113.9", 1, 1, 1))
    (key,) = server.keys()
    assert key.startswith("assay:limit:")
    assert "203" not in server.say("DUMP", key)


async def test_what_is_counted_ends_by_itself(server: ValkeyServer, window: ValkeyWindow) -> None:
    await one(window, WindowRequest("k", 5, 1, 1))
    (key,) = server.keys()
    assert 60 <= int(server.say("TTL", key)[1:]) <= COUNTED_S + 2


async def test_a_server_clock_put_back_keeps_nobody_out_for_longer_than_a_window(
    server: ValkeyServer, window: ValkeyWindow
) -> None:
    grant = await one(window, WindowRequest("k", 5, 5, 5))
    server.say("HDEL", _key("k").decode(), grant.second)
    server.say("HSET", _key("k").decode(), grant.second + 86_400, 5)  # lent before it was put back
    refused = await one(window, WindowRequest("k", 5, 1, 1))
    assert (refused.units, refused.left) == (0, 0)
    assert set(lent(server, "k")) <= {grant.second, grant.second + 1, grant.second + 2}
    assert sum(lent(server, "k").values()) == 5


@pytest.mark.parametrize(
    "planted",
    [
        ("SET", "k", "a string"),
        ("RPUSH", "k", "a", "list"),
        ("HSET", "k", "yesterday", "3"),
        ("HSET", "k", "1", "many", "99999999999", "-5", "nan", "nan"),
        ("HSET", "k", "99999999999", "1e300", "inf", "5", "-inf", "0x10"),
        ("HSET", "k", "99999999999", "nan"),
        ("HSET", "k", "99999999999", "0.5"),
    ],
)
async def test_what_no_grant_wrote_counts_for_nothing(
    server: ValkeyServer, window: ValkeyWindow, planted: tuple[str, ...]
) -> None:
    command, _, *rest = planted
    server.say(command, _key("k").decode(), *rest)
    assert (await one(window, WindowRequest("k", 5, 3, 3))).units == 3
    assert sum(lent(server, "k").values()) == 3


async def test_a_server_that_forgot_the_script_is_told_it_again(
    server: ValkeyServer, window: ValkeyWindow
) -> None:
    await one(window, WindowRequest("k", 100, 1, 1))
    server.say("SCRIPT", "FLUSH")
    grants = await window.ask([WindowRequest("k", 100, 1, 1) for _ in range(20)])
    assert [grant.left for grant in grants] == list(range(98, 78, -1))


async def test_a_server_killed_is_unavailable_and_then_used_again() -> None:
    server = ValkeyServer()
    window = ValkeyWindow(state_address(server.url))
    try:
        await one(window, WindowRequest("k", 5, 5, 5))
        await asyncio.to_thread(server.kill)
        for _ in range(3):
            with pytest.raises(Unavailable):
                await one(window, WindowRequest("k", 5, 1, 1))
        await asyncio.to_thread(server.start)
        assert (await one(window, WindowRequest("k", 5, 5, 5))).units == 5
    finally:
        await window.aclose()
        server.stop()


async def test_a_server_that_hangs_is_unavailable_in_time_and_nothing_is_asked_twice(
    server: ValkeyServer,
) -> None:
    window = ValkeyWindow(state_address(server.url), command_s=0.3)
    await one(window, WindowRequest("k", 5, 1, 1))
    server.freeze()
    try:
        begun = asyncio.get_running_loop().time()
        with pytest.raises(Unavailable):
            await one(window, WindowRequest("k", 5, 1, 1))
        assert asyncio.get_running_loop().time() - begun < 0.6
    finally:
        server.thaw()
    # The one that hung was lent all the same, once: its answer is lost, and so is its unit.
    assert (await one(window, WindowRequest("k", 5, 5, 5))).units == 3
    await window.aclose()


async def test_a_replica_and_a_full_server_are_unavailable(
    server: ValkeyServer, window: ValkeyWindow
) -> None:
    for break_it, mend_it in (
        (("REPLICAOF", "127.0.0.1", 9), ("REPLICAOF", "NO", "ONE")),
        (("CONFIG", "SET", "maxmemory", 1), ("CONFIG", "SET", "maxmemory", 0)),
    ):
        server.say(*break_it)
        try:
            with pytest.raises(Unavailable):
                await window.check()
        finally:
            server.say(*mend_it)
        await window.check()


@pytest.mark.parametrize("wrong", ["valkey://:not-this-secret@", "valkey://", "valkey://who:it@"])
async def test_a_wrong_password_is_unavailable_and_told_to_nobody(
    server: ValkeyServer, wrong: str
) -> None:
    window = ValkeyWindow(state_address(f"{wrong}127.0.0.1:{server.port}/0"))
    with pytest.raises(Unavailable) as refusal:
        await window.check()
    assert "not-this-secret" not in f"{refusal.value.message}{refusal.value.detail}"
    await window.aclose()


@pytest.mark.parametrize(
    "said", [b"HTTP/1.1 400 Bad\r\n\r\n", b"+OK\r\n" * 9, b":5\r\n" * 9, b"*-7"]
)
async def test_a_server_of_another_kind_is_unavailable(said: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(said)
        writer.close()

    other = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = other.sockets[0].getsockname()[1]
    window = ValkeyWindow(state_address(f"valkey://127.0.0.1:{port}"), command_s=0.5)
    with pytest.raises(Unavailable):
        await window.check()
    await window.aclose()
    other.close()
    await other.wait_closed()


async def test_a_supervisor_that_is_gone_is_unavailable_at_once() -> None:
    own, other = socket.socketpair()
    worker = await Link.open(other, {})
    async with asyncio.TaskGroup() as group:
        running = group.create_task(worker.run())
        asking = group.create_task(one_fails(SupervisorWindow(worker)))
        await asyncio.sleep(0.01)
        own.close()
        await asking
        await running
        await one_fails(SupervisorWindow(worker))


async def one_fails(window: SharedWindow) -> None:
    with pytest.raises(Unavailable):
        await one(window, WindowRequest("k", 5, 1, 1))


async def test_a_supervisor_that_hangs_is_unavailable_before_a_slice_is_useless() -> None:
    own, other = socket.socketpair()
    worker = await Link.open(other, {})
    async with asyncio.TaskGroup() as group:
        running = group.create_task(worker.run())
        await one_fails(SupervisorWindow(worker))
        running.cancel()
    own.close()


async def test_the_counts_of_a_supervisor_are_bounded_and_those_of_the_past_are_removed() -> None:
    clock = FrozenClock()
    window = LocalWindow(clock)
    for start in range(0, KEYS_MAX + 1000, 1000):
        await window.ask([WindowRequest(str(n), 5, 1, 1) for n in range(start, start + 1000)])
    assert len(window._lent) == KEYS_MAX
    assert (await one(window, WindowRequest(str(KEYS_MAX), 1, 1, 1))).units == 0
    clock.move(COUNTED_S + 2)
    await one(window, WindowRequest("later", 1, 1, 1))
    assert len(window._lent) == 1
