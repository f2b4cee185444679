"""HTTP/2 for gRPC: the guard judges its addresses, and no server costs more than the limits."""

import asyncio
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import hpack
import pytest
from hyperframe import frame

from assay.common.egress_budget import RESERVED, egress_use
from assay.db.engine import Database
from assay.net.egress.client import GuardedHttp
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.net.egress.url import EgressPolicy
from tests.support.certificates import TestAuthority
from tests.support.egress_process import DEVELOPMENT, Process
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.grpc_agents import Hostile, hostile_server
from tests.support.fakes.scripted_resolver import ScriptedResolver

pytestmark = pytest.mark.slow

LIMITS = Limits(connect_s=1.0, total_s=1.5, body_bytes_max=64 * 1024, header_bytes_max=16 * 1024)
HEAD = [(":status", "200"), ("content-type", "application/grpc")]
OK = frame.SettingsFrame(0).serialize()


def asking(port: int, host: str = "127.0.0.1", scheme: str = "http") -> OutboundRequest:
    headers = {"content-type": "application/grpc"}
    return OutboundRequest(
        "POST", f"{scheme}://{host}:{port}/a.S/M", headers, b"x" * 40, is_http2=True
    )


@pytest.fixture
async def http() -> AsyncIterator[GuardedHttp]:
    guarded = GuardedHttp(DEVELOPMENT)
    yield guarded
    await guarded.aclose()


