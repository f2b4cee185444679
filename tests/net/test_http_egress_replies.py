"""Whatever a server sends: bounded in size and time, and told for what it is."""

# ruff: noqa: E501 - tables, several to a line

import gzip
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from assay.net.egress.client import GuardedHttp
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.net.egress.url import EgressPolicy
from tests.support.certificates import TestAuthority
from tests.support.fakes.scripted_resolver import ScriptedResolver
from tests.support.raw_server import Respond, keeps_open, plain, sends, serving

DEVELOPMENT = EgressPolicy(allow_private=True, require_https=False)
QUICK = Limits(connect_s=0.5, total_s=1.0, body_bytes_max=10_000, header_bytes_max=4000)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.fixture
async def http() -> AsyncIterator[GuardedHttp]:
    guarded = GuardedHttp(DEVELOPMENT)
    yield guarded
    await guarded.aclose()


async def get(http: GuardedHttp, respond: Respond, limits: Limits = QUICK) -> EgressResponse:
    async with serving(respond) as server:
        return await http.send(OutboundRequest("GET", server.url()), limits)


async def failure(http: GuardedHttp, respond: Respond, limits: Limits = QUICK) -> Failure:
    with pytest.raises(EgressError) as raised:
        await get(http, respond, limits)
    return raised.value.failure


async def test_a_reply_is_told_whole(http: GuardedHttp) -> None:
    sent = plain(b"no", "404 Not Found", "X-One: 1", "Set-Cookie: a=b", "x-one: 2")
    reply = await get(http, keeps_open(sent))
    assert (reply.status, reply.body, reply.truncated) == (404, b"no", False)
    assert reply.headers == (
        ("content-length", "2"), ("x-one", "1"), ("set-cookie", "a=b"), ("x-one", "2"),
    )  # fmt: skip
    assert reply.header("x-one") == "1"
    assert 0 < reply.elapsed_ms < 1000


EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
ENDED = EVENTS + b"Content-Length: 9\r\n\r\ndata: 1\n\n"


async def test_a_stream_of_events_without_an_end_is_soon_a_time_out(http: GuardedHttp) -> None:
    endless = sends(EVENTS + b"\r\n", b"data: 1\n\n", 30.0)
    brief = Limits(total_s=30.0, events_s=0.05)
    assert await failure(http, endless, brief) is Failure.TIMEOUT
    assert (await get(http, keeps_open(ENDED), Limits(events_s=5.0))).body == b"data: 1\n\n"
    late = sends(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", 0.1, b"ok")
    assert (await get(http, late, brief)).body == b"ok"


async def test_a_stream_of_events_that_answers_a_post_is_read_to_its_end(http: GuardedHttp) -> None:
    late = sends(EVENTS + b"Content-Length: 9\r\n\r\n", 0.1, b"data: 1\n\n")
    async with serving(late) as server:
        asked = OutboundRequest("POST", server.url(), body=b"{}")
        reply = await http.send(asked, Limits(events_s=0.01))
    assert (reply.body, reply.truncated) == (b"data: 1\n\n", False)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_told_and_not_followed(http: GuardedHttp, status: int) -> None:
    async with serving(keeps_open(plain(b"", f"{status} Moved", "Location: /next"))) as server:
        reply = await http.send(OutboundRequest("GET", server.url()), QUICK)
        assert (reply.status, reply.header("location")) == (status, "/next")
        assert [request.target for request in server.requests] == ["/"]


async def test_cookies_are_not_kept(http: GuardedHttp) -> None:
    async with serving(keeps_open(plain(b"", "200 OK", "Set-Cookie: canary=1"))) as server:
        for _ in range(2):
            await http.send(OutboundRequest("GET", server.url()), QUICK)
        assert "cookie" not in server.requests[1].headers


async def test_a_request_is_sent_as_it_was_given(http: GuardedHttp) -> None:
    async with serving(keeps_open(plain(b"ok"))) as server:
        headers = {"X-Mine": "1", "User-Agent": "mine", "Content-Type": "text/plain"}
        await http.send(OutboundRequest("post", server.url("/a?b=c"), headers, b"body"), QUICK)
        [request] = server.requests
        assert (request.method, request.target, request.body) == ("POST", "/a?b=c", b"body")
        assert request.headers["x-mine"] == "1"
        assert request.headers["user-agent"] == "mine"


async def test_a_request_cannot_set_what_belongs_to_the_connection(http: GuardedHttp) -> None:
    async with serving(keeps_open(plain(b"ok"))) as server:
        hostile = {
            "Host": "inside", "Content-Length": "9", "Transfer-Encoding": "chunked", "Connection": "x",
            "Proxy-Authorization": "p", "Upgrade": "h2c", "TE": "trailers", "Expect": "100-continue",
        }  # fmt: skip
        await http.send(OutboundRequest("POST", server.url(), hostile, b"abc"), QUICK)
        sent = server.requests[0].headers
        assert sent["host"] == f"127.0.0.1:{server.port}"
        assert sent["content-length"] == "3"
        assert not {"transfer-encoding", "connection", "proxy-authorization", "upgrade"} & set(sent)


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("CONNECT", {}), ("TRACE", {}), ("GET /x HTTP/1.1\r\nX:", {}), ("", {}), ("GÉT", {}),
        ("GET", {"X": "a\r\nInjected: 1"}), ("GET", {"X\r\nInjected": "1"}), ("GET", {"X": "\u20ac"}),
        ("GET", {"": "1"}), ("GET", {"X Y": "1"}), ("GET", {"X": "a\x00"}),
    ],
)  # fmt: skip
async def test_what_cannot_be_sent_safely_is_not_sent(
    http: GuardedHttp, method: str, headers: dict[str, str]
) -> None:
    async with serving(keeps_open(plain(b"ok"))) as server:
        with pytest.raises(EgressError) as raised:
            await http.send(OutboundRequest(method, server.url(), headers), QUICK)
        assert raised.value.failure is Failure.PROTOCOL
        assert server.requests == []


