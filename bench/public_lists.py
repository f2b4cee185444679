"""How long the pages of the public list take with many agents, by filter and search.

python -m bench.public_lists [--agents 100000] [--rounds 11]

Rows are generated, in an SQLite file of a temporary folder. Prints the median of each query, and
the slowest round, in milliseconds.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import insert

from assay.chains.networks import Networks
from assay.db.engine import Database
from assay.db.schema.everything import listed_agent_hosts, listed_agents
from assay.evaluation.listing import AgentQuery, Sort, search_of
from assay.evaluation.store_listing import SqlListedAgents

ROWS = 1000
FLOORS = (("AAA", 95), ("AA", 90), ("A", 85), ("BAA", 75), ("BA", 65), ("B", 50), ("C", 0))
NETWORKS = Networks.built_in()


def query(text: str = "", **more: str) -> AgentQuery:
    """A first page of 50, as the operation asks for it."""
    sort: Sort = "visited" if more.get("sort") == "visited" else "score"
    return AgentQuery(
        search_of(text, NETWORKS),
        more.get("tier"),
        more.get("chain"),
        more.get("protocol"),
        sort,
        None,
        51,
    )


QUERIES: Mapping[str, AgentQuery] = {
    "best first": query(),
    "latest visit first": query(sort="visited"),
    "one grade": query(tier="BA"),
    "one chain, by visit": query(chain="base", sort="visited"),
    "one protocol": query(protocol="mcp"),
    "a protocol that one agent speaks": query(protocol="grpc"),
    "grade, chain and protocol": query(tier="C", chain="base", protocol="a2a"),
    "an id": query("77"),
    "a wallet": query(f"0x{77:040x}"),
    "the host of a URL": query("https://h77.example.com/x"),
    "the beginning of every name": query("agent"),
    "the beginning of no name": query("zzz"),
}


async def fill(database: Database, agents: int) -> None:
    """Write generated agents."""
    rng = random.Random(1)
    chains = [*NETWORKS.rows][:30]
    for first in range(0, agents, ROWS):
        rows = [row(number, rng, chains) for number in range(first, min(agents, first + ROWS))]
        hosts = [
            {"host": f"h{rng.randrange(agents)}.example.com", "subject_key": one["subject_key"]}
            for one in rows
        ]
        async with database.write(60) as connection:
            await connection.execute(insert(listed_agents), rows)
            await connection.execute(insert(listed_agent_hosts), hosts)


def row(number: int, rng: random.Random, chains: list[str]) -> dict[str, object]:
    """An agent of a random grade, chain and protocols."""
    cents = rng.randrange(2000, 9900)
    chain = rng.choice(chains) if number % 10 else "base"
    return {
        "subject_key": f"{chain}/{number}",
        "chain": chain,
        "agent_id": str(number),
        "wallet": f"0x{rng.randrange(50_000):040x}",
        "owner": f"0x{rng.randrange(50_000):040x}",
        "name": f"Agent {number}",
        "name_key": f"agent {number}",
        "description": "d" * 200,
        "services": json.dumps([["A2A", "https://x.example"]] * 3),
        "protocols": 16 if number == ROWS else rng.randrange(16),
        "score_cents": cents,
        "tier": next(tier for tier, floor in FLOORS if cents >= floor * 100),
        "rung": 1,
        "evaluated_us": 10**15 + rng.randrange(10**12),
        "before_cents": None,
    }


async def measured(agents: int, rounds: int) -> None:
    """Fill a database and print the time of each query."""
    with tempfile.TemporaryDirectory() as folder:
        database = await Database.open(f"sqlite:///{Path(folder) / 'assay.db'}")
        await database.migrate()
        await fill(database, agents)
        store = SqlListedAgents(database)
        for name, asked in QUERIES.items():
            times: list[float] = []
            for _ in range(rounds):
                begun = time.perf_counter()
                found = await store.page(asked)
                times.append((time.perf_counter() - begun) * 1000)
            line = f"{name:34} {len(found):3} rows {statistics.median(times):8.1f} ms"
            sys.stdout.write(f"{line} {max(times):8.1f} ms\n")
        await database.close()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=11)
    asked = parser.parse_args()
    asyncio.run(measured(asked.agents, asked.rounds))


if __name__ == "__main__":
    main()
