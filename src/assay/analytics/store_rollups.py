"""The roll-ups of the call log, written in the transaction of what they count."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from hashlib import blake2b
from typing import cast

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
from assay.db.engine import to_us
from assay.db.schema.rollups import AGENTS, MEASURES, ROLLUPS, TOTALS, Rollup
from assay.db.sql_transaction import SqlTransaction, places
from assay.payments.model import LedgerEntry, PaymentState

_AT_ONCE = 200
"""Agents introduced by one statement."""

_KNOWN_MAX = 200_000

_KNOWN_US = DAY_US // 2
"""An agent whose newest call is no older has its row: `old_agents` leaves it there for a day."""

_AGENT_COLUMNS = (*AGENTS.key, *AGENTS.measures, "first_us", "last_us", "tier", "tier_us")
_TIER_US = "agent_totals.tier_us"
_IS_NEWER = (
    f"excluded.tier_us IS NOT NULL AND ({_TIER_US} IS NULL OR excluded.tier_us >= {_TIER_US})"
)


class RollupWriter:
    """Adds tallies to the tables, in text of its own: the toolkit's costs several times as much."""

    def __init__(self, kind: DatabaseKind) -> None:
        self._kind: DatabaseKind = kind
        self._add = {rollup.table: self._upsert(rollup) for rollup in ROLLUPS}
        self._chain = (
            "INSERT INTO agent_chains (operator_id, agent_id, chain)"  # noqa: S608 - our own names
            f" VALUES ({places(self._kind, 3)}) ON CONFLICT DO NOTHING"
        )
        self._known: OrderedDict[AgentKey, int] = OrderedDict()
        """When each was seen last."""

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

    def written(self, tally: RollupTally) -> None:
        """The transaction is committed: its agents need no introduction any more."""
        for who, seen in tally.seen.items():
            self._known[who] = max(seen.last_us, self._known.get(who, 0))
            self._known.move_to_end(who)
        while len(self._known) > _KNOWN_MAX:
            self._known.popitem(last=False)

    async def add_move(
        self, transaction: SqlTransaction, entry: LedgerEntry, moved: LedgerEntry
    ) -> Callable[[], None] | None:
        """Implements `payments.store.OnMove`: add what a payment's change of state counts for."""
        tally = _tally_move(entry, moved)
        if tally is None:
            return None
        await self.write(transaction.connection, tally)
        return partial(self.written, tally)

    async def _introduce(self, connection: AsyncConnection, tally: RollupTally) -> set[AgentKey]:
        """Make the rows of new agents, and count exactly those that this transaction made."""
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
    """63 bits that stand for several texts in an index of calls: half its size, and as selective.

    Two that collide only cost time: whoever asks by it compares the texts as well.
    """
    digest = blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def _tally_move(entry: LedgerEntry, moved: LedgerEntry) -> RollupTally | None:
    """What a payment's change of state adds; None when it adds nothing."""
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
    """The values of `_AGENT_COLUMNS`."""
    seen, sums = tally.seen[who], tally.sums[AGENTS.table][who]
    return (*who, *sums, seen.first_us, seen.last_us, seen.tier, seen.tier_us)


def _extreme(column: str, order: str) -> str:
    mine, theirs = f"agent_totals.{column}", f"excluded.{column}"
    return f"{column} = CASE WHEN {theirs} {order} {mine} THEN {theirs} ELSE {mine} END"
