"""How long the event loop is held while hostile texts are read.

    ./.venv/bin/python bench/loop_lag.py [--at-once 3] [--rounds 11]

Every text of tests/support/fakes (hostile_texts.py and hostile_documents.py) is read as a probe
reads it, `--at-once` at a time, and every JSON body as a registration file and as an answer,
while a task looks at every turn of the loop how much processor time the last one took. Printed are
the worst turn of all, each read once; and of the ten with the worst, which every round reads, and
of plain text of the same length, the median over the rounds, its 95 % interval, and the worst.
Processor time, not waits: on a busy machine a wait is mostly that of others. The target is 50 ms
for 200 documents.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from interval import ROUNDS_MIN, interval  # noqa: E402

from assay.common.sliced_work_runner import Slices  # noqa: E402
from assay.probing.poisoning import find_poison  # noqa: E402
from assay.probing.probe_client import decode  # noqa: E402
from assay.probing.secret_formats import find_internals, find_secrets  # noqa: E402
from assay.registries.registration import NotRegistration, parse_registration  # noqa: E402
from tests.support.fakes.hostile_documents import bodies, documents, lists  # noqa: E402
from tests.support.fakes.hostile_texts import CHARS, hostile_json, hostile_texts  # noqa: E402

SLOWEST = 10


async def lag_of(texts: Sequence[str], at_once: int) -> float:
    """Processor time of the longest turn of the loop while the texts are read, in milliseconds."""
    slices, worst, over = Slices(), 0.0, False

    async def watch() -> None:
        nonlocal worst
        while not over:
            asked = time.thread_time()
            await asyncio.sleep(0)
            worst = max(worst, time.thread_time() - asked)

    watching = asyncio.create_task(watch())  # noqa: TID251 - a benchmark's own
    await asyncio.sleep(0)
    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(slices.run(find_poison(texts)))
            group.create_task(slices.run(find_secrets(texts)))
            group.create_task(slices.run(find_internals(texts, ())))
    over = True
    await watching
    return worst * 1000


def parse_time_of(body: bytes) -> float:
    """Processor time of reading the body, which is one turn of the loop, in milliseconds."""
    begun = time.thread_time()
    decode(body)
    took = time.thread_time() - begun
    begun = time.thread_time()
    with suppress(NotRegistration):
        parse_registration(body)
    return max(took, time.thread_time() - begun) * 1000


async def measure(at_once: int, rounds: int) -> None:
    """Print the table."""
    plain = ["Looks a word up. " * (CHARS // 17)] * 2
    texts = {name: [text, text] for name, text in (*hostile_texts(), *documents())} | dict(lists())
    json_bodies = {f"JSON: {name}": body for name, body in (*hostile_json(), *bodies())}
    usual: list[float] = []
    rows: dict[str, list[float]] = defaultdict(list)
    slowest = [*texts, *json_bodies]
    for number in range(rounds):
        usual.append(await lag_of(plain, at_once))
        for name in slowest:
            is_json = name in json_bodies
            body = json_bodies.get(name, b"")
            lag = parse_time_of(body) if is_json else await lag_of(texts[name], at_once)
            rows[name].append(lag)
        if not number:
            slowest.sort(key=lambda name: -rows[name][0])
            print(f"{len(slowest)} documents, once each: worst turn {rows[slowest[0]][0]:.1f} ms")
            del slowest[SLOWEST:]
    print(f"{'median':>8} {'95 % interval':>16} {'worst':>8}  ms, of {rounds} rounds")
    print(row("plain text", usual))
    print(*(row(name, rows[name]) for name in slowest), sep="\n")


def row(name: str, lags: Sequence[float]) -> str:
    low, high = interval(lags)
    middle = statistics.median(lags)
    return f"{middle:8.1f} {low:7.1f} to {high:5.1f} {max(lags):8.1f}  {name}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=ROUNDS_MIN)
    asked = parser.parse_args()
    asyncio.run(measure(asked.at_once, asked.rounds))
