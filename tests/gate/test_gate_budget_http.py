"""What gates may cause: a quota for each agent, a budget for each host, and no grade lowered."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.common.egress_budget import RESERVED, egress_use
from assay.net.egress.ports import EgressError, OutboundRequest
from assay.registries.model import OnchainAgent, RegistrationFile, Service
from assay.registries.ports import OVER_BUDGET
from tests.support.certificates import TestAuthority
from tests.support.fakes.trust import NETWORK
from tests.support.live_service import OWNER_KEY, TestService, address, refused, start_test_service
from tests.support.raw_server import RawServer, Request, plain, serving
from tests.support.victim import suffering

pytestmark = pytest.mark.slow

JSON = "Content-Type: application/json"
HOST_FILE = 1
"""The host's own file, read once in three hours of the reserved half: whom does it name first?"""

LEAKED_KEY = "AKIA" + "Q" * 16


@pytest.fixture
async def strict(tmp_path: Path) -> AsyncIterator[TestService]:
    """The service with budgets for loopback too."""
    limits = {"sandbox_per_agent_minute": 12}
    async with start_test_service(
        tmp_path / "data", egress_budget_private=True, **limits
    ) as opened:
        yield opened


def agent(agent_id: str, url: str) -> OnchainAgent:
    file = RegistrationFile(name=f"Agent {agent_id}", services=(Service("web", url),))
    return OnchainAgent(NETWORK, agent_id, address(OWNER_KEY), None, "data:,", file, None)


@asynccontextmanager
async def hosted(
    service: TestService, *names: str, consents: bool = False, page_bytes: int = 12
) -> AsyncIterator[RawServer]:
    """A decent web service that agents `names` point at; where it consents it names the first."""

    async def respond(request: Request, writer: asyncio.StreamWriter) -> None:
        rows = [{"agentId": int(names[0]), "agentRegistry": NETWORK.agent_registry}]
        binding = json.dumps({"registrations": rows}).encode()
        if request.target == "/.well-known/agent-registration.json":
            writer.write(plain(binding, "200 OK", JSON) if consents else plain(b"", "404 No"))
        elif request.target == "/" and request.method == "GET":
            writer.write(plain(b"x" * page_bytes, "200 OK", "Content-Type: text/html"))
        else:
            writer.write(plain(b'{"error": "no"}', "404 Not Found", JSON))

    async with serving(respond) as server:
        for name in names:
            service.chain.agents[name] = agent(name, server.url())
        yield server


async def use_up(service: TestService, server: RawServer) -> None:
    """Somebody has everything sent to the host that anybody may."""
    with pytest.raises(EgressError, match="egress_budget"):
        await send_often(service, server.url("/x"), 61)


async def send_often(service: TestService, url: str, times: int) -> None:
    with egress_use(RESERVED):
        for _ in range(times):
            await service.app.evaluator._needs.http.send(OutboundRequest("GET", url))


