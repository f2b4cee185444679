"""Stores the roll-ups of the call log in the transaction of what they count.

A rebuild derives them once more, in SQL over everything that happened, compares them with what was
stored, and corrects what differs.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Final, cast

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.analytics.rollup import (
    AgentKey,
    RollupTally,
    tally_failed,
    tally_reversed,
    tally_settled,
)
from assay.common.clock import DAY_US
from assay.db.connect import DatabaseKind
from assay.db.engine import Database, to_us
from assay.db.schema.analytics import (
    AGENT_DAYS,
    AGENTS,
    DAYS,
    ENDPOINT_DAYS,
    ENDPOINTS,
    MEASURES,
    ROLLUPS,
    TOTALS,
    Rollup,
)
from assay.db.sql_transaction import SqlTransaction, places
from assay.payments.model import LedgerEntry, PaymentState

_AT_ONCE = 200
"""Agents that one statement adds."""

_KNOWN_MAX = 200_000

_KNOWN_US = DAY_US // 2
"""An agent whose newest call is no older has its row: `SqlOldAgents` leaves it there for a day."""

_AGENT_COLUMNS = (*AGENTS.key, *AGENTS.measures, "first_us", "last_us", "tier", "tier_us")
_TIER_US = "agent_totals.tier_us"
_IS_NEWER = (
    f"excluded.tier_us IS NOT NULL AND ({_TIER_US} IS NULL OR excluded.tier_us >= {_TIER_US})"
)


class RollupWriter:
    """Adds tallies to the tables with its own SQL: the toolkit's costs several times as much."""

    def __init__(self, kind: DatabaseKind) -> None:
        self._kind: DatabaseKind = kind
        self._add = {rollup.table: self._upsert(rollup) for rollup in ROLLUPS}
        self._chain = (
            "INSERT INTO agent_chains (operator_id, agent_id, chain)"  # noqa: S608 - our own names
            f" VALUES ({places(self._kind, 3)}) ON CONFLICT DO NOTHING"
        )
        self._observed = (
            "INSERT INTO observed_totals (operator_id, wrapper_id, would_deny)"  # noqa: S608 - our own names
            f" VALUES ({places(self._kind, 3)}) ON CONFLICT (operator_id, wrapper_id) DO UPDATE"
            " SET would_deny = observed_totals.would_deny + excluded.would_deny"
        )
        self._known: OrderedDict[AgentKey, int] = OrderedDict()
        """When each agent was seen last."""

    async def write(self, connection: AsyncConnection, tally: RollupTally) -> None:
        """Add everything, in one order everywhere. Call `written` once it is committed."""
        new = await self._introduce(connection, tally)
        for rollup in ROLLUPS:
            if rollup is AGENTS:
                rows = [_agent_row(who, tally) for who in sorted(tally.seen) if who not in new]
            else:
                rows = [(*key, *sums) for key, sums in sorted(tally.sums[rollup.table].items())]
            if rows:
                await connection.exec_driver_sql(self._add[rollup.table], rows)
        if tally.chains:
            await connection.exec_driver_sql(self._chain, sorted(tally.chains))
        if tally.would_deny:
            rows = [(*where, calls) for where, calls in sorted(tally.would_deny.items())]
            await connection.exec_driver_sql(self._observed, rows)

    def written(self, tally: RollupTally) -> None:
        """Record that the transaction is committed: its agents have their rows."""
        for who, seen in tally.seen.items():
            self._known[who] = max(seen.last_us, self._known.get(who, 0))
            self._known.move_to_end(who)
        while len(self._known) > _KNOWN_MAX:
            self._known.popitem(last=False)

    async def add_move(
        self, transaction: SqlTransaction, entry: LedgerEntry, moved: LedgerEntry
    ) -> Callable[[], None] | None:
        """Implement `payments.store.OnMove`: add what a payment's change of state counts for."""
        tally = _tally_move(entry, moved)
        if tally is None:
            return None
        await self.write(transaction.connection, tally)
        return partial(self.written, tally)

    async def _introduce(self, connection: AsyncConnection, tally: RollupTally) -> set[AgentKey]:
        """Add the rows of new agents, and count exactly those that this transaction added."""
        strangers = sorted(
            who
            for who, seen in tally.seen.items()
            if seen.last_us - self._known.get(who, 0) > _KNOWN_US
        )
        new: set[AgentKey] = set()
        for start in range(0, len(strangers), _AT_ONCE):
            some = strangers[start : start + _AT_ONCE]
            made = await connection.exec_driver_sql(
                self._introduction(len(some)),
                tuple(value for who in some for value in _agent_row(who, tally)),
            )
            new.update((row[0], row[1]) for row in cast("Iterable[AgentKey]", made))
        for operator_id, count in Counter(operator_id for operator_id, _ in new).items():
            tally.add(TOTALS, (operator_id,), (*(0 for _ in MEASURES[:-1]), count))
        return new

    def _introduction(self, count: int) -> str:
        width = len(_AGENT_COLUMNS)
        rows = (f"({places(self._kind, width, start=1 + width * n)})" for n in range(count))
        return (
            f"INSERT INTO agent_totals ({', '.join(_AGENT_COLUMNS)})"  # noqa: S608 - our own names
            f" VALUES {', '.join(rows)} ON CONFLICT DO NOTHING RETURNING operator_id, agent_id"
        )

    def _upsert(self, rollup: Rollup) -> str:
        table = rollup.table
        columns = _AGENT_COLUMNS if rollup is AGENTS else (*rollup.key, *rollup.measures)
        changes = [f"{name} = {table}.{name} + excluded.{name}" for name in rollup.measures]
        if rollup is AGENTS:
            changes += [
                _extreme("first_us", "<"),
                _extreme("last_us", ">"),
                f"tier = CASE WHEN {_IS_NEWER} THEN excluded.tier ELSE agent_totals.tier END",
                f"tier_us = CASE WHEN {_IS_NEWER} THEN excluded.tier_us ELSE {_TIER_US} END",
            ]
        return (
            f"INSERT INTO {table} ({', '.join(columns)})"  # noqa: S608 - our own names
            f" VALUES ({places(self._kind, len(columns))})"
            f" ON CONFLICT ({', '.join(rollup.key)}) DO UPDATE SET {', '.join(changes)}"
        )


