"""What the call log and its analytics need of the outside."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from assay.analytics.model import (
    AgentCounted,
    BatchId,
    CallLogEntry,
    CallSums,
    EndpointCounted,
    LogFilter,
    LoggedCall,
    Stats,
)

AgentOrder = Literal["lastSeen", "calls", "spent", "errors"]
"""Source: interface.md#enumerated-values."""


class CallsRefused(Exception):
    """The store can never take this batch: a row of it holds what cannot be stored."""


class CallStore(Protocol):
    """Durable rows of calls."""

    async def add(self, batch: Sequence[CallLogEntry], batch_id: BatchId | None = None) -> None:
        """Store all of them, and what they add to the analytics, in one transaction.

        A batch with an id is stored once: handed in again, right after, it adds nothing. Raises
        `CallsRefused`, with nothing stored, and `Unavailable`, with the batch stored or not.
        """
        ...

    async def recent(self, operator_id: str, at_most: int) -> Sequence[CallLogEntry]:
        """The operator's newest calls."""
        ...


class AnalyticsStore(Protocol):
    """What is counted, one operator at a time. Days are numbered from 1970-01-01, UTC."""

    async def stats(self, operator_id: str, today: int) -> Stats:
        """Everything so far."""
        ...

    async def days(self, operator_id: str, first: int, last: int) -> Mapping[int, CallSums]:
        """The days with calls or money, both ends included."""
        ...

    async def top_endpoints(
        self, operator_id: str, at_most: int, offset: int = 0
    ) -> tuple[Sequence[EndpointCounted], int]:
        """Wrappers by calls, most first, deactivated ones included; and how many there are."""
        ...

    async def agents(
        self, operator_id: str, order: AgentOrder, at_most: int, offset: int
    ) -> tuple[Sequence[AgentCounted], int]:
        """Agents in that order, highest first, and how many there are."""
        ...

    async def agent(self, operator_id: str, agent_id: str) -> AgentCounted | None:
        """One agent."""
        ...

    async def agent_endpoints(self, operator_id: str, agent_id: str) -> Sequence[EndpointCounted]:
        """What one agent called, by calls, most first."""
        ...

    async def count(self, operator_id: str, which: LogFilter, first_day: int | None) -> int:
        """How many calls are in the log, from the roll-ups."""
        ...

    async def position(self, operator_id: str, call_id: str) -> tuple[int, int] | None:
        """Where a call of the operator stands in the log: its time and its number."""
        ...

    async def logs(
        self,
        operator_id: str,
        which: LogFilter,
        first_day: int | None,
        before: tuple[int, int] | None,
        at_most: int,
        offset: int,
    ) -> Sequence[LoggedCall]:
        """Calls, newest first, from just before that position on."""
        ...


class RollupProof(Protocol):
    """The roll-ups held against everything they were made from."""

    async def differences(self) -> Mapping[str, int]:
        """Rows that are not what they should be, by table; every table is named."""
        ...

    async def rebuild(self) -> Mapping[str, int]:
        """Make them again; what differed until then. Writers wait meanwhile."""
        ...
