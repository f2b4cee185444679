"""Proof of function of JSON-RPC services that speak neither A2A nor MCP."""

import pytest

from assay.net.egress.client import GuardedHttp
from tests.probing import test_agents_function as function
from tests.probing.test_agents_function import chances
from tests.support.fakes.http_rpc import HOLLOW, Result, RpcService, services, ways

pytestmark = pytest.mark.slow

SHAPES = [*services()]
DISCOVERY = {
    *("rpc.discover", "initialize", "server/discover"),
    *("system.listMethods", "system.methodSignature", "system.methodHelp"),
}


async def state_of(http: GuardedHttp, service: RpcService, result: Result, nonce: str) -> str:
    app = service.app(result)
    return (await function.state_of(http, lambda _: app, "api", service.declared, nonce))[1]


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
    service = services()[shape]
    right = "not_callable" if service.page else "not_functional"
    nonces = chances(made_up=result is HOLLOW["makes up"])
    assert right in [await state_of(http, service, result, nonce) for nonce in nonces]


async def test_no_method_that_may_act_is_called(http: GuardedHttp) -> None:
    service = RpcService(
        method="place_order",
        discovery={"system.listMethods": ["place_order", "orders.update", "notify", "frobnicate"]},
    )
    assert await state_of(http, service, ways, "one") != "functional"
    assert {*service.called} <= DISCOVERY
