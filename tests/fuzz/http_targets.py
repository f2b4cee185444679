"""HTTP: addresses to call, bodies and heads of upstreams, paths of wrappers, headers going back."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import cache
from ipaddress import ip_address
from typing import Any

from assay.http1.connection import ConnectionContext, SharedReads, UpstreamConnection
from assay.http1.model import ResponseHead, UpstreamFailed
from assay.net.body import BodyBroken, read_body
from assay.net.egress.address import classify
from assay.net.egress.credentials import OwnCredentials, as_gateways_read
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from assay.net.egress.url import Target as Address
from assay.wrappers.matching import (
    BadPath,
    RouteRow,
    RouteTable,
    check_pattern,
    route_key,
    segments_of,
)
from assay.wrappers.model import WrapperConfig
from assay.wrappers.origin import WrapperOrigin
from assay.wrappers.stages.forward import ForwardStage
from tests.fuzz.target import Target, latin, pieces, text
from tests.support.fakes.silent_transport import SilentTransport

loop = cache(asyncio.new_event_loop)
"""Made when it is first needed: a process that was forked needs its own."""
OPEN = EgressPolicy(require_https=False)
BODY_BYTES_MAX = 4096
RATIO_MAX = 100
NOTHING: Any = None
SAFE = set(map(chr, range(0x21, 0x7F)))


def url(data: bytes) -> None:
    """An address is refused, or has one meaning, which is public and said again is the same."""
    found = parse_target(text(data), OPEN)
    if isinstance(found, RefusedUrl):
        return
    assert isinstance(found, Address)
    assert set(found.authority + found.path_and_query) <= SAFE
    if found.is_literal_ip:
        assert classify(found.host) is None
    again = parse_target(f"{found.scheme}://{found.authority}{found.path_and_query}", OPEN)
    assert again == found


def network_address(data: bytes) -> None:
    """Every address is judged; its text and its number alike."""
    chosen, body = pieces(data)
    size = (4, 16)[chosen % 2]
    if len(body) >= size:
        number = ip_address(body[:size])
        assert (classify(number) is None) == (classify(str(number)) is None)
        if not number.is_global:
            assert classify(number) is not None
    classify(latin(body))


async def _in_pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def inflate(data: bytes) -> None:
    """However it is cut up, the same bytes come out, and never more than the bound."""
    chosen, body = pieces(data)
    coding = ("gzip", "deflate", "identity", "br", "gzip, gzip")[chosen % 5]

    async def read(size: int) -> object:
        try:
            found = await read_body(_in_pieces(body, size), coding, BODY_BYTES_MAX, RATIO_MAX)
        except BodyBroken:
            return None
        assert len(found.data) <= BODY_BYTES_MAX
        return None if found.truncated else found.data

    whole, cut = loop().run_until_complete(read(1 << 20)), loop().run_until_complete(read(7))
    assert whole == cut or whole is None or cut is None


READS = SharedReads()
"""Memory to read into: made once, for it is large."""


class RecordedRequest:
    """A sink that notes everything, and checks the order of what it is told."""

    def __init__(self) -> None:
        self.head: ResponseHead | None = None
        self.body = b""
        self.end = ""

    def on_head(self, head: ResponseHead) -> None:
        assert self.head is None
        assert not self.end
        self.head = head

    def on_piece(self, piece: bytes | memoryview) -> None:
        assert self.head is not None
        assert not self.end
        self.body += piece

    def flush(self) -> None:
        assert not self.end

    def on_end(self) -> None:
        assert self.head is not None
        assert not self.end
        self.end = "whole"

    def on_failure(self, error: UpstreamFailed, *, untouched: bool) -> None:
        del untouched
        assert isinstance(error, UpstreamFailed)
        assert not self.end
        self.end = "failed"


def _exchange(
    shared: ConnectionContext, data: bytes, size: int, *, is_head: bool
) -> tuple[object, ...]:
    """One exchange on a fresh connection: what the sink heard, however the bytes came."""
    connection = UpstreamConnection(loop(), shared)
    wire, heard = SilentTransport(), RecordedRequest()
    connection.connection_made(wire)
    connection.begin(b"GET / HTTP/1.1\r\n\r\n", is_head, 10.0, heard)
    for at in range(0, len(data), size):
        if wire.is_over:
            break
        piece = data[at : at + size]
        connection.get_buffer(-1)[: len(piece)] = piece
        connection.buffer_updated(len(piece))
    connection.connection_lost(None)
    head = None if heard.head is None else (heard.head.status, tuple(heard.head.headers))
    return (head, heard.body, heard.end) if heard.end == "whole" else (heard.end,)


def upstream_answer(data: bytes) -> None:
    """An upstream's answer means the same whole, in pieces, and when its head is known already."""
    loop().run_until_complete(_upstream_answer(data))


