"""External dependencies of control proofs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from assay.common.clock import DAY_US
from assay.common.json import JsonObject


class LookUpUnavailable(Exception):
    """The look-up is not possible now for a reason of ours; nothing is known about the records."""


class TxtRecords(Protocol):
    """Reads TXT records of untrusted names, within a share of look-ups and a time limit."""

    async def find(self, name: str) -> Sequence[str]:
        """Return every TXT record of exactly that name, without those of a wildcard.

        Empty if the name or its records do not exist. Raises `LookUpUnavailable`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Card:
    """An agent card as it was served, and its address."""

    url: str
    document: JsonObject


@dataclass(frozen=True, slots=True)
class Tool:
    """The parts of a tool that a client's model reads."""

    name: str
    description: str


class ServiceReader(Protocol):
    """Reads documents of declared services that a visit reads anyway: no extra requests.

    Methods return nothing if the service has no such document. They raise `LookUpUnavailable` if
    our own budget is used up.
    """

    async def card(self, endpoint: str) -> Card | None:
        """Return the A2A card of the endpoint."""
        ...

    async def tools(self, endpoint: str) -> Sequence[Tool]:
        """Return the tools of an MCP endpoint."""
        ...

    async def payees(self, endpoint: str) -> frozenset[str]:
        """Return the payees that an unpaid call demands (x402); empty if no payment is demanded."""
        ...


@dataclass(frozen=True, slots=True)
class ControlledEndpoint:
    """A declared service: its address as declared, and its protocol (`a2a`...)."""

    url: str
    kind: str


@dataclass(frozen=True, slots=True)
class OpenFinding:
    """An agent's open critical finding or bad reputation, and the control it follows."""

    agent: str
    check: str
    key: str
    opened_us: int


@dataclass(frozen=True, slots=True)
class Elder:
    """An older agent with a similar name or similar texts."""

    agent: str
    name: str
    rung: int
    signature: str
    first_us: int


@dataclass(frozen=True, slots=True)
class Past:
    """The results of earlier evaluations of one agent."""

    first_us: int | None
    owner: str | None
    """The owner at the newest evaluation."""
    owned_days: int | None
    """Whole days since the token was transferred without its services; None: never."""
    keys: frozenset[str]
    """Control proven within the last 90 days."""


class ControlStore(Protocol):
    """Stores control and its consequences. Methods raise `common.errors.Unavailable`."""

    async def past(self, agent: str) -> Past:
        """Return the past of the agent with this subject key."""
        ...

    async def proven_by(
        self, keys: Sequence[str], agents: Sequence[str]
    ) -> Sequence[tuple[str, str]]:
        """Return which of these agents proved which of these keys in the last 90 days."""
        ...

    async def proven_on(self, site: str) -> Sequence[str]:
        """Return the agents with proven control on a site (`Scope.site`), bounded."""
        ...

    async def holders(self, keys: Sequence[str], exclude: str) -> Sequence[str]:
        """Return other agents that proved one of these keys, bounded."""
        ...

    async def following(self, keys: Sequence[str], exclude: str) -> Sequence[OpenFinding]:
        """Return open findings of other agents under any of these keys, bounded."""
        ...

    async def alike(self, bands: Sequence[str], exclude: str) -> Sequence[Elder]:
        """Return other agents with an open critical finding and one of these bands, bounded."""
        ...

    async def of_name(self, skeleton: str, exclude: str) -> Sequence[Elder]:
        """Return other agents of this name, the highest rung first, then the oldest; bounded."""
        ...


FOLLOWS_DAYS = 90
"""How long control, and what follows it, is remembered. Source: ADR 0027."""


FOLLOWS_US = FOLLOWS_DAYS * DAY_US
