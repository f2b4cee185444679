"""How long 100,000 enrolled agents take to be kept fresh, and what that costs the network.

    ./.venv/bin/python bench/freshness.py
    ./.venv/bin/python bench/freshness.py --agents 10000 --requests 20

The times of visits are those of the real plan, on a simulated clock; what a lease costs is measured
on a real database with all agents in it; pauses are drawn as visits draw them. How many requests a
visit makes, how long an answer takes, and the CPU time and bytes of them are given.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from assay.db.engine import Database  # noqa: E402
from assay.db.schema.everything import visit_schedule  # noqa: E402
from assay.evaluation.schedule import ENROLLED, ScheduleEvidence, VisitPlan, prepared, replan  # noqa: E402
from assay.evaluation.scheduler import AT_ONCE, LEASE_S  # noqa: E402
from assay.evaluation.store_visits import SqlVisitSchedule, plan_row  # noqa: E402
from assay.evaluation.visits import EvaluationRequest  # noqa: E402
from assay.probing.unannounced import pauses  # noqa: E402
from tests.support.databases import migrated_sqlite  # noqa: E402
from tests.support.fakes.clock import FrozenClock  # noqa: E402

SEEN = ScheduleEvidence(
    "agent.example", has_control=True, asked=EvaluationRequest("scheduled", is_background=True)
)
DAYS = 30
BYTES_A_REQUEST = 2_500
"""Sent and received, headers and TLS with them: a round figure for small JSON answers, given."""


def life(seed: int) -> tuple[list[float], VisitPlan]:
    """Hours between the visits of one enrolled agent, and its plan at the end."""
    chance, clock = random.Random(seed).random, FrozenClock()
    plan = replace(replan(None, SEEN, clock.now(), chance), rank=ENROLLED)
    ends, visited = clock.now() + timedelta(days=DAYS), list[float]()
    while plan.due < ends:
        clock.set(plan.due)
        if plan.reason == "robots":
            plan = prepared(plan, clock.now(), chance)
        else:
            visited.append(clock.monotonic_s() / 3600)
            plan = replan(plan, SEEN, clock.now(), chance)
    return [b - a for a, b in pairwise(visited)], plan


def visit_seconds(requests: int, answer_s: float) -> Sequence[float]:
    """How long unannounced visits take."""
    found: list[float] = []
    for seed in range(2_000):
        pause = pauses(2.0, random.Random(seed))
        found.append(sum(pause() + answer_s for _ in range(requests)))
    return found


async def lease_seconds(agents: int) -> float:
    """Seconds that one lease takes where all agents are in the schedule, one in 20 of them due."""
    with tempfile.TemporaryDirectory(prefix="freshness-") as folder:
        database = await Database.open(migrated_sqlite(Path(folder) / "assay.db"))
        clock = FrozenClock()
        schedule = SqlVisitSchedule(database, clock, random.Random(1).random)
        _, plan = life(1)
        rows = [
            {
                "subject_key": f"local/{number}", "chain": "local", "agent_id": str(number),
                "lease_us": 0,
                **plan_row(replace(
                    plan, host=f"host-{number}.example",
                    due=clock.now() + timedelta(hours=18) * (number / agents - 1 / 20),
                )),
            }
            for number in range(agents)
        ]  # fmt: skip
        async with database.write() as connection:
            for start in range(0, agents, 500):
                await connection.execute(visit_schedule.insert(), rows[start : start + 500])
        began_s = time.perf_counter()
        for _ in range(100):
            assert await schedule.lease(240, 1, LEASE_S)
        took_s = (time.perf_counter() - began_s) / 100
        await database.close()
        return took_s


def main() -> None:
    """Compute and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=22, help="of an announced visit")
    parser.add_argument("--hidden-requests", type=int, default=10, help="of an unannounced one")
    parser.add_argument("--answer-s", type=float, default=0.3, help="seconds an answer takes")
    parser.add_argument(
        "--cpu-s", type=float, default=0.15, help="of one visit on this service's side"
    )
    options = parser.parse_args()
    gaps = [gap for seed in range(300) for gap in life(seed)[0]]
    gap_h = statistics.fmean(gaps)
    hidden_s = statistics.fmean(visit_seconds(options.hidden_requests, options.answer_s))
    announced_s = options.requests * options.answer_s / 3  # some at a time
    robots_s = options.answer_s
    lease_s = asyncio.run(lease_seconds(options.agents))
    busy_s = (hidden_s + announced_s) / 2 + robots_s + 2 * lease_s
    a_day = options.agents * 24 / gap_h
    per_process = AT_ONCE / busy_s
    requests = a_day * ((options.requests + options.hidden_requests) / 2 + 1)
    print(
        f"{options.agents} enrolled agents, each visited every {gap_h:.1f} h"
        f" (95 of 100 within {sorted(gaps)[int(len(gaps) * 0.95)]:.1f} h): {a_day:.0f} visits a day"
    )
    print(
        f"a visit: unannounced {hidden_s:.1f} s, announced {announced_s:.1f} s; a lease"
        f" {1000 * lease_s:.1f} ms with all of them in the schedule"
    )
    print(
        f"one process, {AT_ONCE} visits at a time: {per_process * 86_400:.0f} visits a day;"
        f" all agents once in {options.agents / per_process / 3600:.0f} h"
    )
    print(
        f"processes that keep them fresh: {a_day / per_process / 86_400:.1f};"
        f" cores: {a_day * options.cpu_s / 86_400:.2f}"
    )
    print(
        f"network: {requests / 86_400:.0f} requests a second,"
        f" {requests * BYTES_A_REQUEST / 1e9:.1f} GB a day; {requests / options.agents:.0f}"
        " requests an agent and day"
    )


if __name__ == "__main__":
    main()
