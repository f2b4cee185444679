"""What an upstream may cost in one turn of the loop: chunks and trailers are counted."""

import asyncio

from assay.http1.connection import (
    CHOPPY_READ_BYTES,
    CHUNKS_PER_READ,
    READ_BYTES,
    TRAILER_BYTES_MAX,
    UpstreamConnection,
)
from assay.http1.model import ResponseHead, UpstreamFailed
from tests.support.fakes.silent_transport import SilentTransport

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
TINY = b"1\r\nx\r\n"


class Counted:
    """A sink that counts what it is told."""

    def __init__(self) -> None:
        self.pieces = 0
        self.is_ended = False
        self.error: UpstreamFailed | None = None

    def on_head(self, head: ResponseHead) -> None:
        """Nothing is counted of it."""

    def on_piece(self, piece: bytes | memoryview) -> None:
        assert piece
        self.pieces += 1

    def flush(self) -> None:
        """Nothing is kept."""

    def on_end(self) -> None:
        self.is_ended = True

    def on_failure(self, error: UpstreamFailed, *, untouched: bool) -> None:
        del untouched
        self.error = error


async def opened() -> tuple[UpstreamConnection, SilentTransport, Counted]:
    connection, wire, sink = (
        UpstreamConnection(asyncio.get_running_loop()),
        SilentTransport(),
        Counted(),
    )
    connection.connection_made(wire)
    connection.begin(b"", False, 30.0, sink)  # noqa: FBT003
    return connection, wire, sink


def fed(connection: UpstreamConnection, data: bytes) -> int:
    """Let it read as much of it as it asks for at once; returns how much that was."""
    memory = connection.get_buffer(-1)
    size = min(len(memory), len(data))
    memory[:size] = data[:size]
    connection.buffer_updated(size)
    return size


async def test_an_answer_of_tiny_chunks_is_read_little_by_little() -> None:
    """A chunk of a byte costs as much as a large one, and 40,000 of them fit into one read."""
    connection, _, sink = await opened()
    fed(connection, HEAD)
    data = TINY * (4 * READ_BYTES // len(TINY))
    turns: list[int] = []
    while data:
        before = sink.pieces
        data = data[fed(connection, data) :]
        turns.append(sink.pieces - before)
    assert max(turns[1:]) <= CHOPPY_READ_BYTES // len(TINY) + 1
    fed(connection, b"0\r\n\r\n")
    assert sink.is_ended


async def test_it_is_read_so_on_the_same_connection_from_then_on() -> None:
    connection, _, _ = await opened()
    fed(connection, HEAD + TINY * (CHUNKS_PER_READ + 1) + b"0\r\n\r\n")
    assert connection.end()
    connection.begin(b"", False, 30.0, Counted())  # noqa: FBT003
    assert len(connection.get_buffer(-1)) == CHOPPY_READ_BYTES


async def test_an_answer_of_usual_chunks_is_read_as_it_comes() -> None:
    connection, _, sink = await opened()
    fed(connection, HEAD)
    for _ in range(20):
        fed(connection, (b"2000\r\n%b\r\n" % (b"x" * 0x2000)) * 30)
    assert len(connection.get_buffer(-1)) == READ_BYTES
    assert sink.pieces >= 600


async def test_trailers_of_an_answer_are_bounded() -> None:
    line = b"A: b\r\n"
    connection, wire, sink = await opened()
    fed(connection, HEAD + b"0\r\n" + line * (TRAILER_BYTES_MAX // 8) + b"\r\n")
    assert sink.is_ended
    connection, wire, sink = await opened()
    fed(connection, HEAD + b"0\r\n" + line * (TRAILER_BYTES_MAX // 4))
    assert sink.error is not None
    assert wire.is_over
