"""What a visit costs an agent of each kind: every critical check is asked within sixty requests."""

import json
from collections.abc import Callable

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from assay.common.clock import SystemClock
from assay.common.json import is_array, is_object
from assay.common.shared_state import MemorySharedState
from assay.evaluation.model import Evidence
from assay.evaluation.ports import Sources
from assay.evaluation.signals.sandbox import REQUESTS_MAX
from assay.net.egress.client import GuardedHttp
from assay.probing.out_of_band_url import OutOfBandCalls
from assay.probing.ports import Severity
from tests.probing.test_agents_sandbox import PROBES, declaring, visit
from tests.support.fakes.trust import WALLET
from tests.support.fakes.working_agents import (
    CONVERT,
    a2a_app,
    converts,
    mcp_app,
    rest_app,
    serving,
    working_tools,
)

SERVICES = {
    "A2A": "/.well-known/agent-card.json",
    "MCP": "/mcp",
    "web": "/openapi.json",
    "api": "/shop",
}
OFFER = {
    "scheme": "exact",
    "network": "base-sepolia",
    "maxAmountRequired": "10000",
    "asset": "0x036cbd53842c5426634e7929541ec2318f3dcf7e",
    "payTo": WALLET,
    "resource": "http://shop/",
}
KINDS = {
    "A2A": {"A2A"},
    "MCP": {"MCP"},
    "HTTP": {"web"},
    "x402": {"api"},
    "A2A, MCP": {"A2A", "MCP"},
    "A2A, MCP, HTTP": {"A2A", "MCP", "web"},
    "all": {"A2A", "MCP", "web", "api"},
}


async def _sell(send: Send) -> None:
    body = json.dumps({"x402Version": 1, "accepts": [OFFER]}).encode()
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 402, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def everything(tools: ASGIApp) -> Callable[[str], ASGIApp]:
    """All kinds of services on one host; each works."""

    def make(base: str) -> ASGIApp:
        agent, rest = a2a_app(converts, CONVERT)(base), rest_app(base)

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            path = scope["path"]
            if path == "/shop":
                await _sell(send)
            elif path.startswith("/mcp"):
                await tools(scope, receive, send)
            elif path.startswith(("/a2a", "/.well-known/agent-card")):
                await agent(scope, receive, send)
            else:
                await rest(scope, receive, send)

        return app

    return make


async def visited(http: GuardedHttp, names: set[str]) -> Evidence:
    baits = OutOfBandCalls(MemorySharedState(SystemClock()), ("s" * 32,), ["http://127.0.0.1:9"])
    mcp = working_tools()
    async with serving(everything(mcp_app(mcp)("")), mcp) as base:
        services = [(name, path) for name, path in SERVICES.items() if name in names]
        return await visit(http, declaring(base, services), 20.0, Sources(lures=baits))


@pytest.mark.parametrize("kind", KINDS)
async def test_every_critical_check_is_asked_within_the_requests_of_a_visit(
    http: GuardedHttp, kind: str
) -> None:
    evidence = await visited(http, KINDS[kind])
    seen, rows = evidence.data["probes"], evidence.data["function"]
    assert is_object(seen)
    assert is_array(rows)
    states = {str(row["state"]) for row in rows if is_object(row)}
    print(f"{kind}: {evidence.interactions} requests, {sorted(states)}")  # noqa: T201 - a figure
    assert evidence.interactions <= REQUESTS_MAX
    assert states <= {"functional", "closed"}
    assert "criticalUnfinished" not in evidence.data
    critical = {name for name, probe in PROBES.items() if probe.severity is Severity.CRITICAL}
    assert not [name for name in critical if seen[name] == "unfinished"]
    if "A2A" in KINDS[kind]:
        assert all(is_object(seen[name]) for name in critical)
