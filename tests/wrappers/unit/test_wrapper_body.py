"""Whoever drips the body of an unpaid call holds its upstream for half a minute, and no longer."""

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import pytest

from assay.common.errors import RequestTimeout
from assay.server.request_context import AsgiMessage, RequestContext
from assay.wrappers.routes_calls import BYTES_PER_S, SLOW_S, WrapperBody
from tests.support.fakes.clock import FrozenClock

CHUNKED = {"transfer-encoding": "chunked"}
MIB = 1024 * 1024


class Caller:
    """Sends one piece after the other, each so many seconds after it is asked for."""

    def __init__(self, pieces: Iterator[bytes], every_s: float) -> None:
        self.clock = FrozenClock()
        self.asked = 0
        self._pieces, self._every_s = pieces, every_s

    async def receive(self) -> AsgiMessage:
        self.asked += 1
        self.clock.move(self._every_s)
        piece = next(self._pieces, b"")
        return {"type": "http.request", "body": piece, "more_body": bool(piece)}

    @property
    def body(self) -> WrapperBody:
        return WrapperBody(self.receive, RequestContext("r", "203.0.113.1", CHUNKED), self.clock)


@pytest.mark.parametrize(("piece", "every_s"), [(b"a", 8.0), (b"a" * 100, 1.0), (b"a", 0.01)])
async def test_a_body_by_drips_is_ended_soon_whatever_it_declares(
    piece: bytes, every_s: float
) -> None:
    caller = Caller(repeat(piece), every_s)
    with pytest.raises(RequestTimeout):
        async for _ in caller.body.pieces(10 * MIB):
            pass
    sent_s = caller.asked * len(piece) / BYTES_PER_S
    assert caller.asked * every_s <= SLOW_S + sent_s + every_s + 1e-6


async def test_a_slow_line_gets_its_body_through() -> None:
    caller = Caller(iter([b"a" * 2 * BYTES_PER_S] * 3000), 1.0)
    sizes = [len(piece) async for piece in caller.body.pieces(10 * MIB)]
    assert sum(sizes) == 6000 * BYTES_PER_S


async def test_the_time_an_upstream_takes_to_read_is_not_the_callers() -> None:
    caller = Caller(iter([b"a"] * 100), 0.0)
    taken = 0
    async for piece in caller.body.pieces(MIB):
        caller.clock.move(60)
        taken += len(piece)
    assert taken == 100


async def test_a_last_piece_that_comes_late_is_taken() -> None:
    answers: list[Any] = [b"a", b"b"]
    clock = FrozenClock()

    async def receive() -> AsgiMessage:
        clock.move(SLOW_S)
        piece = answers.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(answers)}

    body = WrapperBody(receive, RequestContext("r", "203.0.113.1", CHUNKED), clock)
    assert b"".join([piece async for piece in body.pieces(MIB)]) == b"ab"
