"""The facts that chains show of an agent's payers and feedback, and their interface."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from assay.chains.model import Network
from assay.registries.model import OnchainAgent
from assay.reputation.model import Payer
from assay.reputation.rows import ProvenPayment

INDEXING = "indexing"
"""The signal is unavailable: events are still being read, or cannot be read now."""


@dataclass(frozen=True, slots=True)
class FeedbackEvent:
    """A `NewFeedback` event; `day` counts from 1970, `rating` follows `scales`."""

    client: str
    index: int
    rating: float | None
    day: int
    uri: str = ""
    digest: str = ""
    """`feedbackHash` as hex digits; empty for none."""
    is_revoked: bool = False
    responses: int = 0
    file: str = ""
    """The result of its file (`files.FileState`), or its progress."""


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """All facts that were read, and the day they describe."""

    day: int
    payers: tuple[Payer, ...] = ()
    price: int = 0
    events: Mapping[tuple[str, int], FeedbackEvent] = field(
        default_factory=dict[tuple[str, int], FeedbackEvent]
    )
    owners: frozenset[str] = frozenset()
    """Everyone who ever owned the agent."""
    validations: Sequence[tuple[str, int]] = ()
    """Listed validators and the answer of each, 0 to 100."""
    staked: int = 0
    """The on-chain stake that is lost if the agent misbehaves, in millionths of a dollar."""
    proofs: tuple[ProvenPayment, ...] = ()
    """Payments proven by feedback files; `payers` already includes them."""


class NotIndexed(Exception):
    """Events beyond the indexed head could not be read; `known` has the facts of the index."""

    def __init__(self, reason: str, known: AgentFacts | None = None) -> None:
        super().__init__(reason)
        self.known = known


class FactsSource(Protocol):
    """Reads the facts of an agent."""

    async def facts(self, agent: OnchainAgent, clients: Sequence[str]) -> AgentFacts:
        """Return current payments and events, of at most a bounded number of payers.

        Raises `NotIndexed` when they could not be read up to the newest block.
        """
        ...

    async def known(self, agent: OnchainAgent) -> AgentFacts | None:
        """Return what the index has of it, without asking a chain; None if it has nothing."""
        ...

    async def owners(self, network: Network, agent_id: str) -> frozenset[str] | None:
        """Return everyone who ever owned the agent; None while that is being read."""
        ...

    async def spent(self, network: Network, wallet: str, side: frozenset[str]) -> int | None:
        """Return a wallet's spending at sellers unrelated to `side`, in millionths of a dollar.

        Counts matured payments in the index, without asking a chain; None if none are read.
        """
        ...
