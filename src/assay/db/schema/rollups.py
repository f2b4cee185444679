"""The roll-ups of the call log: what each is keyed by and which measures it has. Pure data."""

from dataclasses import dataclass
from typing import Final

MEASURES: Final = (
    *("calls", "errors", "latency_us", "revenue"),
    *("asked", "paid", "denied", "limited", "settled", "failed", "agents"),
)
"""What is counted. `revenue` is settled money in micro-dollars; `asked` are 402 answers, `denied`
and `limited` refusals by trust and by rate limit, `agents` those seen for the first time. The money
is the ledger's: `settled` and `failed` payments, and `paid`, those that came to either end."""


@dataclass(frozen=True, slots=True)
class Rollup:
    """A table of sums: what it is keyed by and which measures it has."""

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
"""In the order in which they are written: two writers never wait for each other crosswise."""
