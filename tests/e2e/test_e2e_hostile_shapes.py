"""One hostile connection costs its sender its connection, and nobody else anything.

The shapes are in `tests/support/desync/hostile.py`; `bench/hostile.py` prints what each does to
the health endpoint's latencies. Here bytes and ends are counted, and no time is.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.assay import Served, resident_mib, served
from tests.support.desync.hostile import SHAPES, WELL_FORMED, Played, Shape, aimed, play
from tests.support.desync.hostile_wrapper import free_wrapper
from tests.support.desync.wire import connected
from tests.support.shop import NO_CHAIN

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
MIB = 1024 * 1024
TAKEN_MAX_BYTES = 24 * MIB
"""The largest body that any route takes is 10 MiB, and a socket's buffers hold some more."""

GIVEN_UP_S = 60
PATIENT_S = 150
GROWTH_MAX_MIB = 64
STORM_CONNECTIONS = 100
HEALTH = b"GET /operator/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@asynccontextmanager
async def service(folder: Path) -> AsyncIterator[tuple[Served, int, str]]:
    with served(folder, NO_CHAIN, ASSAY_ANONYMOUS_PER_MINUTE="100000000") as server:
        port = urlsplit(server.address).port
        assert port is not None
        with free_wrapper(server.address) as operator_id:
            yield server, port, operator_id


async def _health(port: int) -> int:
    async with connected(port) as sender:
        await sender.send([HEALTH])
        return (await sender.to_the_end(30)).status


async def _all(shapes: Sequence[Shape], port: int, seconds: float) -> list[Played]:
    """All at the same time, while others ask for the service's health; each of these gets it."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                play(
                    shape,
                    port,
                    seconds=seconds,
                    bytes_max=2 * TAKEN_MAX_BYTES,
                    connections_max=STORM_CONNECTIONS,
                )
            )
            for shape in shapes
        ]
        while not all(task.done() for task in tasks):
            assert await _health(port) == 200
            await asyncio.wait(tasks, timeout=0.2)
    assert await _health(port) == 200
    return [task.result() for task in tasks]


def test_there_are_thirty_shapes_and_each_has_a_well_formed_likeness() -> None:
    assert len({shape.name for shape in SHAPES}) == len(SHAPES) >= 30
    assert {shape.beside for shape in SHAPES} <= set(WELL_FORMED)


async def test_a_connection_that_sends_too_much_of_anything_is_cut(tmp_path: Path) -> None:
    shapes = [shape for shape in SHAPES if shape.ends == "cut"]
    async with service(tmp_path) as (server, port, _):
        before = resident_mib(server.pid)
        played = await _all(shapes, port, GIVEN_UP_S)
        grown = resident_mib(server.pid) - before
    kept = [one for one in played if not one.ended]
    assert not kept, "\n".join(map(str, kept))
    greedy = [one for one in played if one.taken_bytes > TAKEN_MAX_BYTES]
    assert not greedy, "\n".join(map(str, greedy))
    assert grown < GROWTH_MAX_MIB


async def test_a_storm_of_connections_is_answered_one_by_one(tmp_path: Path) -> None:
    storms = [shape for shape in SHAPES if shape.again]
    async with service(tmp_path) as (server, port, _):
        before = resident_mib(server.pid)
        played = await _all(storms, port, GIVEN_UP_S)
        grown = resident_mib(server.pid) - before
    assert [one.connections for one in played] == [STORM_CONNECTIONS] * len(storms)
    wanted = {
        "a storm of upgrades": 200,
        "a storm of WebSocket handshakes": 400,
        "a storm of tunnels": 405,
        "a storm of garbage": 400,
        "a storm of resets": 200,
    }
    assert {one.name: one.status for one in played} == wanted
    assert grown < GROWTH_MAX_MIB


async def test_calls_full_of_what_looks_like_credentials_are_answered(tmp_path: Path) -> None:
    """What looking through them costs is counted in tests/net/unit/test_credential_search.py."""
    shapes = [shape for shape in SHAPES if shape.beside == "wrapper calls"]
    async with service(tmp_path) as (_, port, operator_id):
        for shape in [*shapes, WELL_FORMED["wrapper calls"]]:
            async with connected(port) as sender:
                await sender.send([aimed(shape, operator_id).unit])
                got = await sender.until(1, GIVEN_UP_S)
            assert [answer.status for answer in got.answers] == [200], shape.name


@pytest.mark.slow
async def test_a_connection_that_takes_its_time_is_ended(tmp_path: Path) -> None:
    shapes = [shape for shape in SHAPES if shape.ends == "in time"]
    async with service(tmp_path) as (server, port, operator_id):
        shapes = [aimed(shape, operator_id) for shape in shapes]
        before = resident_mib(server.pid)
        played = await _all(shapes, port, PATIENT_S)
        grown = resident_mib(server.pid) - before
    kept = [one for one in played if not one.ended]
    assert not kept, "\n".join(map(str, kept))
    assert grown < GROWTH_MAX_MIB


def test_the_bench_of_shapes_measures_health_and_the_loop() -> None:
    """It broke once and nobody saw, as no test ran it."""
    command = [sys.executable, "bench/hostile.py", "--seconds", "0.5", "--rounds", "1", "--json"]
    command += ["--shape", "empty lines without an end"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout.splitlines()[-1])
    assert all(row[load]["health_ms"] and row[load]["late_ms"] for load in ("hostile", "usual"))