async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that does as the standard says: headers, a body, trailers."""
    config = h2.config.H2Configuration(client_side=False)
    server = h2.connection.H2Connection(config)
    server.initiate_connection()
    while data := await reader.read(4096):
        for event in server.receive_data(data):
            if isinstance(event, h2.events.StreamEnded):
                server.send_headers(1, HEAD)
                server.send_data(1, b"\0\0\0\0\2hi")
                server.send_headers(1, [("grpc-status", "0")], end_stream=True)
        writer.write(server.data_to_send())
        await writer.drain()


async def test_a_reply_has_its_trailers(http: GuardedHttp) -> None:
    async with hostile_server(answers) as port:
        reply = await http.send(asking(port), LIMITS)
    assert (reply.status, reply.body) == (200, b"\0\0\0\0\2hi")
    assert reply.header("content-type") == "application/grpc"
    assert reply.trailers == (("grpc-status", "0"),)


def headers_frame(headers: list[tuple[str, str]], *flags: str) -> bytes:
    data = hpack.Encoder().encode(headers)
    return frame.HeadersFrame(1, data, flags=["END_HEADERS", *flags]).serialize()


HEADERS = headers_frame(HEAD)


def repeated(piece: bytes, first: bytes = OK + HEADERS) -> Hostile:
    """The same frames again and again, as fast as they are taken."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(first)
        many = piece * max(1, 65_536 // len(piece))
        while True:
            writer.write(many)
            await writer.drain()

    return talk


def dripping(pieces: Iterator[bytes] | bytes, first: bytes = b"") -> Hostile:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(first)
        for number in range(1000):
            writer.write(pieces[number : number + 1] if isinstance(pieces, bytes) else b"")
            await writer.drain()
            await asyncio.sleep(0.05)

    return talk


def hpack_bomb() -> bytes:
    """One long header in the table, then named by one byte, fifteen thousand times."""
    encoder = hpack.Encoder()
    block = encoder.encode([*HEAD, ("x", "a" * 4000)])
    again = encoder.encode([("x", "a" * 4000)])
    block += again * 15_000
    pieces = [block[n : n + 16_000] for n in range(0, len(block), 16_000)]
    found = frame.HeadersFrame(1, pieces[0]).serialize()
    for place, piece in enumerate(pieces[1:], 2):
        flags = ["END_HEADERS"] if place == len(pieces) else []
        found += frame.ContinuationFrame(1, piece, flags=flags).serialize()
    return found


def window(stream: int, size: int) -> bytes:
    made = frame.WindowUpdateFrame(stream)
    made.window_increment = size
    return made.serialize()


def settings(**values: int) -> bytes:
    return frame.SettingsFrame(0, settings={0x4: values.get("window", 65535)}).serialize()


ENDLESS = {
    "empty data": frame.DataFrame(1, b"").serialize(),
    "one byte data": frame.DataFrame(1, b"x").serialize(),
    "padded data": frame.DataFrame(1, b"", pad_length=255, flags=["PADDED"]).serialize(),
    "long data": frame.DataFrame(1, b"x" * 16_000).serialize(),
    "pings": frame.PingFrame(0, b"12345678").serialize(),
    "settings": settings(window=65535),
    "windows": window(1, 1),
    "priorities": frame.PriorityFrame(1, depends_on=0, stream_weight=1).serialize(),
    "unknown frames": b"\0\0\0\x77\0\0\0\0\0",
    "continuations": frame.ContinuationFrame(1, b"").serialize(),
    "resets": frame.RstStreamFrame(1, error_code=8).serialize(),
    "resets of others": frame.RstStreamFrame(3, error_code=8).serialize(),
    "goaway": frame.GoAwayFrame(0, last_stream_id=1).serialize(),
    "head again": HEADERS,
    "pushes": frame.PushPromiseFrame(1, 2, hpack.Encoder().encode(HEAD)).serialize(),
    "a frame of 16 MB": b"\xff\xff\xff\0\0\0\0\0\1" + b"x" * 100,
    "early hints": headers_frame([(":status", "103")]),
    "rubbish": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
}
HOSTILE = {
    **{name: repeated(piece) for name, piece in ENDLESS.items()},
    "first continuations": repeated(
        ENDLESS["continuations"], OK + frame.HeadersFrame(1, b"").serialize()
    ),
    "early hints first": repeated(ENDLESS["early hints"], OK),
    "pings first": repeated(ENDLESS["pings"], OK),
    "hpack bomb": repeated(OK, OK + hpack_bomb()),
    "silent": dripping(b""),
    "slow headers": dripping(OK + HEADERS),
    "slow body": dripping(frame.DataFrame(1, b"x" * 500).serialize(), OK + HEADERS),
    "many headers": repeated(
        OK, OK + headers_frame([*HEAD, *((f"x-{n}", "y" * 30) for n in range(400))])
    ),
    "long trailers": repeated(
        OK, OK + HEADERS + headers_frame([("x", "y" * 16_380)], "END_STREAM")
    ),
    "no status": repeated(OK, OK + headers_frame([("content-type", "a")])),
    "http/1.1": repeated(ENDLESS["rubbish"], b""),
}


@pytest.mark.parametrize("talk", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_hostile_server_is_bounded(http: GuardedHttp, talk: Hostile) -> None:
    async with hostile_server(talk) as port:
        tracemalloc.start()
        began_s, cpu_s = time.monotonic(), time.thread_time()
        try:
            found: EgressResponse | Failure = await http.send(asking(port), LIMITS)
        except EgressError as error:
            found = error.failure
        took_s, cpu_s = time.monotonic() - began_s, time.thread_time() - cpu_s
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    if isinstance(found, EgressResponse):
        assert found.truncated
        assert len(found.body) <= LIMITS.body_bytes_max
    else:
        assert found in {Failure.PROTOCOL, Failure.TIMEOUT}
    assert took_s < LIMITS.total_s + 2.0
    assert cpu_s < 1.5
    assert peak_bytes < 4 * 1024 * 1024


async def test_a_connection_that_ends_early_is_no_answer(http: GuardedHttp) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(OK + HEADERS + frame.DataFrame(1, b"half").serialize())

    async with hostile_server(talk) as port:
        with pytest.raises(EgressError) as raised:
            await http.send(asking(port), LIMITS)
    assert raised.value.failure is Failure.PROTOCOL


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.1.2.3", "[::1]", "169.254.169.254", "inside.example"]
)
async def test_private_addresses_are_refused(host: str) -> None:
    resolver = ScriptedResolver(inside_example=[["10.0.0.7"]])
    http = GuardedHttp(EgressPolicy(), resolver)
    seen: list[int] = []

    async def talk(*_: object) -> None:
        seen.append(1)

    async with hostile_server(talk) as port:
        for number in (port, 443):
            with pytest.raises(EgressError) as raised:
                await http.send(asking(number, host, "https"), LIMITS)
            assert raised.value.failure is Failure.REFUSED_ADDRESS
    assert not seen
    await http.aclose()


async def test_plain_http2_is_refused_where_https_is_required() -> None:
    http = GuardedHttp(EgressPolicy(allow_private=True))
    with pytest.raises(EgressError) as raised:
        await http.send(asking(80), LIMITS)
    assert raised.value.failure is Failure.REFUSED_ADDRESS
    await http.aclose()


async def test_a_name_is_resolved_once_and_what_was_judged_is_dialled() -> None:
    """DNS rebinding: there is no second look-up that could answer otherwise."""
    resolver = ScriptedResolver(agent_example=[["127.0.0.1"], ["169.254.169.254"]])
    http = GuardedHttp(DEVELOPMENT, resolver)
    async with hostile_server(answers) as port:
        assert (await http.send(asking(port, "agent.example"), LIMITS)).status == 200
        assert resolver.asked == ["agent.example"]
        with pytest.raises(EgressError) as raised:
            await http.send(asking(port, "agent.example"), LIMITS)
    assert raised.value.failure is Failure.REFUSED_ADDRESS
    await http.aclose()


async def test_tls_is_checked_as_for_https(tmp_path: Path) -> None:
    authority = TestAuthority(tmp_path)
    resolver = ScriptedResolver(agent_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
    http = GuardedHttp(DEVELOPMENT, resolver, tls=authority.client_context())
    context = authority.server_context("agent.example")
    context.set_alpn_protocols(["h2"])
    async with hostile_server(answers, context) as port:
        assert (await http.send(asking(port, "agent.example", "https"), LIMITS)).status == 200
        with pytest.raises(EgressError) as raised:
            await http.send(asking(port, "other.example", "https"), LIMITS)
        assert raised.value.failure is Failure.TLS
    async with hostile_server(answers, authority.server_context("agent.example")) as port:
        with pytest.raises(EgressError) as raised:
            await http.send(asking(port, "agent.example", "https"), LIMITS)
        assert raised.value.failure is Failure.PROTOCOL  # it does not say that it speaks HTTP/2
    await http.aclose()


async def test_every_call_is_counted_on_the_budget_of_its_host(
    database: Database, clock: FrozenClock
) -> None:
    process = Process(database, clock)
    async with hostile_server(answers) as port:
        with egress_use(RESERVED):
            for _ in range(60):
                assert (await process.http.send(asking(port), LIMITS)).status == 200
            with pytest.raises(EgressError) as raised:
                await process.http.send(asking(port), LIMITS)
    assert raised.value.failure is Failure.BUDGET
    await process.http.aclose()


async def test_an_endless_answer_ends_with_the_budget_of_its_host(
    database: Database, clock: FrozenClock
) -> None:
    process = Process(database, clock)
    limits = Limits(total_s=10.0, body_bytes_max=8 * 1024 * 1024)
    async with hostile_server(repeated(ENDLESS["long data"])) as port:
        with egress_use(RESERVED):
            reply = await process.http.send(asking(port), limits)
    assert reply.over_budget
    assert len(reply.body) < 256 * 1024
    await process.http.aclose()
