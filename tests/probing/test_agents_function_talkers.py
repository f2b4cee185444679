"""Proof of function of services that are spoken to in words, and show where on a page or index."""

import pytest

from assay.net.egress.client import GuardedHttp
from tests.probing import test_agents_function as function
from tests.support.fakes.http_talkers import HOLLOW, TALKERS, Says, Talker, eggs

pytestmark = pytest.mark.slow


async def state_of(http: GuardedHttp, talker: Talker, reply: Says, nonce: str = "one") -> str:
    app = talker.app(reply)
    return (await function.state_of(http, lambda _: app, "api", talker.declared, nonce))[1]


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
