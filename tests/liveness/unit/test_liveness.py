"""A liveness report says what the registry's own SDK would say, and a little better.

The cases are recordings of the SDK (solana-registry.md#liveness).
"""

import asyncio
import json
from typing import Any

import pytest

from assay.chains.solana.clusters import CLUSTERS
from assay.common.clock import SystemClock
from assay.liveness.service import (
    CONCURRENCY,
    REQUESTS_MAX,
    SERVICES_MAX,
    Liveness,
    LivenessReport,
    declared,
)
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.net.egress.request_slots import own_wait
from assay.registries.model import OnchainAgent, Subject
from assay.registries.registration import parse_registration
from tests.support.fakes.clock import FrozenClock
from tests.support.solana import golden

SOLANA = CLUSTERS["mainnet-beta"]
KEY = "7NZRT48zAd5opYaFen15h8gnJSnyW5TYLZbn6KrgNkBY"

CASES = [
    case
    for case in golden.read("liveness")["cases"]
    if case.get("report") is not None and not case.get("options")
]
PRIVATE = ("http://127", "http://10.", "http://[::1]", "http://2130", "http://169", "http://local")


class ScriptedHttp:
    """Answers as recorded; what was not asked then is not there."""

    def __init__(self, probes: list[dict[str, Any]]) -> None:
        self._answers = {_asked(p["method"], p["url"], p.get("jsonRpcMethod")): p for p in probes}
        self.sent: list[OutboundRequest] = []

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008
        del limits
        self.sent.append(request)
        if request.url.startswith(PRIVATE):
            raise EgressError(Failure.REFUSED_ADDRESS, "private")
        rpc = json.loads(request.body)["method"] if request.body else None
        found = self._answers.get(_asked(request.method, request.url, rpc))
        answer = found["response"] if found else {"status": 404, "headers": {}, "body": ""}
        if answer == "network":
            raise EgressError(Failure.CONNECT, "refused")
        if answer == "timeout":
            raise EgressError(Failure.TIMEOUT, "slow")
        headers = tuple(answer["headers"].items())
        body = answer["body"].encode()
        return EgressResponse(answer["status"], headers, body, truncated=False, elapsed_ms=1.0)


def _asked(method: str, url: str, rpc: str | None) -> tuple[str, str, str | None]:
    """The SDK joins paths with two slashes where the address ends in one."""
    scheme, _, rest = url.partition("://")
    return method, f"{scheme}://{rest.replace('//', '/')}", rpc


def subject(metadata: Any) -> Subject:
    file = parse_registration(json.dumps(metadata).encode())
    agent = OnchainAgent(SOLANA, KEY, KEY, None, "data:,", file, None)
    return Subject(SOLANA, KEY, KEY, agent)


async def report(http: Any, metadata: Any) -> LivenessReport:
    return await Liveness(http, FrozenClock()).report(subject(metadata))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
async def test_the_report_is_the_sdks(case: dict[str, Any]) -> None:
    found = await report(ScriptedHttp(case["probes"]), case["metadata"])
    theirs = case["report"]
    assert (found.status, found.ok_count, found.total_pinged, found.skipped_count) == (
        theirs["status"],
        theirs["okCount"],
        theirs["totalPinged"],
        theirs["skippedCount"],
    )
    assert [(p.kind, p.endpoint, p.ok, p.skipped) for p in found.results] == [
        (r["type"], r["endpoint"], r["ok"], r.get("skipped", False)) for r in theirs["results"]
    ]
    for ping, result in zip(found.results, theirs["results"], strict=True):
        if not result["hasLatency"]:
            assert ping.latency_ms == 0


def answer(method: str, url: str, body: Any, rpc: str | None = None) -> dict[str, Any]:
    headers = {"content-type": "application/json"}
    response = {"status": 200, "headers": headers, "body": json.dumps(body)}
    return {"method": method, "url": url, "jsonRpcMethod": rpc, "response": response}


async def test_an_mcp_server_that_wants_a_session_first_is_alive() -> None:
    url = "https://mcp.example/mcp"
    opened = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}}
    http = ScriptedHttp([answer("POST", url, opened, "initialize")])
    found = await report(http, {"services": [{"name": "MCP", "endpoint": url}]})
    assert found.status == "live"


@pytest.mark.parametrize("endpoint", ["https://a.example", "https://a.example/agents/one?x=1"])
async def test_a_card_where_the_protocol_keeps_it_today_is_found(endpoint: str) -> None:
    card = answer("GET", "https://a.example/.well-known/agent-card.json", {"skills": [{}]})
    found = await report(
        ScriptedHttp([card]), {"services": [{"name": "a2a", "endpoint": endpoint}]}
    )
    assert found.status == "live"


async def test_a_card_that_is_the_endpoint_itself_is_found() -> None:
    url = "https://a.example/.well-known/agent-card.json"
    card = answer("GET", url, {"skills": [{}]})
    found = await report(ScriptedHttp([card]), {"services": [{"name": "A2A", "endpoint": url}]})
    assert found.status == "live"


