"""Interfaces for reading and writing registries, and refusals that all of them share.

Interfaces for reading and writing registries.

Refusals that every family of chains gives in the same words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from assay.chains.model import Account, ChainUnavailable, Family, Network
from assay.chains.rpc import Rpc
from assay.common.clock import Clock
from assay.registries.model import Feedback, OnchainAgent, WalletMatch


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a token URI, at most `Limits.body_bytes_max` bytes."""

    body: bytes


class DocumentUnavailable(Exception):
    """The document could not be fetched; the message may be shown to the caller."""


OVER_BUDGET = "the document's host has had its share of requests for now (egress_budget)"


class DocumentOverBudget(DocumentUnavailable):
    """The host's egress budget is used up; the document itself may be fine."""


class Documents(Protocol):
    """Fetches `https:`, `http:`, `ipfs:` and `data:` URIs through the egress guard."""

    async def fetch(self, uri: str) -> Document:
        """Return the document. Raises `DocumentUnavailable`."""
        ...


class AgentIndex(Protocol):
    """Answers what a Solana chain cannot: numbers, lists, past feedback.

    Every method raises `ChainUnavailable`. Results are confirmed on chain where possible: an index
    can be wrong or late.
    """

    async def find_number(self, network: Network, number: int) -> str | None:
        """Return the asset with this sequential id."""
        ...

    async def find_wallet(self, network: Network, wallet: str) -> Sequence[str]:
        """Return assets that name `wallet` as theirs, newest first; a bounded number."""
        ...

    async def find_owner(self, network: Network, owner: str) -> Sequence[str]:
        """Return assets that `owner` holds, oldest first; a bounded number."""
        ...

    async def fetch_feedback(self, network: Network, asset: str) -> tuple[Feedback, ...]:
        """Return every unrevoked entry, oldest first; raises also if there are too many to read."""
        ...


@dataclass(frozen=True, slots=True)
class ReaderDependencies:
    """The dependencies of a reader."""

    rpc: Rpc
    documents: Documents
    index: AgentIndex
    clock: Clock


class ChainReader(Protocol):
    """Reads agents of one family of chains.

    Every method raises `ChainUnavailable` when the chain cannot be read; none answers with a guess.
    Agent ids are those that `identify` returns, EVM addresses are lower case.
    """

    async def identify(self, network: Network, agent_id: str) -> str:
        """Return the registry's own id for a canonical one (see `parse_agent_id`).

        Raises `AgentNotFound` for an unassigned sequential id.
        """
        ...

    async def fetch_agent(self, network: Network, agent_id: str) -> OnchainAgent:
        """Return the agent with its registration file. Raises `AgentNotFound`."""
        ...

    async def fetch_feedback(self, network: Network, agent_id: str) -> tuple[Feedback, ...]:
        """Return every unrevoked feedback entry, in the registry's order."""
        ...

    async def fetch_agents_of(self, network: Network, wallet: str) -> tuple[WalletMatch, ...]:
        """Return the agents that `wallet` owns or is the agentWallet of, lowest id first."""
        ...

    async def fetch_account(self, network: Network, address: str) -> Account:
        """Return what the chain shows of an address now."""
        ...

    async def accepts_signature(
        self, network: Network, wallet: str, digest: bytes, signature: bytes
    ) -> bool:
        """Return whether contract `wallet` accepts a signature over the 32-byte digest (ERC-1271).

        False for an address without code, and for a contract that reverts or answers otherwise.
        """
        ...


class WriteRefused(Exception):
    """A write was not accepted; the message says why, for logs."""


class ChainWriter(Protocol):
    """Writes our scores to a registry, on behalf of one wallet."""

    address: str
    """Address of the wallet."""
    fee: int
    """The most that a write costs it, in the coin's smallest unit."""

    async def give_score(self, network: Network, agent: OnchainAgent, score: int) -> str:
        """Send a score of 0 to 100 once; return the signature of the transaction a node accepted.

        Raises `WriteRefused` and `ChainUnavailable`.
        """
        ...

    async def balance(self, network: Network) -> int:
        """Return the wallet's balance in the coin's smallest unit. Raises `ChainUnavailable`."""
        ...


class ChainFamily(Protocol):
    """A module of `registries/families`: how a family of chains is read."""

    name: ClassVar[Family]

    def reader(self, needs: ReaderDependencies) -> ChainReader:
        """Return a reader for every network of this family."""
        ...


def unbelievable(network: Network, detail: object) -> ChainUnavailable:
    """Return the refusal for a chain with an implausible answer; `detail` is for our logs."""
    return ChainUnavailable(
        f"The chain {network.slug} gave no answer that can be believed.",
        detail=str(detail),
        retry_after_s=10,
    )


def too_much_feedback(network: Network) -> ChainUnavailable:
    """Return the refusal for more entries than can be read: a partial list could be any part."""
    return ChainUnavailable(
        f"The agent has more feedback on {network.slug} than can be read.", retry_after_s=60
    )
