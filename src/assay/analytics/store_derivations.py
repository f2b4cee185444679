"""The roll-ups once more, in SQL over everything that happened: what a rebuild proves them by.

`DERIVED` asks the calls and payments themselves, from before any were removed; `OVER_CELLS` yields
the same from a table of the finest sums, `MAKE_CELLS`, so that many millions of calls are read once
and not once a roll-up. Each statement yields a roll-up's columns in the order of `columns_of`. Of
calls that were removed as old, `removed_calls` has the finest sums, and of failed payments
`removed_payments`; the grade and the chains of agents of such calls are believed as the roll-ups
say them.
"""

from collections.abc import Mapping
from typing import Final

from assay.common.clock import DAY_US
from assay.db.schema.rollups import (
    AGENT_DAYS,
    AGENTS,
    DAYS,
    ENDPOINT_DAYS,
    ENDPOINTS,
    ROLLUPS,
    TOTALS,
    Rollup,
)

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
    """What a roll-up says of agents that have calls which were removed."""
    return f"""
UNION ALL SELECT operator_id, agent_id, {columns} FROM {table} AS kept WHERE EXISTS (
  SELECT 1 FROM removed_calls AS r
  WHERE r.operator_id = kept.operator_id AND r.agent_id = kept.agent_id
)"""  # noqa: S608 - our own names


def columns_of(rollup: Rollup) -> tuple[str, ...]:
    """Every column of a roll-up's table."""
    seen = ("first_us", "last_us", "tier", "tier_us") if rollup is AGENTS else ()
    return (*rollup.key, *rollup.measures, *seen)


def _sums(rollup: Rollup) -> str:
    """A sum of every measure but the agents, who are not summed but told apart."""
    return ", ".join(
        f"CAST(SUM({name}) AS BIGINT) AS {name}" for name in rollup.measures if name != "agents"
    )


def _summed(rollup: Rollup, events: str, where: str = "") -> str:
    keys = ", ".join(rollup.key)
    return f"SELECT {keys}, {_sums(rollup)} FROM ({events}) AS events {where} GROUP BY {keys}"  # noqa: S608 - our own names


_OF_AGENTS: Final = "WHERE agent_id IS NOT NULL"


def _derived(served: str, events: str, graded: str, chains: str) -> Mapping[str, str]:
    """By table; `served` are calls and settled payments, `events` those and failed ones."""
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


_SERVED: Final = f"{OF_CALLS} UNION ALL {_OF_SETTLED}"

DERIVED: Final = _derived(_SERVED, f"{_SERVED} UNION ALL {_OF_FAILED}", _GRADED, _CHAINS)
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
"""Everything by operator, wrapper, agent and day; gone with `DROP_CELLS`."""

DROP_CELLS: Final = "DROP TABLE cells"

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    **{rollup.table: columns_of(rollup) for rollup in ROLLUPS},
    "agent_chains": ("operator_id", "agent_id", "chain"),
}