async def test_an_address_nobody_may_call_is_counted_and_never_live() -> None:
    services = [{"name": kind, "endpoint": "http://10.0.0.1/"} for kind in ("MCP", "A2A", "web")]
    found = await report(ScriptedHttp([]), {"services": services})
    assert (found.status, found.total_pinged, found.ok_count) == ("not_live", 3, 0)
    assert [ping.latency_ms for ping in found.results] == [0, 0, 0]


async def test_answers_that_make_no_sense_are_not_signs_of_life() -> None:
    url = "https://a.example/x"
    for body in ([], 7, None, {"result": []}, {"result": {"tools": {}}}, {"skills": "many"}):
        probes = [answer("POST", url, body, method) for method in ("tools/list", "initialize")]
        probes.append(answer("GET", url, body))
        services = [{"name": kind, "endpoint": url} for kind in ("MCP", "A2A")]
        found = await report(ScriptedHttp(probes), {"services": services})
        assert found.status == "not_live"


async def test_a_report_is_bounded_in_services_and_side_by_side() -> None:
    at_once = most = 0

    class Counting:
        async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008
            nonlocal at_once, most
            del request, limits
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0.01)
            at_once -= 1
            return EgressResponse(200, (), b"", truncated=False, elapsed_ms=1.0)

    services = [{"name": "web", "endpoint": f"https://a.example/{n}"} for n in range(60)]
    found = await Liveness(Counting(), SystemClock()).report(subject({"services": services}))
    assert len(found.results) == SERVICES_MAX
    assert most == CONCURRENCY
    assert all(ping.latency_ms > 0 for ping in found.results)


async def test_a_report_costs_a_bounded_number_of_requests() -> None:
    http = ScriptedHttp([])
    kinds = [("A2A", "https://victim.example/"), ("MCP", "https://victim.example/mcp")]
    services = [{"name": kind, "endpoint": f"{url}{n}"} for n in range(16) for kind, url in kinds]
    found = await report(http, {"services": services})
    assert len(http.sent) == REQUESTS_MAX
    assert (len(found.results), found.status) == (SERVICES_MAX, "not_live")


async def test_a_report_is_given_again_for_half_a_minute() -> None:
    http, clock = ScriptedHttp([]), FrozenClock()
    liveness = Liveness(http, clock)
    asked = subject({"services": [{"name": "web", "endpoint": "https://a.example/"}]})
    await liveness.report(asked)
    await liveness.report(asked)
    assert len(http.sent) == 1
    clock.move(31)
    await liveness.report(asked)
    assert len(http.sent) == 2


async def test_an_agent_without_a_file_is_not_live() -> None:
    agent = OnchainAgent(SOLANA, KEY, KEY, None, "", None, "The agent has no token URI.")
    found = await Liveness(ScriptedHttp([]), FrozenClock()).report(Subject(SOLANA, KEY, KEY, agent))
    assert (found.status, found.results) == ("not_live", ())
    assert declared(None) == []


class Budgeted(ScriptedHttp):
    """Answers until the host's budget is used up."""

    left = 1000

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008
        del request, limits
        self.left -= 1
        if self.left < 0:
            raise EgressError(Failure.BUDGET, "spent")
        return EgressResponse(200, (), b"", truncated=False, elapsed_ms=1.0)


def with_one_service() -> Subject:
    services = [{"name": "web", "endpoint": "https://a.test/"}]
    file = parse_registration(json.dumps({"name": "A", "services": services}).encode())
    return Subject(SOLANA, KEY, KEY, OnchainAgent(SOLANA, KEY, KEY, None, "data:,", file, None))


class Waiting:
    """Nothing is ever sent: all waits for this service."""

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008
        del request, limits
        with own_wait():
            await asyncio.Event().wait()
        raise AssertionError


async def test_waiting_for_us_until_the_time_is_over_makes_no_service_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("assay.liveness.service.BLAMED_FROM_S", 0.05)
    monkeypatch.setattr("assay.liveness.service.TOTAL_S", 0.1)
    told = await Liveness(Waiting(), FrozenClock()).report(with_one_service())
    assert (told.ok_count, told.unasked_reason) == (0, "egress_budget")


async def test_a_budget_used_up_makes_no_service_dead_and_is_said() -> None:
    who = with_one_service()
    http, clock = Budgeted([]), FrozenClock()
    liveness = Liveness(http, clock)
    before = await liveness.report(who)
    assert (before.status, before.cached_reason) == ("live", None)
    http.left = 0
    clock.move(31)
    told = await liveness.report(who)
    assert (told.status, told.cached_reason) == ("live", "egress_budget")
    nobody = Liveness(http, clock)
    told = await nobody.report(who)
    assert (told.ok_count, told.unasked_reason) == (0, "egress_budget")
