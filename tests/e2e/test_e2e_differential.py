"""The service frames requests as nginx, HAProxy and h11 do, or refuses them.

The laws are in `tests/support/desync/differential.py`. `bench/differential.py` runs the same for
ten minutes; `DIFFERENTIAL_SECONDS` and `DIFFERENTIAL_SEED` lengthen the run here.
"""

import os
from pathlib import Path

import pytest

from tests.support.desync.differential import (
    CUT,
    Outcome,
    Read,
    broken_law,
    differential,
    read_by_h11,
)
from tests.support.desync.grammar import stream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
SEED = int(os.environ.get("DIFFERENTIAL_SEED", "12"))  # noqa: TID251
SECONDS = float(os.environ.get("DIFFERENTIAL_SECONDS", "120"))  # noqa: TID251
SHORT_STREAMS = 250
SHOWN = 25


def _assert_lawful(outcome: Outcome) -> None:
    print(outcome)  # noqa: T201 - the figures, and the seed
    findings = "\n".join(str(one) for one in outcome.findings[:SHOWN])
    assert not outcome.findings, f"{outcome}\n{findings}"
    for name in ("service", "nginx", "haproxy", "h11"):  # a law is tried where readers take things
        assert outcome.taken[name] > outcome.streams // 10, outcome


async def test_the_service_frames_what_it_takes_as_others_do(tmp_path: Path) -> None:
    async with differential(tmp_path, SEED) as readers:
        outcome = await readers.run(streams=SHORT_STREAMS)
    assert outcome.streams == SHORT_STREAMS
    _assert_lawful(outcome)


@pytest.mark.slow
async def test_the_service_frames_what_it_takes_as_others_do_for_long(tmp_path: Path) -> None:
    async with differential(tmp_path, SEED) as readers:
        outcome = await readers.run(seconds=SECONDS)
    assert outcome.streams > SHORT_STREAMS
    _assert_lawful(outcome)


def test_a_stream_has_the_same_bytes_on_every_machine() -> None:
    assert stream(12, 3) == stream(12, 3)
    assert len({stream(12, number) for number in range(200)}) > 190


TAKEN, WAITING, REFUSED, ABSENT = Read("taken"), Read("waiting"), Read("refused"), Read("absent")


@pytest.mark.parametrize(
    ("service", "nginx", "h11"),
    [
        ([Read("taken", b"a"), ABSENT], [Read("taken", b"b"), ABSENT], [REFUSED]),
        ([Read("taken", b"a"), ABSENT], [WAITING], [REFUSED]),
        ([WAITING], [TAKEN, ABSENT], [REFUSED]),
        ([TAKEN, TAKEN, ABSENT], [TAKEN, WAITING], [TAKEN, ABSENT]),
        ([TAKEN, ABSENT], [REFUSED], [REFUSED]),
        ([TAKEN, TAKEN], [TAKEN, REFUSED], [TAKEN, REFUSED]),
    ],
)
def test_each_law_notices_who_breaks_it(
    service: list[Read], nginx: list[Read], h11: list[Read]
) -> None:
    reads = {"service": service, "nginx": nginx, "haproxy": [REFUSED], "h11": h11}
    assert broken_law(b"", reads)


@pytest.mark.parametrize(
    ("service", "nginx"),
    [
        ([REFUSED], [TAKEN, TAKEN, ABSENT]),
        ([TAKEN, ABSENT], [TAKEN, TAKEN, ABSENT]),
        ([TAKEN, REFUSED], [TAKEN, TAKEN, ABSENT]),
        ([TAKEN, TAKEN, ABSENT], [TAKEN, ABSENT]),
        ([TAKEN, TAKEN, ABSENT], [REFUSED]),
    ],
)
def test_the_service_may_be_stricter_than_others(service: list[Read], nginx: list[Read]) -> None:
    reads = {"service": service, "nginx": nginx, "haproxy": [REFUSED], "h11": service}
    assert broken_law(b"", reads) == ""


def test_a_verdict_that_depends_on_the_pieces_is_noticed() -> None:
    reads = {"service": [TAKEN, ABSENT], "nginx": [TAKEN], "haproxy": [TAKEN], "h11": [TAKEN]}
    assert "in pieces" in broken_law(b"", reads | {CUT: [REFUSED]})
    assert broken_law(b"", reads | {CUT: [TAKEN, ABSENT]}) == ""


def test_h11_is_read_request_by_request() -> None:
    two = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhiGET / HTTP/1.1\r\nHost: x\r\n"
    assert read_by_h11(two + b"Connection: close\r\n\r\n") == [
        Read("taken", b"hi"),
        TAKEN,
        ABSENT,
    ]
    assert read_by_h11(two) == [Read("taken", b"hi"), WAITING]
    assert read_by_h11(b"\r\n" + two[:40]) == [WAITING]
    assert read_by_h11(b"GET / HTTP/1.1\r\n\r\n") == [REFUSED]
