"""A head that is known reads as it did when it was parsed, whatever an upstream sends."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.common.http_heads import is_plain
from assay.http1.connection import ConnectionContext, UpstreamConnection
from assay.http1.model import ResponseHead, UpstreamFailed
from assay.http1.response_heads import ResponseHeadCache
from tests.support.fakes.silent_transport import SilentTransport

STARTS = (
    *(b"HTTP/1.1 200 OK", b"HTTP/1.1 404 No", b"HTTP/1.1 204 -", b"HTTP/1.1 304 -"),
    *(b"HTTP/1.0 200 OK", b"HTTP/1.1 200", b"\r\nHTTP/1.1 200 OK", b"HTTP/1.1 100 -"),
    *(b"HTTP/1.1 103 -\r\na: b\r\n\r\nHTTP/1.1 200 OK", b"HTTP/2 200 OK", b"nonsense"),
)
LINES = (
    *(b"content-length: 5", b"Content-Length: 5", b"content-length: 05", b"content-length: 0"),
    *(b"content-length: +5", b"content-length: 5, 5", b"transfer-encoding: chunked"),
    *(b"connection: close", b"Connection: keep-alive", b"a: b", b"a:", b"a: b\n c: d"),
    *(b"x: y\r\n z", b" lead: 1", b"date: now", b"trailer: x", b"content-length : 5"),
)
BODIES = (
    *(b"", b"hello", b"hell", b"hello!", b"5\r\nhello\r\n0\r\n\r\n", b"\r\n\r\nhello"),
    b"helloHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
)


class RecordedRequest:
    """A sink that notes everything."""

    def __init__(self) -> None:
        self.said: list[object] = []
        self.body = b""

    def on_head(self, head: ResponseHead) -> None:
        self.said.append((head.status, tuple(head.headers)))

    def on_piece(self, piece: bytes | memoryview) -> None:
        self.body += piece

    def flush(self) -> None:
        """Pieces are put together anyway."""

    def on_end(self) -> None:
        self.said.append("end")

    def on_failure(self, error: UpstreamFailed, *, untouched: bool) -> None:
        self.said.append((error.code, untouched))


def heard(heads: ResponseHeadCache, pieces: Sequence[bytes]) -> tuple[object, ...]:
    """What a sink hears, and whether the connection may serve another exchange."""
    with asyncio.Runner() as runner:

        async def read() -> tuple[object, ...]:
            shared = ConnectionContext(heads=heads)
            connection, wire = (
                UpstreamConnection(asyncio.get_running_loop(), shared),
                SilentTransport(),
            )
            connection.connection_made(wire)
            sink = RecordedRequest()
            connection.begin(b"", False, 30.0, sink)  # noqa: FBT003
            for piece in pieces:
                if not wire.is_over:
                    connection.get_buffer(-1)[: len(piece)] = piece
                    connection.buffer_updated(len(piece))
            if "end" not in sink.said and not wire.is_over:
                connection.connection_lost(None)
            return tuple(sink.said), sink.body, connection.end()

        return runner.run(read())


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(STARTS),
    st.lists(st.sampled_from(LINES), max_size=4),
    st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n"]),
    st.sampled_from(BODIES),
    st.sampled_from(BODIES),
    st.lists(st.integers(0, 120), max_size=3),
)
def test_a_known_head_reads_as_an_unknown_one(
    start: bytes,
    lines: list[bytes],
    end: bytes,
    first: bytes,
    second: bytes,
    cuts: list[int],
) -> None:
    head = end.join([start, *lines, b"", b""])
    heads = ResponseHeadCache()
    heard(heads, [head + first])
    data = head + second
    at = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in pairwise(at)]
    assert heard(heads, pieces) == heard(ResponseHeadCache(), pieces)


def test_what_is_usual_is_remembered() -> None:
    heads, head = ResponseHeadCache(), b"HTTP/1.1 200 OK\r\nA: b\r\ncontent-length: 2\r\n\r\n"
    heard(heads, [head + b"ok"])
    assert heads.find(head) is not None


@given(st.binary(max_size=60), st.integers(0, 3))
def test_a_plain_head_has_one_line_for_each_header(raw: bytes, headers: int) -> None:
    if is_plain(raw, headers):
        assert len(raw.split(b"\r\n")) == len(raw.split(b"\n")) == headers + 3