async def _upstream_answer(data: bytes) -> None:
    chosen, body = pieces(data)
    shared, is_head = ConnectionContext(READS), chosen % 8 == 0
    first = _exchange(shared, body, 1 << 16, is_head=is_head)
    again = _exchange(shared, body, 1 << 16, is_head=is_head)
    cut = _exchange(ConnectionContext(READS), body, 1 + chosen % 13, is_head=is_head)
    assert first == again
    assert first == cut
    if first[-1] == "whole":
        head: Any = first[0]
        assert 200 <= head[0] <= 599
        assert all(b"\r" not in v and b"\n" not in v and b"\0" not in v for _, v in head[1])


PATTERNS = ("/shop/quote", "/shop/{id}", "/shop/*", "/{a}/{b}", "/files/a.b", "/")
TABLE = RouteTable([RouteRow("GET", path, path) for path in PATTERNS])
METHODS = ("GET", "M-SEARCH", "POST", "X-ANY.1")


def wrapper_path(data: bytes) -> None:
    """A request's path fits by its segments alone, and the same after being found once."""
    path = "/" + latin(data)
    assert not {".", ".."} & set(segments_of(path))
    found = TABLE.match("GET", path)
    assert TABLE.match("GET", path) == found
    if found is None:
        return
    segments = segments_of(found.path)
    assert not {".", ".."} & set(segments)
    if found.value == "/shop/quote":
        assert segments == ("shop", "quote")
    elif found.value == "/shop/{id}":
        assert segments[0] == "shop"
        assert len(segments) == 2


def wrapper_pattern(data: bytes) -> None:
    """A pattern that may be registered answers the path that spells it."""
    pattern = text(data)
    check_pattern(pattern)
    method = METHODS[len(data) % len(METHODS)]
    assert route_key(method, pattern).startswith(method)
    plain = pattern.replace("{", "").replace("}", "")
    path = plain.removesuffix("*") + "x" if plain.endswith("/*") else plain
    found = RouteTable([RouteRow(method, pattern, 1)]).match(method, path)
    assert found is not None
    assert found.value == 1


CONFIG = WrapperConfig(
    id="w",
    operator_id="op",
    path="/*",
    method="GET",
    price=0,
    description="",
    rate_limit=None,
    target_url="https://up.example/base",
    protocol="x402",
    network="eip155:8453",
    payout_address=None,
    trust_enabled=False,
    min_score=65.0,
    identity_proof="required",
    settle="after",
    max_body_bytes=1024,
    timeout_ms=1000,
    auth=None,
    active=True,
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)
FORWARD = ForwardStage(
    NOTHING,
    WrapperOrigin.of("https://assay.example", "https://wrap.example"),
    OwnCredentials(lambda _: False),
)
OURS = (b"x-payment", b"x-assay-", b"payment-re")


def answer_headers(data: bytes) -> None:
    """Cookies, places and names of an upstream: none of ours, and none outside its wrapper."""
    lines = [line.partition(b":") for line in data.split(b"\n")]
    found = [(name.lower(), value.strip()) for name, _, value in lines if name]
    for name, value in FORWARD.answer_headers(CONFIG, found):
        assert not as_gateways_read(name).startswith(OURS)
        assert b"\n" not in value
        if name == b"set-cookie":
            parts = [part.strip().lower() for part in value.split(b";")]
            assert not any(part.startswith(b"domain") for part in parts[1:])
            paths = [part for part in parts[1:] if part.startswith(b"path")]
            assert len(paths) == 1
            # Of `#` and `?` no request's path has any: such a cookie is sent to nobody.
            assert re.match(rb"path=/wrap/op(?:[/#?]|$)", paths[0])


TARGETS = (
    Target("url", url, (), 1024),
    Target("network_address", network_address, (), 64),
    Target("inflate", inflate),
    Target("upstream_answer", upstream_answer),
    Target("wrapper_path", wrapper_path, (BadPath,), 3000),
    Target("wrapper_pattern", wrapper_pattern, (BadPath,), 512),
    Target("answer_headers", answer_headers, (), 1024),
)
