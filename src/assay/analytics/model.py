"""The call log: one row for every call of a wrapper (interface.md#analytics-records)."""

from dataclasses import dataclass, field
from datetime import datetime

from assay.common.errors import NotFound


@dataclass(slots=True)
class CallKind:
    """Who called what: the same for many calls, which then share the very same object."""

    operator_id: str
    wrapper_id: str
    method: str
    path: str
    agent_id: str | None = None
    agent_address: str | None = None
    identity_proven: bool = False
    payer: str | None = None
    tier: str | None = None
    score: float | None = None
    chain: str | None = None
    """Where the agent is registered, by its slug; None for a key agent and for a mere payer."""
    route: str | None = None
    is_bounded: bool = field(default=False, compare=False, repr=False)
    """Whether every value is one that any database can hold (`analytics/bounds.py`)."""

    @property
    def agent(self) -> str | None:
        """Whom its calls are counted for: the agent they were made as, else who paid."""
        return self.agent_id or self.payer


@dataclass(slots=True)
class CallLogEntry:
    """Who called what, how it went and what it cost. `cost` is in micro-dollars, 0 if not paid."""

    kind: CallKind
    at: datetime
    request_id: str
    client: str
    status: int
    outcome: str
    """`forwarded`, `replayed`, `cancelled`, or the code of the refusal; `recovered` where a
    crash lost the row and it is written anew from the ledger, with what that knows of the call."""
    latency_us: int
    response_bytes: int
    request_bytes: int = 0
    cost: int = 0
    payment_id: str | None = None
    is_sale: bool = False
    """Whether it handed out what a settled payment bought, for the first time; kept nowhere."""


@dataclass(frozen=True, slots=True)
class BatchId:
    """Names a batch of calls: whose it is, and the how-manieth of that writer.

    A writer begins its next batch once it knows what became of the one before.
    """

    writer: str
    number: int


@dataclass(frozen=True, slots=True)
class CallSums:
    """Sums over calls: times in microseconds, money in micro-dollars."""

    calls: int = 0
    errors: int = 0
    latency_us: int = 0
    revenue: int = 0
    """Settled money only (interface.md#analytics-records)."""


@dataclass(frozen=True, slots=True)
class Funnel:
    """From the first 402 to the money: how many got how far."""

    asked: int = 0
    """Answers 402."""
    paid: int = 0
    """Payments that settled, that failed, and that are being settled now."""
    settled: int = 0
    failed: int = 0
    denied: int = 0
    """Calls refused by trust."""
    limited: int = 0
    """Calls refused by the wrapper's rate limit."""


@dataclass(frozen=True, slots=True)
class Stats:
    """An operator's sums, and those of the current UTC day."""

    total: CallSums
    today: CallSums
    agents: int
    funnel: Funnel


@dataclass(frozen=True, slots=True)
class EndpointCounted:
    """A wrapper and its sums."""

    wrapper_id: str
    path: str
    method: str
    counted: CallSums


@dataclass(frozen=True, slots=True)
class AgentCounted:
    """An agent as one operator knows it, and its sums; `revenue` is what it spent."""

    agent_id: str
    chains: tuple[str, ...]
    first_seen: datetime
    last_seen: datetime
    tier: str | None
    """The newest grade a wrapper found it to have."""
    counted: CallSums


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A row of the log as it is read back."""

    id: str
    """UUIDv7; it tells nothing of how many calls there are."""
    call: CallLogEntry
    charged: int
    """Micro-dollars that have settled for this very call, by now."""
    transaction: str | None
    """What moved them, where it is known."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which calls of an operator. `days` are UTC days, the current one included."""

    days: int | None = None
    agent_id: str | None = None
    wrapper_id: str | None = None


class AgentNotSeen(NotFound):
    """No call of this agent is in the operator's log."""

    code = "agent_not_found"


class CallNotFound(NotFound):
    """No such call is in the operator's log."""

    code = "call_not_found"