async def triggered(service: TestService, agent_id: str = "7") -> dict[str, Any]:
    answer = await service.http.post(f"/operator/trigger-sandbox/{agent_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def outcome(told: dict[str, Any], probe: str) -> str:
    return next(p["outcome"] for p in told["testSummary"]["probes"] if p["name"] == probe)


NOT_SENT = "Large bodies are sent only to hosts that name the agent."


def note(told: dict[str, Any], probe: str) -> str:
    return next(p["note"] for p in told["testSummary"]["probes"] if p["name"] == probe)


async def test_ttl_is_honoured_six_times_an_hour_for_all_callers_together(
    service: TestService,
) -> None:
    agent_headers = await service.session()
    callers = [await service.operator(f"{name}@b.cc") | agent_headers for name in "ab"]
    for number in range(6):
        told = (await service.gate(callers[number % 2], ttlMs=1)).json()
        assert (told["cached"], told["sandboxRan"]) == (False, True), number
        assert "cachedReason" not in told
        service.clock.move(30)
    for caller in callers:
        told = (await service.gate(caller, ttlMs=1)).json()
        assert (told["cached"], told["sandboxRan"]) == (True, False)
        assert told["cachedReason"] == "evaluation_quota"
        assert told["evaluatedAt"] == "2026-03-01T12:02:30.000Z"
    other = (await service.gate(callers[0], "8", ttlMs=1)).json()
    assert other["cached"] is False
    service.clock.move(3600 - 6 * 30 - 1)
    fresh = await service.session()
    assert (await service.gate(callers[0] | fresh, ttlMs=1)).json()["cached"] is True
    service.clock.move(2 + 15)
    told = (await service.gate(callers[0] | fresh, ttlMs=1)).json()
    assert (told["cached"], told.get("cachedReason")) == (False, None)


async def test_gates_at_once_use_up_the_quota_once(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    for _ in range(6):
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(service.gate(headers, ttlMs=1)) for _ in range(5)]
        assert all(task.result().json()["sandboxRan"] for task in asked)
        service.clock.move(1)
    assert (await service.gate(headers, ttlMs=1)).json()["cachedReason"] == "evaluation_quota"


async def test_a_budget_used_up_lowers_no_grade_and_makes_no_503(strict: TestService) -> None:
    headers = await strict.operator() | await strict.session()
    async with hosted(strict, "7") as server:
        before = (await strict.gate(headers)).json()
        assert before["sandboxRan"] is True
        strict.clock.move(61)
        await use_up(strict, server)
        seen = len(server.requests)
        for body in ({"ttlMs": 1}, {"ttlMs": 1, "trustSignals": ["sandbox"]}):
            answer = await strict.gate(headers, **body)
            told = answer.json()
            assert answer.status_code == 200
            assert (told["cached"], told["sandboxRan"]) == (True, False)
            assert told["cachedReason"] == "egress_budget"
            assert told["evaluatedAt"] == before["evaluatedAt"]
        again = (await strict.gate(headers, ttlMs=1)).json()
        assert (again["score"], again["tier"]) == (before["score"], before["tier"])
        told = await triggered(strict)
        assert (told["cached"], told["cachedReason"]) == (True, "egress_budget")
        assert told["score"] == before["score"]
        assert len(server.requests) == seen
        assert len(await strict.app.evaluator._needs.store.history(0, 100)) == 1


async def test_a_visit_that_was_cut_in_the_middle_is_no_evidence(strict: TestService) -> None:
    headers = await strict.operator() | await strict.session()
    async with hosted(strict, "7", "8") as server:
        before = (await strict.gate(headers)).json()
        await send_often(strict, server.url("/x"), 55 - len(server.requests))
        strict.clock.move(1)
        visited = len(server.requests)
        told = await triggered(strict)  # a gate is content with a re-check
        assert visited < len(server.requests) == 60
        assert told["score"] == before["score"]
        assert told["cachedReason"] == "egress_budget"


async def test_a_critical_finding_of_a_visit_that_was_cut_short_counts(strict: TestService) -> None:
    """No lack of budget makes one, and nobody gets out of one by using up the budget."""
    headers = await strict.operator() | await strict.session()
    leaks = False

    def respond(line: bytes) -> bytes:
        if line.startswith(b"GET / "):
            return plain(b"x" * 12, "200 OK", "Content-Type: text/html")
        body = json.dumps({"error": f"AWS key {LEAKED_KEY}"}) if leaks else '{"error": "no"}'
        return plain(body.encode(), "404 Not Found", JSON)

    async with suffering(respond=respond) as victim:
        strict.chain.agents["7"] = agent("7", victim.url())
        before = (await strict.gate(headers)).json()
        strict.clock.move(61)
        visit = len(victim.requests)
        await send_often(strict, victim.url("/x"), 60 - (visit - 1))
        strict.clock.move(1)
        leaks = True
        told = await triggered(strict)  # a gate is content with a re-check
        assert len(victim.requests) == visit + 60  # it was cut short: a leak is asked for twice
        assert told["cached"] is False
        assert told["score"] < 35 < before["score"]
        assert "cachedReason" not in told
        assert any("secrets" in reason for reason in told["reasons"])
        [newest, *_] = await strict.app.evaluator._needs.store.history(0, 100)
        assert len(await strict.app.evaluator._needs.store.history(0, 100)) == 2, newest


async def test_an_agent_nobody_could_test_yet_is_inconclusive_and_says_why(
    strict: TestService,
) -> None:
    headers = await strict.operator() | await strict.session()
    async with hosted(strict, "7") as server:
        await use_up(strict, server)
        answer = await strict.gate(headers, trustSignals=["sandbox"])
        told = answer.json()
        assert (answer.status_code, told["allow"]) == (200, False)
        assert any("egress_budget" in reason for reason in told["reasons"])
        assert told["confidence"] == 0
        strict.clock.move(61)
        told = (await strict.gate(headers, trustSignals=["sandbox"])).json()
        assert told["sandboxRan"] is True
        assert told["confidence"] > 0


async def test_a_registration_file_that_the_budget_hides_is_no_fault_of_the_agents(
    strict: TestService,
) -> None:
    headers = await strict.operator() | await strict.session()
    async with hosted(strict, "7"):
        before = (await strict.gate(headers)).json()
        strict.clock.move(61)
        hidden = replace(
            strict.chain.agents["7"], registration=None, registration_problem=OVER_BUDGET
        )
        strict.chain.agents["7"] = hidden
        told = (await strict.gate(headers, ttlMs=1)).json()
        assert (told["score"], told["cachedReason"]) == (before["score"], "egress_budget")


async def test_a_visit_fits_the_shared_half_and_sends_no_large_body(strict: TestService) -> None:
    async with hosted(strict, "7") as server:
        told = await triggered(strict)
        assert told["testSummary"]["status"] == "tested"
        assert told["testSummary"]["unfinished"] == 0
        assert outcome(told, "http_oversized_body") == "not_tested"
        assert len(server.requests) <= 30
        assert max(len(request.body) for request in server.requests) < 16_384


def site(page: bytes, *headers: str) -> Callable[[bytes], bytes]:
    """A decent website: a page for people, and a short refusal of everything else."""

    def respond(line: bytes) -> bytes:
        if line.startswith(b"GET / "):
            return plain(page, "200 OK", "Content-Type: text/html", *headers)
        return plain(b'{"error": "no"}', "404 Not Found", JSON)

    return respond


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("page_kib", [8, 16])
async def test_a_page_of_common_length_fits_the_shared_half(
    strict: TestService, page_kib: int, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted by the host's own system; half the budget is left for those it is reserved for."""
    authority = TestAuthority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate_file()))
    tls = authority.server_context("127.0.0.1") if scheme == "https" else None
    async with suffering(respond=site(b"x" * page_kib * 1024), tls=tls) as victim:
        strict.chain.agents["7"] = agent("7", victim.url())
        told = await triggered(strict)
        assert told["testSummary"]["status"] == "tested"
        assert told["testSummary"]["unfinished"] == 0
        assert len(victim.requests) <= 30
        assert victim.requests.count(b"GET / HTTP/1.1") == 6
        assert page_kib * 1024 < victim.size_bytes <= 128 * 1024


