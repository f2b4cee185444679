"""Proof of function by documents: bodies, lists, versions and places as real ones have them."""

import pytest

from assay.net.egress.client import GuardedHttp
from tests.probing import test_agents_function as function
from tests.probing.test_agents_function import chances
from tests.support.fakes.http_documents import DOCUMENTED, Documented
from tests.support.fakes.http_shapes import HOLLOW, Handler

pytestmark = pytest.mark.slow


async def state_of(
    http: GuardedHttp, service: Documented, handler: Handler | None = None, nonce: str = "one"
) -> str:
    app = service.app(handler)
    return (await function.state_of(http, lambda _: app, "api", service.declared, nonce))[1]


@pytest.mark.parametrize("nonce", ["one", "two"])
@pytest.mark.parametrize("service", DOCUMENTED.values(), ids=DOCUMENTED.keys())
async def test_a_documented_service_is_proven(
    http: GuardedHttp, service: Documented, nonce: str
) -> None:
    assert await state_of(http, service, nonce=nonce) == "functional"


@pytest.mark.parametrize("hollow", HOLLOW.values(), ids=HOLLOW.keys())
@pytest.mark.parametrize("service", DOCUMENTED.values(), ids=DOCUMENTED.keys())
async def test_its_hollow_twin_is_not(
    http: GuardedHttp, service: Documented, hollow: Handler
) -> None:
    nonces = chances(made_up=hollow is HOLLOW["makes up"])
    assert "not_functional" in [await state_of(http, service, hollow, n) for n in nonces]
