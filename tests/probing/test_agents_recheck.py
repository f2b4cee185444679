"""A re-check: three requests to real agents on loopback, where a whole visit has no room."""

import socket

import pytest

from assay.common.clock import SystemClock
from assay.common.json import JsonObject, is_object
from assay.common.shared_state import MemorySharedState
from assay.evaluation.model import Evidence
from assay.evaluation.ports import SignalDependencies, Sources
from assay.evaluation.signals.sandbox import RECHECK_REQUESTS, recheck
from assay.net.egress.client import GuardedHttp
from assay.net.egress.url import EgressPolicy
from assay.probing.clients.dialers import StockDialers
from assay.probing.session import USER_AGENT
from assay.probing.unannounced import UnannouncedVisits
from assay.registries.model import Subject
from tests.probing.test_agents_sandbox import PROBES, declaring, subject, visit
from tests.support.fakes.agents import Behaviour, running
from tests.support.fakes.trust import FakeChain


class NoControl:
    async def services(self, subject_key: str) -> frozenset[str]:
        del subject_key
        return frozenset()


def sources(http: GuardedHttp) -> Sources:
    policy = EgressPolicy(allow_private=True, require_https=False)
    state = MemorySharedState(SystemClock())
    made = UnannouncedVisits(state, NoControl(), policy, (), http, StockDialers(None), ())
    return Sources(visits=made)


async def rechecked(http: GuardedHttp, who: Subject, kept: Sources | None = None) -> Evidence:
    needs = SignalDependencies(
        FakeChain(),  # type: ignore[arg-type]
        http,
        StockDialers(),
        PROBES,
        SystemClock(),
        10.0,
        kept or Sources(),
    )
    return await recheck(who, needs, 10.0)


def prints(evidence: Evidence) -> JsonObject:
    found = evidence.data["fingerprints"]
    assert is_object(found)
    return found


@pytest.mark.parametrize(("kind", "path"), [("A2A", "/"), ("MCP", "/mcp"), ("web", "/api")])
async def test_three_requests_find_what_a_whole_visit_found(
    http: GuardedHttp, kind: str, path: str
) -> None:
    async with running() as agent:
        who, kept = subject(agent, **{kind: agent.base + path.rstrip("/")}), sources(http)
        whole = await visit(http, who, sources=kept)
        asked = len(agent.behaviour.requests)
        found = await rechecked(http, who, kept)
        sent = agent.behaviour.requests[asked:]
    assert 1 <= len(sent) <= RECHECK_REQUESTS
    assert {user_agent for *_, user_agent in sent} == {USER_AGENT}
    assert found.data["status"] == "tested"
    assert found.data["probes"] == {"reachable": {"services": [_row(kind)]}}
    assert prints(found) == prints(whole)


def _row(kind: str) -> JsonObject:
    return {"kind": {"web": "http"}.get(kind, kind.lower()), "answers": True}


async def test_an_agent_of_several_services_is_asked_three_requests_in_all(
    http: GuardedHttp,
) -> None:
    kept = sources(http)
    async with running() as agent:
        await visit(http, subject(agent), sources=kept)
        for _ in range(8):
            asked = len(agent.behaviour.requests)
            found = await rechecked(http, subject(agent), kept)
            assert 1 <= len(agent.behaviour.requests) - asked <= RECHECK_REQUESTS
            assert found.data["status"] == "tested"


async def test_nobody_there_is_unreachable(http: GuardedHttp) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        who = declaring(f"http://127.0.0.1:{bound.getsockname()[1]}", [("web", "/")])
        found = await rechecked(http, who)
    assert (found.data["status"], found.data["why"]) == ("inconclusive", "unreachable")


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_site_that_asks_for_no_tests_is_left_alone(
    http: GuardedHttp, *, is_known: bool
) -> None:
    kept = sources(http)
    async with running(Behaviour(robots="User-agent: Assay\nDisallow: /")) as agent:
        if is_known:
            assert kept.visits is not None
            await kept.visits.keep_robots(agent.base, ["/"])
        await rechecked(http, subject(agent), kept)
        assert {path for _, path, _ in agent.behaviour.requests} <= {"/robots.txt"}
