"""The call log: one row for every call of a wrapper (spec 2.15)."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(slots=True)
class Call:
    """Who called what, how it went and what it cost. `cost` is in micro-dollars, 0 if not paid."""

    operator_id: str
    wrapper_id: str
    at: datetime
    request_id: str
    method: str
    path: str
    agent_id: str | None
    agent_address: str | None
    identity_proven: bool
    payer: str | None
    client: str
    tier: str | None
    score: float | None
    status: int
    outcome: str
    """`forwarded`, `replayed`, `cancelled`, or the code of the refusal."""
    latency_us: int
    cost: int
    payment_id: str | None
    request_bytes: int
    response_bytes: int