@lru_cache(maxsize=100_000)
def short_key(*parts: str) -> int:
    """Return 63 bits that replace several texts in an index: half its size, as selective.

    Two that collide only cost time: a caller that searches by it compares the texts as well.
    """
    digest = blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def _tally_move(entry: LedgerEntry, moved: LedgerEntry) -> RollupTally | None:
    """Return what a payment's change of state adds; None if it adds nothing."""
    where = moved.operator_id, moved.wrapper_id, moved.agent_id or moved.payer
    if moved.settled_at is not None and entry.settled_at is None:
        failed_us = to_us(entry.updated_at) if entry.state is PaymentState.FAILED else None
        at_us = to_us(moved.updated_at)
        return tally_settled(*where, at_us, moved.amount, failed_us=failed_us)
    if moved.state is PaymentState.REVERSED and entry.settled_at is not None:
        return tally_reversed(*where, to_us(entry.settled_at), moved.amount)
    if moved.state is PaymentState.FAILED and entry.state is not PaymentState.FAILED:
        return tally_failed(moved.operator_id, to_us(moved.updated_at))
    return None


def _agent_row(who: AgentKey, tally: RollupTally) -> tuple[object, ...]:
    """Return the values of `_AGENT_COLUMNS`."""
    seen, sums = tally.seen[who], tally.sums[AGENTS.table][who]
    return (*who, *sums, seen.first_us, seen.last_us, seen.tier, seen.tier_us)


def _extreme(column: str, order: str) -> str:
    mine, theirs = f"agent_totals.{column}", f"excluded.{column}"
    return f"{column} = CASE WHEN {theirs} {order} {mine} THEN {theirs} ELSE {mine} END"


OF_CALLS: Final = f"""
SELECT operator_id, wrapper_id, COALESCE(agent_id, payer) AS agent_id, at_us / {DAY_US} AS day,
  at_us AS first_us, at_us AS last_us,
  1 AS calls, CASE WHEN status >= 400 AND status NOT IN (401, 402) THEN 1 ELSE 0 END AS errors,
  latency_us, 0 AS revenue, CASE WHEN status = 402 THEN 1 ELSE 0 END AS asked,
  0 AS paid,
  CASE WHEN outcome = 'trust_denied' THEN 1 ELSE 0 END AS denied,
  CASE WHEN outcome = 'rate_limit_exceeded' THEN 1 ELSE 0 END AS limited,
  0 AS settled, 0 AS failed
FROM calls"""  # noqa: S608 - a number of ours

"""Each call as an event."""

_OF_REMOVED: Final = """
SELECT operator_id, wrapper_id, NULLIF(agent_id, ''), day, first_us, last_us, calls, errors,
  latency_us, 0, asked, 0, denied, limited, 0, 0
FROM removed_calls"""

