"""Wrappers reach no address that was not judged: configs, names, answers that change."""

from decimal import Decimal

import pytest

from assay.common.clock import SystemClock
from assay.common.errors import InvalidRequest
from assay.common.keyring import SecretBox
from assay.http1.client import UpstreamPool
from assay.http1.model import Target, UpstreamFailed, UpstreamRequest
from assay.net.egress.dial import UpstreamDialer
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from assay.payments.networks import payment_networks
from assay.wrappers.service import ConfigRules, Endpoints, NewEndpoint
from tests.net.test_http_egress_address import DENIED_ANSWERS
from tests.support.fakes.scripted_resolver import ScriptedResolver
from tests.support.fakes.wrappers import MemoryWrapperStore
from tests.support.raw_server import keeps_open, plain, serving
from tests.vectors.forbidden_hosts import FORBIDDEN

PRODUCTION = EgressPolicy()
LENIENT = EgressPolicy(allow_private=False, require_https=False)


def endpoints(policy: EgressPolicy) -> Endpoints:
    rules = ConfigRules(policy, payment_networks({}), "0x" + "ab" * 20, Decimal(100))
    box = SecretBox.from_secrets("s" * 32)
    return Endpoints(MemoryWrapperStore(), box, rules, SystemClock())


def request(target: Target) -> UpstreamRequest:
    return UpstreamRequest("GET", target, b"/", (), b"", 0, timeout_s=2)


@pytest.mark.parametrize("host", FORBIDDEN, ids=ascii)
async def test_no_wrapper_is_made_for_a_forbidden_spelling(host: str) -> None:
    for url in (f"https://{host}/", f"https://{host}:8443/v1", f"https://{host}"):
        with pytest.raises(InvalidRequest):
            await endpoints(PRODUCTION).create("op", NewEndpoint("/x", Decimal(0), url))


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com/",
        "ftp://api.example.com/",
        "https://user:pw@api.example.com/",
        "https://api.example.com@127.0.0.1/",
        "https://api.example.com:22/",
        "https://api.example.com:6379/",
        "https://api.example.com/?q=1",
        "https://api.example.com/#f",
        "https://api.example.com/a/../b",
        "//api.example.com/",
        "https:///x",
        "https://api.example.com\\@127.0.0.1/",
        "https://api.example.com%2f@127.0.0.1/",
        "javascript:alert(1)",
        "",
    ],
)
async def test_a_target_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest):
        await endpoints(PRODUCTION).create("op", NewEndpoint("/x", Decimal(0), url))


@pytest.mark.parametrize("answer", DENIED_ANSWERS)
async def test_a_name_that_resolves_to_a_denied_address_is_not_dialled(answer: str) -> None:
    target = parse_target("http://api.example/", LENIENT)
    assert isinstance(target, Target)
    for script in ([answer], ["93.184.216.34", answer], [answer, "93.184.216.34"]):
        resolver = ScriptedResolver(api_example=[script])
        pool = UpstreamPool(UpstreamDialer(LENIENT, resolver).connect, SystemClock())
        with pytest.raises(UpstreamFailed):
            await pool.send(request(target))
        await pool.aclose()


async def test_an_answer_that_changes_between_look_ups_is_judged_each_time() -> None:
    """Rebinding: the address that was judged is the one that is dialled, and no other."""
    async with serving(keeps_open(plain(b"ok"))) as server:
        development = EgressPolicy(allow_private=True, require_https=False)
        resolver = ScriptedResolver(api_example=[["127.0.0.1"], ["169.254.169.254"]])
        pool = UpstreamPool(UpstreamDialer(development, resolver).connect, SystemClock())
        target = parse_target(f"http://api.example:{server.port}/", development)
        assert not isinstance(target, RefusedUrl)
        reply = await pool.send(request(target))
        reply.close()
        assert resolver.asked == ["api.example"]
        await pool.aclose()  # no kept connection: the name is asked again, and judged again
        with pytest.raises(UpstreamFailed):
            await pool.send(request(target))
        await pool.aclose()
