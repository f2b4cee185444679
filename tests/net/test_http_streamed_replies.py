"""A reply that is read while it arrives keeps to every bound of one that is read whole."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from assay.net.egress.client import GuardedHttp
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.net.egress.url import EgressPolicy
from tests.support.raw_server import RawServer, Respond, plain, sends, serving

QUICK = Limits(connect_s=0.5, total_s=1.0, body_bytes_max=10_000, header_bytes_max=4000)
ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@dataclass
class RecordedRequest:
    """A `Tap` that keeps what it is given."""

    status: int = 0
    body: bytes = b""
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        del headers
        self.status = status

    def add(self, piece: bytes) -> None:
        self.body += piece
        self.came.set()


@pytest.fixture
async def http() -> AsyncIterator[GuardedHttp]:
    guarded = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    yield guarded
    await guarded.aclose()


async def streamed(
    http: GuardedHttp, server: RawServer, tap: RecordedRequest, limits: Limits = QUICK
) -> EgressResponse:
    return await http.send(OutboundRequest("GET", server.url(), tap=tap), limits)


async def failure(http: GuardedHttp, respond: Respond, tap: RecordedRequest) -> Failure:
    async with serving(respond) as server:
        with pytest.raises(EgressError) as raised:
            await streamed(http, server, tap)
    return raised.value.failure


async def test_a_stream_is_heard_before_it_ends(http: GuardedHttp) -> None:
    tap = RecordedRequest()
    async with serving(sends(ENDLESS, b"data: 1\n\n", 30.0)) as server:
        reading = asyncio.get_running_loop().create_task(
            streamed(http, server, tap, Limits(total_s=30.0))
        )
        await asyncio.wait_for(tap.came.wait(), 10)
        assert (tap.status, tap.body) == (200, b"data: 1\n\n")
        assert not reading.done()
        reading.cancel()
        await asyncio.wait([reading])


async def test_a_stream_that_never_ends_is_left_at_its_time(http: GuardedHttp) -> None:
    tap = RecordedRequest()
    assert await failure(http, sends(ENDLESS, b"data: 1\n\n", 30.0), tap) is Failure.TIMEOUT
    assert tap.body == b"data: 1\n\n"


async def test_a_stream_gives_no_more_bytes_than_its_bound(http: GuardedHttp) -> None:
    tap = RecordedRequest()
    async with serving(sends(ENDLESS, *[b"x" * 7000] * 100)) as server:
        reply = await streamed(http, server, tap)
    assert reply.truncated
    assert tap.body == reply.body == b"x" * 10_000


async def test_a_compressed_stream_is_given_decompressed_and_within_its_ratio(
    http: GuardedHttp,
) -> None:
    bomb = plain(gzip.compress(b"\0" * 5_000_000), "200 OK", "Content-Encoding: gzip")
    tap = RecordedRequest()
    async with serving(sends(bomb)) as server:
        reply = await streamed(http, server, tap, Limits(total_s=5.0, body_bytes_max=10**7))
    assert reply.is_bomb
    assert len(tap.body) == len(reply.body) < 10**6


async def test_a_stream_from_an_address_that_is_refused_is_never_opened() -> None:
    tap = RecordedRequest()
    strict = GuardedHttp(EgressPolicy(allow_private=False, require_https=False))
    assert await failure(strict, sends(ENDLESS), tap) is Failure.REFUSED_ADDRESS
    assert tap.status == 0
    await strict.aclose()


async def test_a_head_beyond_its_bound_is_no_stream(http: GuardedHttp) -> None:
    tap = RecordedRequest()
    long = b"HTTP/1.1 200 OK\r\nX: " + b"x" * 8000 + b"\r\n\r\ndata: 1\n\n"
    assert await failure(http, sends(long), tap) is Failure.PROTOCOL
    assert (tap.status, tap.body) == (0, b"")
