"""Proof of function of services that are spoken to in words, and show where on a page or index."""

from collections.abc import AsyncGenerator

import pytest

from assay.chains.model import Service
from assay.egress.url import EgressPolicy
from assay.infra.http.egress import GuardedHttp
from tests.contract.agents.test_agents_function import proven
from tests.fakes import working_agents as agents
from tests.fakes.http_talkers import HOLLOW, TALKERS, Says, Talker, eggs


@pytest.fixture
async def http() -> AsyncGenerator[GuardedHttp]:
    guarded = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    yield guarded
    await guarded.aclose()


async def state_of(http: GuardedHttp, talker: Talker, reply: Says, nonce: str = "one") -> str:
    async with agents.serving(lambda _: talker.app(reply)) as base:
        [(_, state, _)] = await proven(http, Service("api", base + talker.declared), nonce=nonce)
    return state


@pytest.mark.parametrize("nonce", ["one", "two"])
@pytest.mark.parametrize("talker", TALKERS.values(), ids=TALKERS.keys())
async def test_who_shows_where_is_spoken_to(http: GuardedHttp, talker: Talker, nonce: str) -> None:
    assert await state_of(http, talker, eggs, nonce) == "functional"


@pytest.mark.parametrize("reply", HOLLOW.values(), ids=HOLLOW.keys())
@pytest.mark.parametrize("talker", TALKERS.values(), ids=TALKERS.keys())
async def test_its_hollow_twin_is_not_functional(
    http: GuardedHttp, talker: Talker, reply: Says
) -> None:
    state = await state_of(http, talker, reply)
    assert state in {"not_callable" if talker.declared == "/" else "not_functional", "unfinished"}
