"""A request that comes byte by byte costs the same for each byte: work is counted, not timed."""

import sys
from types import FrameType

import pytest

from assay.http1.request_parser import RequestParser

HEAD_BYTES_MAX = 64 * 1024
LONG = 2000
SAMPLE = 50
CALLS_MAX = 24
"""Of functions, Python's own included, for one byte; a head is some 60,000 of them."""

STARTS = {
    "a request line": b"GET /",
    "a header's value": b"GET / HTTP/1.1\r\nHost: x\r\nX: ",
    "a header's name": b"GET / HTTP/1.1\r\nHost: x\r\n",
    "a body of a length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",
    "a chunk": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n",
    "a trailer": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ",
}


class Ignored:
    """Nobody hears of what was read."""

    def on_head(self) -> None:
        """Nothing is done."""

    def on_body(self, body: bytes) -> None:
        """Nothing is done."""

    def on_message_complete(self) -> None:
        """Nothing is done."""


def calls(parser: RequestParser, byte: bytes) -> int:
    """How many functions are called to read one more byte."""
    count = 0

    def seen(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        parser.feed(byte)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("start", STARTS.values(), ids=list(STARTS))
def test_the_last_byte_of_a_drip_costs_what_the_first_one_cost(start: bytes) -> None:
    parser = RequestParser(Ignored(), HEAD_BYTES_MAX)
    parser.feed(start)
    early = [calls(parser, b"a") for _ in range(SAMPLE)]
    for _ in range(LONG):
        parser.feed(b"a")
    late = [calls(parser, b"a") for _ in range(SAMPLE)]
    assert max(late) <= max(early) <= CALLS_MAX


def test_what_was_searched_is_not_searched_again() -> None:
    """Of a long head only the last bytes are looked at, and nothing of it is copied."""

    class Head(bytearray):
        looked_at = 0

        def find(self, mark: bytes, start: int = 0) -> int:  # type: ignore[override]
            Head.looked_at += len(self) - start
            return super().find(mark, start)

        def __getitem__(self, where: slice) -> bytearray:  # type: ignore[override]
            piece = super().__getitem__(where)
            Head.looked_at += len(piece)
            return piece

    parser = RequestParser(Ignored(), HEAD_BYTES_MAX)
    parser._head = Head()
    parser.feed(STARTS["a header's value"][:3])
    Head.looked_at = 0
    for byte in STARTS["a header's value"][3:] + b"a" * LONG:
        parser.feed(bytes([byte]))
    assert 0 < Head.looked_at <= 64 * (LONG + 100)
