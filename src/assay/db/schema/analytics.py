"""Tables of the call log's roll-ups.

The roll-ups of the call log: their keys and measures. Pure data.

Tables of the call log's roll-ups; `analytics/rollup.py` defines their keys and measures.
"""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, String, Table

from assay.db.schema.metadata import METADATA

MEASURES: Final = (
    *("calls", "errors", "latency_us", "revenue"),
    *("asked", "paid", "denied", "limited", "settled", "failed", "agents"),
)
"""The measures. `revenue` is settled money in micro-dollars; `asked` are 402 responses, `denied`
and `limited` refusals by trust and by rate limit, `agents` those seen for the first time. Money
comes from the ledger: `settled` and `failed` payments, and `paid`, their sum."""


@dataclass(frozen=True, slots=True)
class Rollup:
    """A table of sums: its keys and its measures."""

    table: str
    key: tuple[str, ...]
    measures: tuple[str, ...]


_PLAIN: Final = MEASURES[:4]


_FUNNEL: Final = MEASURES[:10]


TOTALS: Final = Rollup("call_totals", ("operator_id",), MEASURES)


DAYS: Final = Rollup("call_days", ("operator_id", "day"), _FUNNEL)


ENDPOINTS: Final = Rollup("endpoint_totals", ("operator_id", "wrapper_id"), _PLAIN)


ENDPOINT_DAYS: Final = Rollup("endpoint_days", ("operator_id", "wrapper_id", "day"), _PLAIN)


AGENTS: Final = Rollup("agent_totals", ("operator_id", "agent_id"), _PLAIN)


AGENT_DAYS: Final = Rollup("agent_days", ("operator_id", "agent_id", "wrapper_id", "day"), _PLAIN)


ROLLUPS: Final = (TOTALS, DAYS, ENDPOINTS, ENDPOINT_DAYS, AGENTS, AGENT_DAYS)
"""In the order in which they are written, so that two writers cannot deadlock."""


_AGENT_CHARS = 80


def _table(rollup: Rollup, *more: Column[int] | Column[str] | Index) -> Table:
    return Table(
        rollup.table,
        METADATA,
        *(_key(name) for name in rollup.key),
        *(Column(name, BigInteger, nullable=False) for name in rollup.measures),
        *more,
        # A row is its key and a few numbers, so it is stored in the index itself.
        sqlite_with_rowid=False,
    )


def _key(name: str) -> Column[int] | Column[str]:
    if name == "day":
        return Column(name, Integer, primary_key=True, autoincrement=False)
    return Column(name, String(_AGENT_CHARS if name == "agent_id" else 36), primary_key=True)


call_totals = _table(TOTALS)
call_days = _table(DAYS)
endpoint_totals = _table(ENDPOINTS)
endpoint_days = _table(ENDPOINT_DAYS)
agent_days = _table(AGENT_DAYS)
agent_totals = _table(
    AGENTS,
    Column("first_us", BigInteger, nullable=False),
    Column("last_us", BigInteger, nullable=False),
    Column("tier", String(3)),
    Column("tier_us", BigInteger),
    # One for each order in which agents can be listed.
    *(
        Index(f"ix_agent_totals_{name}", "operator_id", name, "agent_id")
        for name in ("last_us", "calls", "revenue", "errors")
    ),
)
agent_chains = Table(
    "agent_chains",
    METADATA,
    Column("operator_id", String(36), primary_key=True),
    Column("agent_id", String(_AGENT_CHARS), primary_key=True),
    Column("chain", String(64), primary_key=True),
    sqlite_with_rowid=False,
)
removed_calls = Table(
    "removed_calls",
    METADATA,
    # The finest sums of calls whose rows were removed; roll-ups are verified against them instead.
    Column("operator_id", String(36), primary_key=True),
    # The agent, as in the roll-ups; empty for anonymous calls.
    Column("agent_id", String(_AGENT_CHARS), primary_key=True),
    Column("wrapper_id", String(36), primary_key=True),
    Column("day", Integer, primary_key=True, autoincrement=False),
    *(
        Column(name, BigInteger, nullable=False)
        for name in ("calls", "errors", "latency_us", "asked", "denied", "limited")
    ),
    Column("first_us", BigInteger, nullable=False),
    Column("last_us", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
removed_payments = Table(
    "removed_payments",
    METADATA,
    # Failed payments whose rows were removed, by the day they failed: their number, and the gas
    # spent for them in billionths of a currency; empty if none was.
    Column("operator_id", String(36), primary_key=True),
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("gas_currency", String(32), primary_key=True),
    Column("failed", BigInteger, nullable=False),
    Column("gas_spent", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
call_id_key = Table("call_id_key", METADATA, Column("key", LargeBinary, nullable=False))
"""One row: the key that makes the ids of calls (`call_ids.py`)."""
