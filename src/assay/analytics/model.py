"""The call log: one row for every call of a wrapper (interface.md#analytics-records).

A row may only hold what every database can store. Most of a row was sent by a stranger: a value
that no database can store would otherwise block every row after it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from types import MappingProxyType
from typing import Final, Literal

from assay.common.errors import NotFound

AgentOrder = Literal["lastSeen", "calls", "spent", "errors"]
"""Source: interface.md#enumerated-values."""


class CallsRefused(Exception):
    """The store can never take this batch: one of its rows has a value that it cannot store."""


@dataclass(slots=True)
class CallKind:
    """The caller and the called: equal for many calls, which share one object."""

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
    """The slug of the chain that registers the agent; None for a key agent and for a payer."""
    route: str | None = None
    would_deny: str | None = None
    """Why the trust check would have refused the call, if it only observed."""
    is_bounded: bool = field(default=False, compare=False, repr=False)
    """Whether every value can be stored in any database (see `bound`)."""

    @property
    def agent(self) -> str | None:
        """Return the agent that its calls count for: the caller's agent, or else the payer."""
        return self.agent_id or self.payer


@dataclass(slots=True)
class CallLogEntry:
    """Who called what, the result, and the cost in micro-dollars, 0 if not paid."""

    kind: CallKind
    at: datetime
    request_id: str
    client: str
    status: int
    outcome: str
    """`forwarded`, `replayed`, `cancelled`, or the code of the refusal; `recovered` if a crash lost
    the row and it was written again from the ledger, with what that knows of the call."""
    latency_us: int
    response_bytes: int
    request_bytes: int = 0
    cost: int = 0
    payment_id: str | None = None
    is_sale: bool = False
    """Whether it sent what a settled payment bought, for the first time; stored nowhere."""


@dataclass(frozen=True, slots=True)
class BatchId:
    """Names a batch of calls: its writer, and its number for that writer.

    A writer begins its next batch once it knows the result of the one before.
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
    """From the first 402 to the money: how many calls got how far."""

    asked: int = 0
    """Answers 402."""
    paid: int = 0
    """Payments that settled, failed, or are being settled now."""
    settled: int = 0
    failed: int = 0
    denied: int = 0
    """Calls refused by trust."""
    limited: int = 0
    """Calls refused by the wrapper's rate limit."""
    would_deny: int = 0
    """Calls that trust would have refused, of wrappers that only observe."""


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
    would_deny: int = 0
    """Calls that trust would have refused, while it only observed; by all agents."""


@dataclass(frozen=True, slots=True)
class AgentCounted:
    """An agent as one operator knows it, and its sums; `revenue` is what it spent."""

    agent_id: str
    chains: tuple[str, ...]
    first_seen: datetime
    last_seen: datetime
    tier: str | None
    """The newest grade that a wrapper saw."""
    counted: CallSums


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A row of the log as it is read."""

    id: str
    """UUIDv7; it does not reveal how many calls there are."""
    call: CallLogEntry
    charged: int
    """Micro-dollars that have settled for this very call so far."""
    transaction: str | None
    """The transaction that moved them, if it is known."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Selects an operator's calls. `days` are UTC days, the current one included."""

    days: int | None = None
    agent_id: str | None = None
    wrapper_id: str | None = None


class AgentNotSeen(NotFound):
    """The operator's log has no call of this agent."""

    code = "agent_not_found"


class CallNotFound(NotFound):
    """The operator's log has no such call."""

    code = "call_not_found"


TEXT_CHARS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "operator_id": 36,
        "wrapper_id": 36,
        "request_id": 64,
        "method": 32,
        "path": 300,
        "agent_id": 80,
        "agent_address": 64,
        "payer": 64,
        "client": 64,
        "tier": 3,
        "outcome": 32,
        "payment_id": 36,
        "chain": 64,
        "route": 16,
        "would_deny": 32,
    }
)
"""The longest text of each column; a test compares them with the tables."""

NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "status": 999,
        "latency_us": 10**12,
        "cost": 2**53,
        "request_bytes": 2**53,
        "response_bytes": 2**53,
    }
)
"""The largest number of each column; the smallest is 0. Times are summed: twelve days at most."""

_KIND_TEXTS: Final = tuple(
    (name, most) for name, most in TEXT_CHARS.items() if name in CallKind.__dataclass_fields__
)
_CALL_TEXTS: Final = tuple(
    (name, most) for name, most in TEXT_CHARS.items() if name in CallLogEntry.__dataclass_fields__
)
_NUMBERS: Final = tuple(NUMBERS.items())
_USUAL_CHARS: Final = 64
_USUAL_NUMBER: Final = 2**31
"""A number within the bounds of every text, and of every number but the status."""

_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def bound(call: CallLogEntry) -> None:
    """Shorten and clean in place what no database could store; leave everything else.

    What calls of a kind have in common is checked once.
    """
    if not call.kind.is_bounded:
        _bound_kind(call.kind)
    if not _is_usual(call):
        _bound_texts(call, _CALL_TEXTS)
        for name, most in _NUMBERS:
            setattr(call, name, min(max(getattr(call, name), 0), most))


def _is_usual(call: CallLogEntry) -> bool:
    """Return whether there is nothing to do: one check, because every call needs it."""
    text = call.request_id + call.client
    return (
        call.outcome == "forwarded"
        and len(text) <= _USUAL_CHARS
        and text.isascii()
        and "\0" not in text
        and call.payment_id is None
        and 0 <= call.latency_us <= _USUAL_NUMBER
        and 0 <= call.request_bytes <= _USUAL_NUMBER
        and 0 <= call.response_bytes <= _USUAL_NUMBER
        and 0 <= call.cost <= _USUAL_NUMBER
        and 0 <= call.status <= NUMBERS["status"]
    )


def _bound_kind(kind: CallKind) -> None:
    _bound_texts(kind, _KIND_TEXTS)
    if kind.score is not None and not isfinite(kind.score):
        kind.score = None
    kind.is_bounded = True


def _bound_texts(of: CallLogEntry | CallKind, texts: Iterable[tuple[str, int]]) -> None:
    for name, most in texts:
        text: str | None = getattr(of, name)
        if text and (len(text) > most or not text.isascii() or "\0" in text):
            setattr(of, name, _UNSTORABLE.sub("\ufffd", text[:most]))
