"""The call log: one row for every call of a wrapper (interface.md#analytics-records).

A row may hold only what every database takes. Most of a row was sent by a stranger: a value no
database can hold would otherwise hold up every row after it.
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
    """The store can never take this batch: a row of it holds what cannot be stored."""


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
    """Whether every value is one that any database can hold (`analytics/model.py`)."""

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
    crash lost the row and it is written again from the ledger, with what that knows of the call."""
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
    }
)
"""The longest text of each column; a test holds them against the tables."""

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
"""What is within the bounds of every text, and of every number but the status."""

_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def bound(call: CallLogEntry) -> None:
    """Cut and clean what no database could hold, in place; everything else stays as it is.

    What calls of a kind have in common is looked at once.
    """
    if not call.kind.is_bounded:
        _bound_kind(call.kind)
    if not _is_usual(call):
        _bound_texts(call, _CALL_TEXTS)
        for name, most in _NUMBERS:
            setattr(call, name, min(max(getattr(call, name), 0), most))


def _is_usual(call: CallLogEntry) -> bool:
    """Whether there is nothing to do: one look, for it is taken at every call."""
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