@pytest.mark.parametrize(
    "sent",
    [
        ENDLESS + b"x" * 20_000,
        plain(b"x" * 20_000),
        CHUNKED + b"4e20\r\n" + b"x" * 20_000 + b"\r\n0\r\n\r\n",
    ],
)
async def test_a_long_body_is_cut_at_its_bound(http: GuardedHttp, sent: bytes) -> None:
    reply = await get(http, sends(sent))
    assert (reply.body, reply.truncated) == (b"x" * 10_000, True)


async def test_an_endless_body_is_left_at_its_bound(http: GuardedHttp) -> None:
    reply = await get(http, sends(ENDLESS, *[b"x" * 5000] * 100))
    assert (len(reply.body), reply.truncated) == (10_000, True)


async def test_a_cut_connection_is_not_used_again(http: GuardedHttp) -> None:
    """The unread rest of one body must never be read as the next reply."""
    async with serving(keeps_open(plain(b"x" * 50_000))) as server:
        for _ in range(2):
            reply = await http.send(OutboundRequest("GET", server.url()), QUICK)
            assert (reply.status, reply.truncated) == (200, True)
        assert server.connections == 2


async def test_a_compressed_bomb_is_cut(http: GuardedHttp) -> None:
    bomb = gzip.compress(b"\0" * 20_000_000)
    sent = plain(bomb, "200 OK", "Content-Encoding: gzip")
    by_size = await get(http, keeps_open(sent))
    assert (len(by_size.body), by_size.truncated) == (10_000, True)
    wide = Limits(body_bytes_max=100_000_000, decompression_ratio_max=100)
    by_ratio = await get(http, keeps_open(sent), wide)
    assert by_ratio.truncated
    assert len(by_ratio.body) <= 100 * len(bomb)


async def test_a_compressed_body_is_decompressed(http: GuardedHttp) -> None:
    text = os.urandom(100).hex().encode()
    sent = plain(gzip.compress(text), "200 OK", "Content-Encoding: gzip")
    assert (await get(http, keeps_open(sent))).body == text


@pytest.mark.parametrize(
    "respond",
    [
        keeps_open(plain(b"", "200 OK", *[f"X-{n}: {'v' * 100}" for n in range(50)])),
        keeps_open(plain(b"", "200 OK", "X: " + "v" * 5000)),
        sends(b"HTTP/1.1 200 OK\r\nX: ", *[b"v" * 10_000] * 100),
        sends(b"HTTP/1.1 200 " + b"O" * 300_000),
    ],
    ids=["many", "one long", "one endless", "endless reason"],
)
async def test_a_header_bomb_is_a_protocol_error(http: GuardedHttp, respond: Respond) -> None:
    assert await failure(http, respond) is Failure.PROTOCOL


