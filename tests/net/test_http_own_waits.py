"""What strangers' slow calls keep waiting is never told as a fault of the host that waits."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from assay.common.circuit_breaker import FAILURES_MAX
from assay.common.clock import SystemClock
from assay.common.egress_budget import ANYBODY, RESERVED, EgressUse, egress_use
from assay.common.errors import Unavailable
from assay.db.engine import Database
from assay.http1.client import UpstreamPool
from assay.http1.model import Target, UpstreamRequest
from assay.net import resolver as resolving
from assay.net.egress.client import GuardedHttp
from assay.net.egress.dial import UpstreamDialer
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.net.egress.url import EgressPolicy, parse_target
from tests.support.egress_process import DEVELOPMENT, Process
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.name_servers import NameServers
from tests.support.raw_server import RawServer, Request, keeps_open, plain, serving

NAMES = {"rival_example": [["127.0.0.1"]], "evil_example": [["127.0.0.1"]]}
SHORT = Limits(connect_s=0.1, total_s=0.2)
STRANGERS = [EgressUse(account=account) for account in "xxyyzz"]


@pytest.fixture
async def process(database: Database) -> AsyncIterator[Process]:
    made = Process(database, FrozenClock(), names=NAMES)
    yield made
    await made.http.aclose()


@asynccontextmanager
async def slots_held(process: Process) -> AsyncGenerator[RawServer]:
    """Strangers' calls to a slow host hold what they can of the slots of its address."""
    answer = asyncio.Event()
    arrived = asyncio.Semaphore(0)

    async def respond(request: Request, writer: asyncio.StreamWriter) -> None:
        del request
        arrived.release()
        await answer.wait()
        writer.write(plain(b"late"))

    async with serving(respond) as evil, asyncio.TaskGroup() as group:
        calls = [
            group.create_task(process.ask(evil.url(host="evil.example"), use)) for use in STRANGERS
        ]
        for _ in range(2):
            await arrived.acquire()
        yield evil
        answer.set()
        await asyncio.wait(calls)


async def ask_shortly(process: Process, url: str, use: EgressUse) -> EgressResponse | EgressError:
    with egress_use(use):
        try:
            return await process.http.send(OutboundRequest("GET", url), SHORT)
        except EgressError as error:
            return error


async def test_slow_calls_of_strangers_leave_a_gate_its_slots(process: Process) -> None:
    async with serving(keeps_open(plain(b"ok"))) as rival, slots_held(process) as evil:
        url = rival.url(host="rival.example")
        for _ in range(5):
            assert isinstance(await process.ask(url, RESERVED), EgressResponse)
        assert len(evil.requests) == 2


async def test_waiting_in_vain_for_an_address_is_no_time_out_of_its_host(
    process: Process,
) -> None:
    async with serving(keeps_open(plain(b"ok"))) as rival, slots_held(process):
        told = await ask_shortly(process, rival.url(host="rival.example"), ANYBODY)
        assert isinstance(told, EgressError)
        assert (told.failure, told.is_sent) == (Failure.BUDGET, False)
        assert not rival.requests


async def test_whoever_waited_for_an_address_is_served_when_it_is_free(process: Process) -> None:
    async with serving(keeps_open(plain(b"ok"))) as rival, asyncio.TaskGroup() as group:
        async with slots_held(process):
            waiting = group.create_task(process.ask(rival.url(host="rival.example")))
            await asyncio.sleep(0)
        assert isinstance(await waiting, EgressResponse)


async def test_a_host_that_does_not_answer_is_still_a_time_out(process: Process) -> None:
    """Strangers' calls are no excuse: it had its slots, and its time."""

    async def never(request: Request, writer: asyncio.StreamWriter) -> None:
        del request, writer
        await asyncio.Event().wait()

    async with serving(never) as dead, slots_held(process):
        told = await ask_shortly(process, dead.url(host="rival.example"), RESERVED)
        assert isinstance(told, EgressError)
        assert (told.failure, len(dead.requests)) == (Failure.TIMEOUT, 1)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> NameServers:
    monkeypatch.setattr(resolving, "WAIT_S", 0.0)  # whoever would wait is told so at once
    return NameServers(monkeypatch)


def target(url: str) -> Target:
    found = parse_target(url, DEVELOPMENT)
    assert isinstance(found, Target)
    return found


async def test_a_look_up_that_waits_in_vain_is_no_fault_of_the_name(servers: NameServers) -> None:
    http = GuardedHttp(EgressPolicy(require_https=False))
    urls = [f"http://slow{n}.test/" for n in range(3)]
    with egress_use(EgressUse(account="x")):
        async with asyncio.TaskGroup() as group:
            slow = [group.create_task(_failure(http, url)) for url in urls]
            [refused], _ = await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)
            assert refused.result() is Failure.BUDGET
            servers.answer.set()
        assert [task.result() for task in slow].count(Failure.NAME) == 2
    await http.aclose()


async def _failure(http: GuardedHttp, url: str) -> Failure:
    with pytest.raises(EgressError) as told:
        await http.send(OutboundRequest("GET", url))
    return told.value.failure


async def test_a_wrapper_that_waits_in_vain_is_503_and_opens_no_breaker(
    servers: NameServers,
) -> None:
    def request(url: str, account: str) -> UpstreamRequest:
        return UpstreamRequest("GET", target(url), b"/", (), b"", 0, timeout_s=20, account=account)

    dialer = UpstreamDialer(DEVELOPMENT)
    pool = UpstreamPool(dialer.connect, SystemClock())
    async with serving(keeps_open(plain(b"ok"))) as server, asyncio.TaskGroup() as group:
        fine = f"http://localhost:{server.port}/"
        slow = [
            group.create_task(pool.send(request(f"http://slow{n}.test/", "x"))) for n in range(2)
        ]
        while servers.asked.total() < len(slow):  # noqa: ASYNC110 - a thread sets no event
            await asyncio.sleep(0)
        for _ in range(FAILURES_MAX + 1):
            with pytest.raises(Unavailable) as told:
                await pool.send(request(fine, "x"))
            assert told.value.retry_after_s == 1
        reply = await pool.send(request(fine, "y"))
        assert reply.status == 200
        reply.close()
        for task in slow:
            task.cancel()
        servers.answer.set()
    await pool.aclose()
    dialer.close()