_OF_SETTLED: Final = f"""
SELECT operator_id, wrapper_id, COALESCE(NULLIF(agent_id, ''), payer), settled_us / {DAY_US},
  settled_us, settled_us, 0, 0, 0, CASE WHEN state = 'reversed' THEN 0 ELSE amount END,
  0, CASE WHEN state = 'reversed' THEN 0 ELSE 1 END, 0, 0,
  CASE WHEN state = 'reversed' THEN 0 ELSE 1 END, 0
FROM payments WHERE settled_us IS NOT NULL"""  # noqa: S608 - a number of ours

_OF_FAILED: Final = f"""
SELECT operator_id, wrapper_id, NULL, updated_us / {DAY_US}, updated_us, updated_us,
  0, 0, 0, 0, 0, 1, 0, 0, 0, 1
FROM payments WHERE state = 'failed'"""  # noqa: S608 - a number of ours

_OF_REMOVED_FAILED: Final = f"""
SELECT operator_id, '', NULL, day, day * {DAY_US}, day * {DAY_US},
  0, 0, 0, 0, 0, failed, 0, 0, 0, failed
FROM removed_payments"""  # noqa: S608 - a number of ours

_GRADED: Final = """
SELECT operator_id, COALESCE(agent_id, payer) AS agent_id, tier, at_us AS tier_us, seq
FROM calls WHERE tier IS NOT NULL AND COALESCE(agent_id, payer) IS NOT NULL"""

_CHAINS: Final = """
SELECT DISTINCT operator_id, COALESCE(agent_id, payer) AS agent_id, chain
FROM calls WHERE chain IS NOT NULL AND COALESCE(agent_id, payer) IS NOT NULL"""


def _kept(columns: str, table: str) -> str:
    """Return what a roll-up says of agents with calls that were removed."""
    return f"""
UNION ALL SELECT operator_id, agent_id, {columns} FROM {table} AS kept WHERE EXISTS (
  SELECT 1 FROM removed_calls AS r
  WHERE r.operator_id = kept.operator_id AND r.agent_id = kept.agent_id
)"""  # noqa: S608 - our own names


def _columns_of(rollup: Rollup) -> tuple[str, ...]:
    """Return every column of a roll-up's table."""
    seen = ("first_us", "last_us", "tier", "tier_us") if rollup is AGENTS else ()
    return (*rollup.key, *rollup.measures, *seen)


def _sums(rollup: Rollup) -> str:
    """Return a sum of every measure but the agents, who are counted one by one."""
    return ", ".join(
        f"CAST(SUM({name}) AS BIGINT) AS {name}" for name in rollup.measures if name != "agents"
    )


def _summed(rollup: Rollup, events: str, where: str = "") -> str:
    keys = ", ".join(rollup.key)
    return f"SELECT {keys}, {_sums(rollup)} FROM ({events}) AS events {where} GROUP BY {keys}"  # noqa: S608 - our own names


_OF_AGENTS: Final = "WHERE agent_id IS NOT NULL"


def _derived(served: str, events: str, graded: str, chains: str) -> Mapping[str, str]:
    """Return by table: `served` are calls and settled payments, `events` those and failed ones."""
    return {
        TOTALS.table: f"""
SELECT sums.*, COALESCE(agents, 0) AS agents FROM ({_summed(TOTALS, events)}) AS sums
LEFT JOIN (
  SELECT operator_id AS whose, COUNT(DISTINCT agent_id) AS agents
  FROM ({served}) AS served WHERE agent_id IS NOT NULL GROUP BY operator_id
) AS counted ON whose = sums.operator_id""",  # noqa: S608 - our own names
        DAYS.table: _summed(DAYS, events),
        ENDPOINTS.table: _summed(ENDPOINTS, served),
        ENDPOINT_DAYS.table: _summed(ENDPOINT_DAYS, served),
        AGENTS.table: f"""
SELECT sums.*, times.first_us, times.last_us, tiers.tier, tiers.tier_us
FROM ({_summed(AGENTS, served, _OF_AGENTS)}) AS sums
JOIN (
  SELECT operator_id, agent_id, MIN(first_us) AS first_us, MAX(last_us) AS last_us
  FROM ({served}) AS served WHERE agent_id IS NOT NULL GROUP BY operator_id, agent_id
) AS times ON times.operator_id = sums.operator_id AND times.agent_id = sums.agent_id
LEFT JOIN (
  SELECT operator_id, agent_id, tier, tier_us, ROW_NUMBER() OVER (
    PARTITION BY operator_id, agent_id ORDER BY tier_us DESC, seq DESC
  ) AS place
  FROM ({graded}) AS graded
) AS tiers
  ON tiers.operator_id = sums.operator_id AND tiers.agent_id = sums.agent_id AND tiers.place = 1""",  # noqa: S608 - our own names
        AGENT_DAYS.table: _summed(AGENT_DAYS, served, _OF_AGENTS),
        "agent_chains": chains,
    }


