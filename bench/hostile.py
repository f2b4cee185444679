"""What one hostile connection does to everybody else, beside the same load in well-formed requests.

    ./.venv/bin/python bench/hostile.py [--seconds 2] [--rounds 11] [--shape NAME]... [--json]

For each shape of `tests/support/desync/hostile.py`, by turns with its well-formed likeness: the
latency of the health endpoint (one kept connection, a request every 10 ms), how late the service's
event loop is (a sampler in its process), how many bytes the shape got rid of and what it was
answered. Shape and service are processes of their own. `moved` is the p99 of health under the
shape less that under its likeness, round by round: the median, and its 95 %
interval. The goal is below 20 ms. An idle row comes first.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from interval import ROUNDS_MIN, interval  # noqa: E402

from tests.support.assay import served  # noqa: E402
from tests.support.desync.hostile import SHAPES, well_formed  # noqa: E402
from tests.support.desync.hostile_wrapper import free_wrapper  # noqa: E402
from tests.support.desync.wire import connected  # noqa: E402
from tests.support.forked import SERVICE  # noqa: E402
from tests.support.shop import NO_CHAIN  # noqa: E402

EVERY_S = 0.01
GOAL_MS = 20
HEALTH = b"GET /operator/health HTTP/1.1\r\nHost: x\r\n\r\n"


Service = tuple[int, Path, str]
"""The port, the sampler's file, and the operator with a free wrapper."""


@dataclass
class Measured:
    """Latencies and lateness in ms while one load runs."""

    load: str
    health_ms: list[float] = field(default_factory=list[float])
    late_ms: list[float] = field(default_factory=list[float])
    taken_bytes: int = 0
    status: int = 0
    connections: int = 0
    ended: bool = False

    def row(self) -> str:
        return (
            f"{self.load:38} {at(self.health_ms, 50):8.1f} {at(self.health_ms, 99):8.1f}"
            f" {at(self.late_ms, 50):8.1f} {at(self.late_ms, 99):8.1f} {max(self.late_ms):8.1f}"
            f" {self.taken_bytes / 2**20:9.1f} {self.connections:7} {self.status:5}"
        )


@dataclass
class Compared:
    """A shape beside its well-formed likeness; `moved_ms` of each round."""

    moved_ms: list[float]
    hostile: Measured
    usual: Measured


def at(values: Sequence[float], percent: int) -> float:
    if len(values) < 2:
        return float("nan")
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


async def _health(port: int, until: float, into: list[float]) -> None:
    """One request after the other, on one connection for as long as it lasts."""
    while time.monotonic() < until:
        async with connected(port) as sender:
            answers = 0
            while time.monotonic() < until and not sender.got.closed:
                begun = time.monotonic()
                answers += 1
                await sender.send([HEALTH])
                got = await sender.until(answers, 30)
                into.append(1000 * (time.monotonic() - begun))
                if len(got.answers) < answers:
                    break
                if answers >= 100:  # the answers are kept, and read again every time
                    break
                await asyncio.sleep(EVERY_S)


async def _measure(load: str, served: Service, seconds: float) -> Measured:
    port, lag_file, operator_id = served
    measured = Measured(load)
    begun = time.monotonic()
    process = None
    if load != "idle service":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.desync.hostile"),
            *(load, str(port), str(seconds), operator_id),
            cwd=ROOT,
            env=dict(os.environ, PYTHONPATH=f"{ROOT}:{ROOT / 'src'}"),  # noqa: TID251
            stdout=asyncio.subprocess.PIPE,
        )
    await _health(port, begun + seconds, measured.health_ms)
    if process is not None:
        said, _ = await process.communicate()
        for name, value in json.loads(said).items():
            if name in {"taken_bytes", "status", "connections", "ended"}:
                setattr(measured, name, value)
    ended = time.monotonic()
    lines = (line.split() for line in lag_file.read_text("ascii").splitlines())
    measured.late_ms = [float(p[1]) for p in lines if len(p) == 2 and begun < float(p[0]) < ended]
    return measured


@asynccontextmanager
async def _service(folder: str):  # noqa: ANN202 - what `Service` says
    lag_file = Path(folder) / "lag"
    settings = {
        "ASSAY_ANONYMOUS_PER_MINUTE": "100000000",
        "LAG_FILE": str(lag_file),
    }
    imported = (*SERVICE, "tests.support.desync.lag")
    with served(Path(folder), NO_CHAIN, imported=imported, **settings) as server:
        port = urlsplit(server.address).port
        assert port is not None
        with free_wrapper(server.address) as operator_id:
            yield port, lag_file, operator_id


def _merged(parts: Sequence[Measured]) -> Measured:
    whole = Measured(parts[0].load)
    for part in parts:
        whole.health_ms += part.health_ms
        whole.late_ms += part.late_ms
        whole.taken_bytes = max(whole.taken_bytes, part.taken_bytes)
        whole.status, whole.ended, whole.connections = part.status, part.ended, part.connections
    return whole


async def _run(names: Sequence[str], seconds: float, rounds: int) -> list[Compared]:
    heads = "p50", "p99", "late p50", "late p99", "late max", "MiB", "conns", "last"
    widths = (8, 8, 8, 8, 8, 9, 7, 5)
    print(" " * 38, *(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True)))
    rows: list[Compared] = []
    with tempfile.TemporaryDirectory() as folder:
        async with _service(folder) as service:
            await _measure("idle service", service, 1)
            print((await _measure("idle service", service, seconds)).row(), flush=True)
            for shape in [one for one in SHAPES if not names or one.name in names]:
                loads = (shape.name, well_formed(shape).name)
                parts: dict[str, list[Measured]] = {load: [] for load in loads}
                for _ in range(rounds):
                    for load in loads:
                        parts[load].append(await _measure(load, service, seconds))
                hostile, usual = (_merged(parts[load]) for load in loads)
                p99s = [[at(one.health_ms, 99) for one in parts[load]] for load in loads]
                each = [one - other for one, other in zip(*p99s, strict=True)]
                moved, (low, high) = statistics.median(each), interval(each)
                verdict = "" if moved < GOAL_MS else "   MISSED"
                said = f"   moved {moved:+6.1f} ({low:+.1f} to {high:+.1f}){verdict}"
                print(hostile.row() + said)
                print(usual.row().replace(usual.load, "  " + usual.load, 1), flush=True)
                rows.append(Compared(each, hostile, usual))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=ROUNDS_MIN)
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = asyncio.run(_run(asked.shape, asked.seconds, asked.rounds))
    met = sum(statistics.median(row.moved_ms) < GOAL_MS for row in rows)
    print(f"{met} of {len(rows)} shapes move the p99 of health by less than {GOAL_MS} ms")
    if asked.json:
        print(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    main()
