"""Run as many schedules of the money simulation as you like, show one, or count planted bugs.

.venv/bin/python bench/simulation.py --schedules 1000000 --jobs 2   from the seed after the suite's
.venv/bin/python bench/simulation.py --show 4711                    everything that happens in one
.venv/bin/python bench/simulation.py --mutants --schedules 1000     how often each planted bug shows

A seed that breaks an invariant is printed and kept in tests/simulation/seeds/found.txt, which the
ordinary tests run first. Status 1 when there was one. Prints schedules, steps, crashes, payments
settled and milliseconds of CPU a schedule.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.simulation.campaign import campaign, found_in, trace  # noqa: E402
from tests.simulation.mutants import MUTANTS  # noqa: E402
from tests.simulation.world import Outcome  # noqa: E402

AFTER_THE_SUITE = 1_000_000
PART = 500
"""Schedules between two lines of progress."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Simulate ledger, sender and reconciler.")
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=AFTER_THE_SUITE, help="The first seed.")
    parser.add_argument("--jobs", type=int, default=1, help="Processes.")
    parser.add_argument("--show", type=int, help="Print one schedule, step for step.")
    parser.add_argument("--mutants", action="store_true", help="Plant each known bug instead.")
    asked = parser.parse_args()
    if asked.show is not None:
        print(trace(asked.show))
        return 0
    if asked.mutants:
        return mutants(asked.schedules, asked.first, asked.jobs)
    return schedules(asked.schedules, asked.first, asked.jobs)


def schedules(count: int, first: int, jobs: int) -> int:
    """Run them; 1 when any broke an invariant."""
    began_s = time.monotonic()
    parts = [range(first + n, first + min(n + PART, count)) for n in range(0, count, PART)]
    broken = steps = crashes = settled = done = 0
    cpu_s = 0.0
    with ProcessPoolExecutor(jobs) as pool:
        for used_s, outcomes in pool.map(timed, parts):
            cpu_s += used_s
            done += len(outcomes)
            broken += sum(one.violation is not None for one in outcomes)
            steps += sum(one.steps for one in outcomes)
            crashes += sum(one.crashes for one in outcomes)
            settled += sum(one.settled for one in outcomes)
            print(f"\r{done:,} schedules, {broken} broken", end="", flush=True)
    print(
        f"\n{done:,} schedules, {steps:,} steps, {crashes:,} crashes, {settled:,} payments settled,"
        f" {broken} broken; {1000 * cpu_s / done:.2f} ms of CPU a schedule,"
        f" {time.monotonic() - began_s:.0f} s"
    )
    return 1 if broken else 0


def timed(seeds: Sequence[int]) -> tuple[float, list[Outcome]]:
    began_s = time.process_time()
    outcomes = campaign(seeds)
    return time.process_time() - began_s, outcomes


def mutants(count: int, first: int, jobs: int) -> int:
    """How many schedules find each planted bug; 1 when one is not found at all."""
    seeds = range(first, first + count)
    missed = 0
    print(f"{'planted bug':44} {'found in':>9} of {count:,}   first")
    with ProcessPoolExecutor(jobs) as pool:
        for name, found in zip(
            MUTANTS, pool.map(found_in, MUTANTS, [seeds] * len(MUTANTS)), strict=True
        ):
            missed += not found
            after = found[0] - first + 1 if found else "-"
            print(f"{name:44} {len(found):9,} {after:>11}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
