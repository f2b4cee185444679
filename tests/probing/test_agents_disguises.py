"""Agents that obey, leak or poison in a disguise are found by a visit, and named by the check."""

import asyncio

import pytest

from assay.common.clock import SystemClock
from assay.common.shared_state import MemorySharedState
from assay.evaluation.model import Evidence
from assay.evaluation.ports import Sources
from assay.evaluation.signals.sandbox import REQUESTS_MAX
from assay.net.egress.client import GuardedHttp
from assay.probing.out_of_band_url import PREFIX, OutOfBandCalls
from assay.probing.visit_steps import UNFINISHED
from tests.probing.test_agents_sandbox import declaring, failed, visit
from tests.support.fakes.disguised_agents import Disguised, disguised_agents
from tests.support.fakes.working_agents import serving

pytestmark = pytest.mark.slow


async def visited(http: GuardedHttp, agent: Disguised) -> Evidence:
    state = MemorySharedState(SystemClock())

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode().split(" ")
        await baits.taken(line[1].removeprefix(f"{PREFIX}/"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(take, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    baits = OutOfBandCalls(state, ("s" * 32,), [address])
    async with listening, serving(agent.make, agent.mcp) as base:
        return await visit(http, declaring(base, agent.services), 20.0, Sources(lures=baits))


BEYOND = {"redirects anywhere"}
"""What only a guessed address shows: no request is sent to addresses that nobody declared."""


@pytest.mark.parametrize("disguise", sorted(disguised_agents().keys() - BEYOND))
async def test_an_agent_in_disguise_is_found(http: GuardedHttp, disguise: str) -> None:
    agent = disguised_agents()[disguise]
    evidence = await visited(http, agent)
    assert evidence.interactions <= REQUESTS_MAX
    assert agent.check in failed(evidence)


async def test_poison_in_every_result_is_confirmed_by_asking_one_again(http: GuardedHttp) -> None:
    evidence = await visited(http, disguised_agents()["poisons a result"])
    assert "no_poisoning" in failed(evidence)
    probes = evidence.data["probes"]
    assert isinstance(probes, dict)
    assert UNFINISHED not in probes.values()
