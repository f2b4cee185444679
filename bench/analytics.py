"""Every analytics answer over a log of many calls, and what a row of the log costs to write.

    ./.venv/bin/python bench/analytics.py [--calls 1000000] [--postgres] [--rebuild]
        [--each N] [--copies N]

One operator holds 35 % of the calls, the rest belong to 200 others; 20 wrappers and 20,000 agents
an operator, popularity by Zipf, spread over 90 days, one call in ten paid. The rows go through the
log's own writer in batches of 5,000; the answers are asked of the use case, over the store, each 15
times; the median and the worst are printed, and the processor's part, which is what is left of it
on a machine that has nothing else to do. The target is 100 ms with 10,000,000 calls. With `--each`
the answers are asked at every so many calls as well. With `--copies N` only every Nth call goes
through the writer; the others are copies of it, some microseconds later, made in SQL, and the
roll-ups are multiplied, which `--rebuild` proves: minutes instead of an hour where there is little
processor.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from copy import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import insert, text

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from assay.analytics.log import CallLog  # noqa: E402
from assay.analytics.model import BatchId, CallLogEntry, LogFilter  # noqa: E402
from assay.analytics.queries import Analytics, ReportPage  # noqa: E402
from assay.analytics.store_analytics import SqlAnalyticsStore  # noqa: E402
from assay.analytics.store_calls import SqlCallStore  # noqa: E402
from assay.analytics.store_rollups import SqlRollupProof  # noqa: E402
from assay.common.errors import Unavailable  # noqa: E402
from assay.common.ids import new_id  # noqa: E402
from assay.db.engine import Database, to_us  # noqa: E402
from assay.db.schema.analytics import ROLLUPS, Rollup  # noqa: E402
from assay.db.schema.everything import calls, operators, wrappers  # noqa: E402
from tests.support.fakes.calls import call  # noqa: E402
from tests.support.fakes.clock import FrozenClock  # noqa: E402

BATCH = 5000
DAYS = 90
WRAPPERS, AGENTS, OTHERS = 20, 20_000, 200
END = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def people(database: Database) -> list[tuple[str, list[str]]]:
    """Operators with their wrappers; the first is the big one."""
    found: list[tuple[str, list[str]]] = []
    now = to_us(END)
    async with database.write() as connection:
        for _ in range(1 + OTHERS):
            who = new_id()
            plain = {"email": who, "email_lower": who, "name": "n", "role": "operator"}
            more = {"plan": "free", "fee_rate": "0.00", "password_hash": "-"}
            times = {"created_us": now, "updated_us": now}
            await connection.execute(insert(operators).values(id=who, **plain, **more, **times))
            ids = [new_id() for _ in range(WRAPPERS)]
            await connection.execute(insert(wrappers), [_wrapper(who, one) for one in ids])
            found.append((who, ids))
    return found


def _wrapper(operator_id: str, wrapper_id: str) -> dict[str, object]:
    return {
        "id": wrapper_id,
        "operator_id": operator_id,
        "path": f"/{wrapper_id}",
        "method": "GET",
        "route_key": wrapper_id,
        "price": 0,
        "description": "",
        "target_url": "https://example.com",
        "payment_protocol": "x402",
        "payment_network": "eip155:8453",
        "trust_enabled": False,
        "min_score": 65.0,
        "identity_proof": "required",
        "settle": "after",
        "max_body_bytes": 1,
        "timeout_ms": 1,
        "active": True,
        "created_us": 0,
    }


def batch_of(
    people: list[tuple[str, list[str]]], start: int, total: int, rng: random.Random
) -> list[CallLogEntry]:
    rows: list[CallLogEntry] = []
    for n in range(start, min(start + BATCH, total)):
        who, ids = people[0] if rng.random() < 0.35 else rng.choice(people[1:])
        at = END - timedelta(days=DAYS) * (1 - n / total)
        agent = str(min(int(rng.paretovariate(0.7)), AGENTS))
        status = rng.choice((200, 200, 200, 200, 402, 401, 403, 429, 502, 200))
        made = copy(_CALL)
        made.kind = kind = copy(_CALL.kind)
        kind.operator_id = who
        kind.wrapper_id = ids[min(int(rng.paretovariate(1)), WRAPPERS) - 1]
        kind.agent_id = agent if status != 401 else None
        made.at = at
        made.status = status
        made.latency_us = int(1000 + 199_000 * rng.random())
        made.payment_id = new_id() if rng.random() < 0.1 else None
        rows.append(made)
    return rows


_CALL = call("", "", END, chain="base", tier="A", route="prod")


async def write(store: SqlCallStore, rows: list[CallLogEntry], batch_id: BatchId) -> int:
    """How often it took too long."""
    late = 0
    while True:
        try:
            await store.add(rows, batch_id)
        except Unavailable:
            late += 1
        else:
            return late


async def fill(
    database: Database, found: list[tuple[str, list[str]]], total: int, each: int
) -> None:
    store, rng = SqlCallStore(database), random.Random(8004)
    spent_s = cpu_s = last_s = 0.0
    late = 0
    for start in range(0, total, BATCH):
        rows = batch_of(found, start, total, rng)
        begun, begun_cpu = time.perf_counter(), time.process_time()
        late += await write(store, rows, BatchId("bench", start))
        last_s = time.perf_counter() - begun
        spent_s += last_s
        cpu_s += time.process_time() - begun_cpu
        done = start + BATCH
        if done % 500_000 == 0:
            print(f"  {done:,}: {spent_s:.0f} s, the last batch {last_s * 1000:.0f} ms")
        if each and done % each == 0 and done < total:
            print(f"--- with {done:,} calls")
            await ask(database, *found[0])
    print(f"{late} batches were not in within the 15 s a use of the database may take, and")
    print("were handed in again, as the log does")
    print(f"{total:,} rows written: {spent_s / total * 1e6:.0f} us a row with its roll-ups,")
    print(
        f"{cpu_s / total * 1e6:.0f} us of them processor time of ours; the last batch of {BATCH}:"
    )
    print(f"{last_s * 1000:.0f} ms")


async def multiply(database: Database, copies: int) -> None:
    """Every call of the log so many times, and the roll-ups that go with it."""
    names = [column.name for column in calls.columns if column.name != "seq"]
    taken = ", ".join("at_us + :later" if name == "at_us" else name for name in names)
    copied = f"INSERT INTO calls ({', '.join(names)}) SELECT {taken} FROM calls WHERE seq <= :last"  # noqa: S608 - our own names
    begun = time.perf_counter()
    async with database.write(3600) as connection:
        for index in calls.indexes:
            await connection.run_sync(index.drop)
        last = (await connection.execute(text("SELECT MAX(seq) FROM calls"))).scalar_one()
        for later in range(1, copies):
            await connection.execute(text(copied), {"later": later, "last": last})
            print(f"  copy {later}: {time.perf_counter() - begun:.0f} s")
        for index in calls.indexes:
            await connection.run_sync(index.create)
        print(f"  indexes: {time.perf_counter() - begun:.0f} s")
        for rollup in ROLLUPS:
            await connection.execute(text(_times(rollup, copies)))
    print(f"  in all: {time.perf_counter() - begun:.0f} s")


def _times(rollup: Rollup, copies: int) -> str:
    """The sums of a call and its copies, which are of the same day, agent and wrapper."""
    sums = [f"{name} = {name} * {copies}" for name in rollup.measures if name != "agents"]
    times = ("last_us", "tier_us") if rollup.table == "agent_totals" else ()
    return f"UPDATE {rollup.table} SET " + ", ".join(  # noqa: S608 - our own names
        (*sums, *(f"{name} = {name} + {copies - 1}" for name in times))
    )


async def ask(database: Database, who: str, ids: list[str]) -> float:
    """Prints each answer's time; returns the worst median in ms."""
    store = SqlAnalyticsStore(database)
    analytics = Analytics(store, CallLog(SqlCallStore(database)), FrozenClock(END))
    rare = (await analytics.agents(who, "calls", 1, 15_000))[0]
    agent = rare[0].agent_id if rare else "1"
    deep = ReportPage(offset=100_000)

    def logs(page: ReportPage = ReportPage(), **which: object) -> Callable[[], Awaitable[object]]:  # noqa: B008 - frozen
        return lambda: analytics.logs(who, LogFilter(**which), page)  # type: ignore[arg-type]

    questions: dict[str, Callable[[], Awaitable[object]]] = {
        "stats": lambda: analytics.stats(who),
        "revenue, 366 days": lambda: analytics.revenue(who, 366),
        "top endpoints": lambda: analytics.top_endpoints(who, 10),
        **{
            f"agents by {order}": lambda order=order: analytics.agents(who, order, 50, 0)
            for order in ("lastSeen", "calls", "spent", "errors")
        },
        "agents, offset 10,000": lambda: analytics.agents(who, "calls", 50, 10_000),
        "the busiest agent": lambda: analytics.agent(who, "1"),
        "a rare agent": lambda: analytics.agent(who, agent),
        "logs": logs(),
        "logs, 7 days": logs(days=7),
        "logs of the busiest agent": logs(agent_id="1"),
        "logs of a rare agent": logs(agent_id=agent),
        "logs of a rare agent, 7 days": logs(agent_id=agent, days=7),
        "logs of a wrapper": logs(wrapper_id=ids[0]),
        "logs of the rarest wrapper": logs(wrapper_id=ids[-2]),
        "logs of a busy agent at a rare wrapper": logs(agent_id="1", wrapper_id=ids[-2]),
        "logs of nobody": logs(agent_id="nobody", wrapper_id=ids[0]),
        "logs, offset 100,000": logs(deep),
        "logs of the busiest agent, offset 100,000": logs(deep, agent_id="1"),
    }
    worst = 0.0
    for name, question in questions.items():
        times: list[float] = []
        worked: list[float] = []
        for _ in range(15):
            begun, begun_cpu = time.perf_counter(), time.process_time()
            await question()
            times.append((time.perf_counter() - begun) * 1000)
            worked.append((time.process_time() - begun_cpu) * 1000)
        median, cpu = statistics.median(times), statistics.median(worked)
        worst = max(worst, median)
        print(f"{name:45} {median:8.2f} ms   worst {max(times):8.2f} ms   cpu {cpu:7.2f} ms")
    return worst


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--rebuild", action="store_true", help="also prove the roll-ups")
    parser.add_argument("--each", type=int, default=0, help="also ask at every so many calls")
    parser.add_argument("--copies", type=int, default=1, help="one written, the others copied")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/assay.db"
        if given.postgres:
            from tests.support.postgres import postgres  # noqa: PLC0415

            url = postgres().new_database()
        database = await Database.open(url)
        await database.migrate()
        found = await people(database)
        await fill(database, found, given.calls // given.copies, given.each)
        if given.copies > 1:
            await multiply(database, given.copies)
        if given.postgres:
            # What autovacuum does by itself after so many inserts: an index alone then answers.
            async with database._reading.connect() as connection:  # noqa: SLF001 - no transaction
                await connection.execute(text("VACUUM ANALYZE calls"))
                await connection.execute(text("ANALYZE"))
        worst = await ask(database, *found[0])
        print(f"the slowest answer takes {worst:.1f} ms: {'well' if worst < 100 else 'TOO SLOW'}")
        if given.rebuild:
            begun = time.perf_counter()
            differences = await SqlRollupProof(database).differences()
            wrong = sum(differences.values())
            print(f"{wrong} rows differ, found in {time.perf_counter() - begun:.0f} s")
        await database.close()


if __name__ == "__main__":
    asyncio.run(main())