@pytest.mark.parametrize(
    "respond",
    [
        sends(b"SSH-2.0-OpenSSH_9.6\r\n"),
        sends(b"\x16\x03\x01\x02\x00\x01"),
        sends(b""),
        sends(b"HTTP/1.1 200 OK\r\nContent-Le"),
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"),
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        sends(b"HTTP/1.1 200 OK\r\nbad header: x\r\n\r\n"),
        sends(CHUNKED + b"5\r\nab"),
        sends(CHUNKED + b"zz\r\nab\r\n"),
        sends(CHUNKED + b"5\r\nabcde\r\n"),
        sends(plain(gzip.compress(b"x" * 500)[:-9], "200 OK", "Content-Encoding: gzip")),
        sends(plain(b"not gzip", "200 OK", "Content-Encoding: gzip")),
        sends(plain(b"x", "200 OK", "Content-Encoding: gzip, gzip")),
        sends(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    ],
    ids=range(15),
)
async def test_what_is_not_a_whole_http_reply_is_a_protocol_error(
    http: GuardedHttp, respond: Respond
) -> None:
    assert await failure(http, respond) is Failure.PROTOCOL


DRIP = [piece for _ in range(100) for piece in (b"x", 0.05)]


@pytest.mark.parametrize(
    "respond",
    [
        sends(5.0),
        sends(*DRIP),
        sends(b"HTTP/1.1 200 OK\r\nX: ", *DRIP),
        sends(ENDLESS, *DRIP),
        sends(*[p for _ in range(100) for p in (b"HTTP/1.1 100 Continue\r\n\r\n", 0.05)]),
        sends(CHUNKED, *[p for _ in range(100) for p in (b"1\r\nx\r\n", 0.05)]),
    ],
    ids=["silent", "status drip", "header drip", "body drip", "endless 100", "chunk drip"],
)
async def test_a_slow_reply_costs_no_more_than_the_total_time(
    http: GuardedHttp, respond: Respond
) -> None:
    started = time.monotonic()
    assert await failure(http, respond, Limits(total_s=0.3)) is Failure.TIMEOUT
    assert time.monotonic() - started < 1.5


@pytest.fixture
def authority(tmp_path: Path) -> TestAuthority:
    return TestAuthority(tmp_path)


def trusting(authority: TestAuthority) -> GuardedHttp:
    resolver = ScriptedResolver(agent_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
    return GuardedHttp(DEVELOPMENT, resolver, tls=authority.client_context())


async def test_the_certificate_is_checked_against_the_name(authority: TestAuthority) -> None:
    http = trusting(authority)
    async with serving(
        keeps_open(plain(b"safe")), authority.server_context("agent.example")
    ) as server:
        reply = await http.send(OutboundRequest("GET", server.url(host="agent.example")), QUICK)
        assert reply.body == b"safe"
        for host in ("other.example", "127.0.0.1"):
            with pytest.raises(EgressError) as raised:
                await http.send(OutboundRequest("GET", server.url(host=host)), QUICK)
            assert raised.value.failure is Failure.TLS
    await http.aclose()


async def test_the_certificate_of_a_literal_address_is_checked(authority: TestAuthority) -> None:
    http = trusting(authority)
    async with serving(keeps_open(plain(b"safe")), authority.server_context("127.0.0.1")) as server:
        assert (await http.send(OutboundRequest("GET", server.url()), QUICK)).body == b"safe"
    await http.aclose()


async def test_an_unknown_or_expired_certificate_is_refused(
    authority: TestAuthority, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    stranger = TestAuthority(tmp_path / "other").server_context("agent.example")
    http = trusting(authority)
    for context in (stranger, authority.server_context("agent.example", days=-1)):
        async with serving(keeps_open(plain(b"")), context) as server:
            with pytest.raises(EgressError) as raised:
                await http.send(OutboundRequest("GET", server.url(host="agent.example")), QUICK)
            assert raised.value.failure is Failure.TLS
    await http.aclose()


async def test_a_server_that_speaks_no_tls_is_a_tls_failure(http: GuardedHttp) -> None:
    async with serving(sends(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as server:
        with pytest.raises(EgressError) as raised:
            await http.send(OutboundRequest("GET", f"https://127.0.0.1:{server.port}/"), QUICK)
        assert raised.value.failure in {Failure.TLS, Failure.TIMEOUT}
