"""What the features need of chains."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from assay.chains.model import Account, Family, Network
from assay.chains.rpc import Rpc
from assay.common.clock import Clock
from assay.registries.model import Feedback, OnchainAgent, WalletMatch


@dataclass(frozen=True, slots=True)
class Document:
    """What a token URI points at, at most `Limits.body_bytes_max` bytes."""

    body: bytes


class DocumentUnavailable(Exception):
    """The document could not be had; the message is a sentence fit for a caller."""


OVER_BUDGET = "the document's host has had its share of requests for now (egress_budget)"


class DocumentOverBudget(DocumentUnavailable):
    """The host's egress budget is used up: this says nothing about the document."""


class Documents(Protocol):
    """Fetches what `https:`, `http:`, `ipfs:` and `data:` URIs point at, through guarded egress."""

    async def fetch(self, uri: str) -> Document:
        """The document. Raises `DocumentUnavailable`."""
        ...


class AgentIndex(Protocol):
    """What a Solana chain cannot be asked itself: numbers, lists, past feedback.

    Every method raises `ChainUnavailable`. What it says is confirmed at the chain where it can
    be: an index can be wrong, or late.
    """

    async def find_number(self, network: Network, number: int) -> str | None:
        """The asset with this sequential id."""
        ...

    async def find_wallet(self, network: Network, wallet: str) -> Sequence[str]:
        """Assets that name `wallet` as theirs, newest first; a bounded number."""
        ...

    async def find_owner(self, network: Network, owner: str) -> Sequence[str]:
        """Assets that `owner` holds, oldest first; a bounded number."""
        ...

    async def fetch_feedback(self, network: Network, asset: str) -> tuple[Feedback, ...]:
        """Every unrevoked entry, oldest first; raises also when there are too many to read."""
        ...


@dataclass(frozen=True, slots=True)
class ReaderDependencies:
    """What a reader reads with."""

    rpc: Rpc
    documents: Documents
    index: AgentIndex
    clock: Clock


class ChainReader(Protocol):
    """Reads agents of one family of chains.

    Every method raises `ChainUnavailable` when the chain cannot be read; none of them ever
    answers from a guess. Agent ids are those `identify` gives, EVM addresses lower case.
    """

    async def identify(self, network: Network, agent_id: str) -> str:
        """The registry's own id for a canonical one (see `parse_agent_id`).

        Raises `AgentNotFound` for a sequential id nobody has.
        """
        ...

    async def fetch_agent(self, network: Network, agent_id: str) -> OnchainAgent:
        """The agent with its registration file. Raises `AgentNotFound`."""
        ...

    async def fetch_feedback(self, network: Network, agent_id: str) -> tuple[Feedback, ...]:
        """Every unrevoked feedback entry, in the registry's order."""
        ...

    async def fetch_agents_of(self, network: Network, wallet: str) -> tuple[WalletMatch, ...]:
        """The agents `wallet` owns or is the agentWallet of, lowest id first, confirmed now."""
        ...

    async def fetch_account(self, network: Network, address: str) -> Account:
        """What the chain shows of an address now."""
        ...

    async def accepts_signature(
        self, network: Network, wallet: str, digest: bytes, signature: bytes
    ) -> bool:
        """Whether contract `wallet` accepts the signature over the 32-byte digest (ERC-1271).

        False for an address without code, and for a contract that reverts or answers otherwise.
        """
        ...


class WriteRefused(Exception):
    """A write that was not taken; the message says why, for logs."""


class ChainWriter(Protocol):
    """Writes our scores to a registry, in the name of one wallet."""

    address: str
    """The wallet's."""
    fee: int
    """The most that a write costs it, in the coin's smallest unit."""

    async def give_score(self, network: Network, agent: OnchainAgent, score: int) -> str:
        """Send a score of 0 to 100 once; the transaction's signature when a node took it.

        Raises `WriteRefused` and `ChainUnavailable`.
        """
        ...

    async def balance(self, network: Network) -> int:
        """What the wallet holds, in the coin's smallest unit. Raises `ChainUnavailable`."""
        ...


class ChainFamily(Protocol):
    """A file of `chains/families`: how a family of chains is read."""

    name: ClassVar[Family]

    def reader(self, needs: ReaderDependencies) -> ChainReader:
        """A reader of every network of this family."""
        ...
