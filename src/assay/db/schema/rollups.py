"""The roll-ups of the call log: their keys and measures. Pure data."""

from dataclasses import dataclass
from typing import Final

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
