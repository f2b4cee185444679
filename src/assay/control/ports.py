"""What proofs of control need of the outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from assay.common.clock import DAY_US
from assay.common.json import JsonObject


class LookUpUnavailable(Exception):
    """It could not be asked now, for our own sake: this says nothing about what is published."""


class TxtRecords(Protocol):
    """Reads TXT records of names that strangers chose, within a share of look-ups and a time."""

    async def find(self, name: str) -> Sequence[str]:
        """Every TXT record of exactly that name; one made by a wildcard is none of them.

        Empty where the name or its records do not exist. Raises `LookUpUnavailable`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Card:
    """An agent card as it was served, and where."""

    url: str
    document: JsonObject


@dataclass(frozen=True, slots=True)
class Tool:
    """What a client's model reads of a tool."""

    name: str
    description: str


class ServiceReader(Protocol):
    """What a visit reads of declared services anyhow; asking again costs the agent nothing.

    Nothing where the service does not answer so. Raises `LookUpUnavailable` where our own budget
    is used up.
    """

    async def card(self, endpoint: str) -> Card | None:
        """The A2A card of the endpoint."""
        ...

    async def tools(self, endpoint: str) -> Sequence[Tool]:
        """The tools of an MCP endpoint."""
        ...

    async def payees(self, endpoint: str) -> frozenset[str]:
        """Whom an unpaid call is asked to pay (x402); empty where nothing is asked."""
        ...


@dataclass(frozen=True, slots=True)
class ControlledEndpoint:
    """One declared service: its address as declared, and what is spoken there (`a2a`...)."""

    url: str
    kind: str


@dataclass(frozen=True, slots=True)
class OpenFinding:
    """An open critical finding, or a bad reputation, of an agent, and the control it follows."""

    agent: str
    check: str
    key: str
    opened_us: int


@dataclass(frozen=True, slots=True)
class Elder:
    """An agent that was there before, whose name or texts are alike."""

    agent: str
    name: str
    rung: int
    signature: str
    first_us: int


@dataclass(frozen=True, slots=True)
class Past:
    """What earlier evaluations of one agent left."""

    first_us: int | None
    owner: str | None
    """Of the newest evaluation."""
    owned_days: int | None
    """Whole days since the token was transferred without its services; None: never."""
    keys: frozenset[str]
    """Control proven within the last 90 days."""


class ControlStore(Protocol):
    """What is kept about control. Raises `common.errors.Unavailable`."""

    async def past(self, agent: str) -> Past:
        """Of the agent with this subject key."""
        ...

    async def proven_by(
        self, keys: Sequence[str], agents: Sequence[str]
    ) -> Sequence[tuple[str, str]]:
        """Which of these agents have which of these keys proven in the last 90 days."""
        ...

    async def proven_on(self, site: str) -> Sequence[str]:
        """The agents with proven control on a site (`Scope.site`), bounded."""
        ...

    async def holders(self, keys: Sequence[str], exclude: str) -> Sequence[str]:
        """Other agents that have one of these keys proven, bounded."""
        ...

    async def following(self, keys: Sequence[str], exclude: str) -> Sequence[OpenFinding]:
        """Open findings of other agents under any of these keys, bounded."""
        ...

    async def alike(self, bands: Sequence[str], exclude: str) -> Sequence[Elder]:
        """Other agents with an open critical finding and one of these bands, bounded."""
        ...

    async def of_name(self, skeleton: str, exclude: str) -> Sequence[Elder]:
        """Other agents of this name, the highest rung first, then the eldest; bounded."""
        ...


FOLLOWS_DAYS = 90
"""How long control, and what follows it, is remembered. Source: ADR 0027."""


FOLLOWS_US = FOLLOWS_DAYS * DAY_US