OVER_CELLS: Final = _derived(
    "SELECT * FROM cells WHERE is_served = 1",
    "SELECT * FROM cells",
    _GRADED + _kept("tier, tier_us, 0", "agent_totals") + " AND tier IS NOT NULL",
    f"SELECT DISTINCT * FROM ({_CHAINS}{_kept('chain', 'agent_chains')}) AS chains",  # noqa: S608 - our own names
)


def _cells(events: str, is_served: int) -> str:
    return f"""
SELECT operator_id, wrapper_id, agent_id, day, {is_served} AS is_served,
  MIN(first_us) AS first_us, MAX(last_us) AS last_us, {_sums(TOTALS)}
FROM ({events}) AS events GROUP BY operator_id, wrapper_id, agent_id, day"""  # noqa: S608 - our own names


_FAILED: Final = (
    f"SELECT * FROM ({OF_CALLS} WHERE 1 = 0 UNION ALL {_OF_FAILED}"  # noqa: S608 - our own names
    f" UNION ALL {_OF_REMOVED_FAILED}) AS named"
)

_ALL_SERVED: Final = f"{OF_CALLS} UNION ALL {_OF_REMOVED} UNION ALL {_OF_SETTLED}"

MAKE_CELLS: Final = (
    f"CREATE TEMPORARY TABLE cells AS {_cells(_ALL_SERVED, 1)} UNION ALL {_cells(_FAILED, 0)}"
)
"""Creates sums by operator, wrapper, agent and day; `DROP_CELLS` removes them."""

DROP_CELLS: Final = "DROP TABLE cells"

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    **{rollup.table: _columns_of(rollup) for rollup in ROLLUPS},
    "agent_chains": ("operator_id", "agent_id", "chain"),
}


REBUILD_S: Final = 3600.0
"""Longest time of a rebuild over all calls."""


class SqlRollupProof:
    """Compares the roll-ups with everything that they were made from."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def differences(self) -> Mapping[str, int]:
        """Return how many rows differ, by table; every table is named."""
        async with self._database.snapshot(REBUILD_S) as connection:
            return await _compared(connection, fix=False)

    async def rebuild(self) -> Mapping[str, int]:
        """Build them again; return what differed until then. Writers wait meanwhile."""
        async with self._database.write(REBUILD_S) as connection:
            if self._database.kind == "postgresql":
                await _run(connection, "LOCK TABLE calls, payments IN SHARE MODE")
            return await _compared(connection, fix=True)


async def _compared(connection: AsyncConnection, *, fix: bool) -> Mapping[str, int]:
    """Return how many rows of each roll-up differ."""
    found: dict[str, int] = {}
    await _run(connection, MAKE_CELLS)
    for table, statement in OVER_CELLS.items():
        await _run(connection, f"CREATE TEMPORARY TABLE derived AS {statement}")
        found[table] = int((await connection.execute(text(_compare(table)))).scalar_one())
        if fix and found[table]:
            columns = ", ".join(COLUMNS[table])
            await _run(connection, f"DELETE FROM {table}")  # noqa: S608 - our own names
            await _run(connection, f"INSERT INTO {table} ({columns}) SELECT {columns} FROM derived")  # noqa: S608 - our own names
        await _run(connection, "DROP TABLE derived")
    await _run(connection, DROP_CELLS)
    return found


def _compare(table: str) -> str:
    """Return how many rows only one of the two has."""
    columns = ", ".join(COLUMNS[table])
    kept = f"SELECT {columns} FROM {table}"  # noqa: S608 - our own names
    derived = f"SELECT {columns} FROM derived"  # noqa: S608 - our own names
    return (
        f"SELECT (SELECT COUNT(*) FROM ({kept} EXCEPT {derived}) AS extra)"  # noqa: S608 - our own names
        f" + (SELECT COUNT(*) FROM ({derived} EXCEPT {kept}) AS missing)"
    )


async def _run(connection: AsyncConnection, statement: str) -> None:
    await connection.execute(text(statement))
