"""What chains show of an agent's payers and feedback, and who provides it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from assay.chains.model import Network
from assay.registries.model import OnchainAgent
from assay.reputation.model import Payer
from assay.reputation.rows import ProvenPayment

INDEXING = "indexing"
"""Why the signal is unavailable: events are still being read, or cannot be read now."""


@dataclass(frozen=True, slots=True)
class FeedbackEvent:
    """`NewFeedback`: what only the event holds; `day` counts from 1970, `rating` as by scales."""

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
    """What came of its file (`files.FileState`), or how far that is."""


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """Everything that was read, and as of which day."""

    day: int
    payers: tuple[Payer, ...] = ()
    price: int = 0
    events: Mapping[tuple[str, int], FeedbackEvent] = field(
        default_factory=dict[tuple[str, int], FeedbackEvent]
    )
    owners: frozenset[str] = frozenset()
    """Everybody who ever owned the agent."""
    validations: Sequence[tuple[str, int]] = ()
    """Listed validators and what each answers, 0 to 100."""
    staked: int = 0
    """What can be lost on chain if the agent turns bad, in millionths of a dollar."""
    proofs: tuple[ProvenPayment, ...] = ()
    """Payments that files of feedback proved; `payers` has them already."""


class NotIndexed(Exception):
    """Events beyond the indexed head could not be read; `known` is what the index itself holds."""

    def __init__(self, reason: str, known: AgentFacts | None = None) -> None:
        super().__init__(reason)
        self.known = known


class FactsSource(Protocol):
    """Reads the facts of an agent."""

    async def facts(self, agent: OnchainAgent, clients: Sequence[str]) -> AgentFacts:
        """What payments and events show now, of at most a bounded number of payers.

        Raises `NotIndexed` when they could not be read up to the newest block.
        """
        ...

    async def known(self, agent: OnchainAgent) -> AgentFacts | None:
        """What the index holds of it, without asking a chain; None where it holds nothing."""
        ...

    async def owners(self, network: Network, agent_id: str) -> frozenset[str] | None:
        """Everybody who ever owned the agent; None while that is being read."""
        ...

    async def spent(self, network: Network, wallet: str, side: frozenset[str]) -> int | None:
        """What a wallet spent at sellers unrelated to `side`, in millionths of a dollar.

        Of payments that matured, as the index holds them, without asking a chain; None where none
        are read.
        """
        ...
