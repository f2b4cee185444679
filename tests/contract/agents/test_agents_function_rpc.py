"""Proof of function of JSON-RPC services that speak neither A2A nor MCP."""

from collections.abc import AsyncGenerator

import pytest

from assay.chains.model import Service
from assay.egress.url import EgressPolicy
from assay.infra.http.egress import GuardedHttp
from tests.contract.agents.test_agents_function import proven
from tests.fakes import working_agents as agents
from tests.fakes.http_rpc import HOLLOW, Result, RpcService, services, ways

SHAPES = [*services()]
DISCOVERY = {
    *("rpc.discover", "initialize", "server/discover"),
    *("system.listMethods", "system.methodSignature", "system.methodHelp"),
}


@pytest.fixture
async def http() -> AsyncGenerator[GuardedHttp]:
    guarded = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    yield guarded
    await guarded.aclose()


async def state_of(http: GuardedHttp, service: RpcService, result: Result, nonce: str) -> str:
    async with agents.serving(lambda _: service.app(result)) as base:
        declared = Service("api", base + service.declared)
        [(_, state, _)] = await proven(http, declared, nonce=nonce)
    return state


@pytest.mark.parametrize("nonce", ["one", "two"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_methods_that_ask_are_called(http: GuardedHttp, shape: str, nonce: str) -> None:
    service = services()[shape]
    assert await state_of(http, service, ways, nonce) == "functional"
    assert {*service.called} - DISCOVERY <= {"find_ways"}


@pytest.mark.parametrize("result", HOLLOW.values(), ids=HOLLOW.keys())
@pytest.mark.parametrize("shape", SHAPES)
async def test_who_only_speaks_the_envelope_is_not_functional(
    http: GuardedHttp, shape: str, result: Result
) -> None:
    """A number that is made up comes near enough to itself in one visit of twenty."""
    service = services()[shape]
    right = "not_callable" if service.page else "not_functional"
    nonces = ("one", "two", "three") if result is HOLLOW["makes up"] else ("one",)
    assert right in [await state_of(http, service, result, nonce) for nonce in nonces]


async def test_no_method_that_may_act_is_called(http: GuardedHttp) -> None:
    service = RpcService(
        method="place_order",
        discovery={"system.listMethods": ["place_order", "orders.update", "notify", "frobnicate"]},
    )
    assert await state_of(http, service, ways, "one") != "functional"
    assert {*service.called} <= DISCOVERY
