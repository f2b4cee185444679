"""Proof of function by documents: bodies, lists, versions and places as real ones have them."""

from collections.abc import AsyncGenerator

import pytest

from assay.chains.model import Service
from assay.egress.url import EgressPolicy
from assay.infra.http.egress import GuardedHttp
from tests.contract.agents.test_agents_function import proven
from tests.fakes import working_agents as agents
from tests.fakes.http_documents import DOCUMENTED, Documented
from tests.fakes.http_shapes import HOLLOW, Handler


@pytest.fixture
async def http() -> AsyncGenerator[GuardedHttp]:
    guarded = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    yield guarded
    await guarded.aclose()


async def state_of(
    http: GuardedHttp, service: Documented, handler: Handler | None = None, nonce: str = "one"
) -> str:
    async with agents.serving(lambda _: service.app(handler)) as base:
        [(_, state, _)] = await proven(http, Service("api", base + service.declared), nonce=nonce)
    return state


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
    """A number that is made up comes near enough to itself in one visit of twenty."""
    nonces = ("one", "two", "three") if hollow is HOLLOW["makes up"] else ("one",)
    assert "not_functional" in [await state_of(http, service, hollow, n) for n in nonces]
