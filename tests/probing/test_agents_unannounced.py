"""Visits that go out as customers' do: what an agent and a proxy see of them."""

import asyncio
import json

from assay.common.clock import SystemClock
from assay.common.shared_state import MemorySharedState
from assay.evaluation.model import Evidence
from assay.evaluation.ports import SignalDependencies, Sources
from assay.evaluation.signals.sandbox import SIGNAL
from assay.net.egress.client import GuardedHttp
from assay.net.egress.dial import HttpProxy
from assay.net.egress.url import EgressPolicy
from assay.probing.clients.dialers import StockDialers
from assay.probing.declared_services import declared_services
from assay.probing.probes import PROBES
from assay.probing.unannounced import (
    ANNOUNCED_ONLY,
    UnannouncedVisits,
    commitment,
    scheduled_visits,
)
from tests.probing.test_agents_sandbox import subject
from tests.support.fakes.agents import Agent, Behaviour, running
from tests.support.fakes.trust import FakeChain

POLICY = EgressPolicy(allow_private=True, require_https=False)


class Proven:
    """What evaluations found proven."""

    def __init__(self, *services: str) -> None:
        self.found = frozenset(services)

    async def services(self, subject_key: str) -> frozenset[str]:
        assert subject_key
        return self.found


def services(agent: Agent) -> list[str]:
    return [visited.service.endpoint for visited in declared_services(subject(agent))[0]]


async def controlled(
    agent: Agent, robots: tuple[str, ...] = (), *more: str
) -> tuple[MemorySharedState, Proven]:
    """State in which an announced visit found proven control and read robots.txt."""
    state = MemorySharedState(SystemClock())
    proven = Proven(*services(agent), agent.base, *more)
    visits = UnannouncedVisits(state, proven, POLICY, [], None, StockDialers(), ())  # type: ignore[arg-type]
    await visits.keep_robots(agent.base, robots)
    return state, proven


async def evidence_of(
    agent: Agent, http: GuardedHttp, ways: list[GuardedHttp], *, chance: float = 0.9
) -> Evidence:
    state, proven = await controlled(agent)
    visits = UnannouncedVisits(
        state, proven, POLICY, ways, http, StockDialers(None), (), lambda: chance
    )
    needs = SignalDependencies(
        FakeChain(),  # type: ignore[arg-type]
        http,
        StockDialers(),
        PROBES,
        SystemClock(),
        10.0,
        sources=Sources(visits=visits),
    )
    with scheduled_visits():
        evidence = await SIGNAL.collect(subject(agent), needs)
    assert isinstance(evidence, Evidence)
    return evidence


async def test_an_unannounced_visit_carries_no_mark_of_ours(http: GuardedHttp) -> None:
    async with running() as agent:
        evidence = await evidence_of(agent, http, [])
        seen = agent.behaviour.requests
    assert evidence.data["visit"] == {"label": "unlabelled"}
    assert not [row for row in seen if "assay" in " ".join(row).lower()]
    paths = {path for _, path, _ in seen if not path.startswith("/api/words/")}
    assert paths <= {
        "/.well-known/agent-card.json",
        "/a2a",
        "/mcp",
        "/api",
        "/openapi.json",
        "/api/openapi.json",
    }
    assert not dict(evidence.data["probes"]).keys() & ANNOUNCED_ONLY  # type: ignore[call-overload]


async def test_an_announced_visit_says_so(http: GuardedHttp) -> None:
    async with running() as agent:
        evidence = await evidence_of(agent, http, [], chance=0.1)
        seen = agent.behaviour.requests
    assert evidence.data["visit"] == {"label": "announced"}
    assert all("assay" in user_agent.lower() for _, _, user_agent in seen)


async def test_the_seed_of_a_visit_is_kept_with_what_was_asked(http: GuardedHttp) -> None:
    async with running() as agent:
        one, other = [await evidence_of(agent, http, [], chance=0.1) for _ in range(2)]
    assert one.transcript["commitment"] == commitment(str(one.transcript["seed"]))
    assert one.transcript["seed"] != other.transcript["seed"]
    assert one.data == other.data


async def test_without_proven_control_a_visit_is_announced(http: GuardedHttp) -> None:
    async with running() as agent:
        state, proven = await controlled(agent)
        visits = UnannouncedVisits(
            state, proven, POLICY, [], http, StockDialers(None), (), lambda: 0.9
        )
        who = subject(agent)
        with scheduled_visits():
            assert await visits.plan(who, [agent.base]) is not None
            assert await visits.plan(who, [agent.base, agent.base + "/not-proven"]) is None
        assert await visits.plan(who, [agent.base]) is None  # nobody scheduled it


async def test_what_robots_said_to_an_announced_visit_binds_the_others(http: GuardedHttp) -> None:
    async with running(Behaviour()) as agent:
        more = agent.base + "/open", agent.base + "/private/x"
        state, proven = await controlled(agent, ("/private",), *more)
        visits = UnannouncedVisits(
            state, proven, POLICY, [], http, StockDialers(None), (), lambda: 0.9
        )
        with scheduled_visits():
            assert await visits.plan(subject(agent), [agent.base + "/open"]) is not None
            assert await visits.plan(subject(agent), [agent.base + "/private/x"]) is None


async def test_an_unannounced_visit_leaves_by_a_proxy(http: GuardedHttp) -> None:
    """The proxy is given judged addresses, and everything of the visit goes through it."""
    asked: list[str] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.decode().split("\r\n")[0])
        host, _, port = head.split()[1].decode().rpartition(":")
        inner, outer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
            sink.close()

        async with asyncio.TaskGroup() as group:
            group.create_task(pump(reader, outer))
            group.create_task(pump(inner, writer))

    server = await asyncio.start_server(tunnel, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    way = GuardedHttp(POLICY, proxy=HttpProxy("127.0.0.1", port))
    async with running() as agent:
        evidence = await evidence_of(agent, http, [way])
        await way.aclose()
    server.close()
    authority = agent.base.removeprefix("http://")
    assert evidence.data["visit"] == {"label": "unannounced", "source": "way 0"}
    assert set(asked) == {f"CONNECT {authority} HTTP/1.1"}
    assert json.dumps(evidence.data["function"]).count('"state"') == 3