async def test_a_host_that_names_the_agent_is_tested_whole_and_often(strict: TestService) -> None:
    async with hosted(strict, "7", "8", consents=True) as server:
        told = await triggered(strict)
        assert note(told, "http_oversized_body") != NOT_SENT
        assert max(len(request.body) for request in server.requests) > 1_000_000
        for _ in range(4):
            strict.clock.move(1)
            assert (await triggered(strict))["cached"] is False
        assert len(server.requests) > 60
        # Another agent that merely points there is sent no large body.
        larger = len([one for one in server.requests if len(one.body) > 1_000_000])
        assert note(await triggered(strict, "8"), "http_oversized_body") == NOT_SENT
        assert len([r for r in server.requests if len(r.body) > 1_000_000]) == larger


async def test_the_proxy_has_a_quarter_and_is_refused_beyond_it(strict: TestService) -> None:
    headers = await strict.operator()
    await strict.pro()
    async with hosted(strict, "7") as server:
        strict.chain.agents["7"] = agent("7", "http://127.0.0.1:9/")
        statuses: list[int] = []
        for _ in range(17):
            body = {"targetUrl": server.url("/hello")}
            answer = await strict.http.post("/operator/proxy/7", json=body, headers=headers)
            statuses.append(answer.status_code)
        assert statuses == [200] * 15 + [429] * 2
        told = refused(answer, 429, "egress_budget")
        assert "later" in told["message"]
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert len(server.requests) == 15
