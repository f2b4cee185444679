"""Agents as their registries show them, and their ids. Plain values."""

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from assay.chains.model import Network, is_public_key
from assay.common.errors import InvalidRequest, NotFound, Problem
from assay.common.json import JsonObject
from assay.registries.file_problems import FileProblem

TOKEN_ID_MAX = 2**256 - 1
"""Token ids are uint256. Source: ERC-721."""


_TOKEN_ID = re.compile(r"[0-9]{1,78}")


_NUMBER = re.compile(r"(?:sol:)?([0-9]{1,18})")
"""A sequential id of the Solana registry. Source: solana-registry.md#ids-and-wallets, #indexer
(`sol:42` is accepted)."""


class AgentNotFound(NotFound):
    """The registry has no agent with this id (ERC721NonexistentToken), and only then."""

    code = "agent_not_found"


@dataclass(frozen=True, slots=True)
class Service:
    """A service that a registration file declares. Name and endpoint are untrusted."""

    name: str
    endpoint: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimedRegistration:
    """A registration that the file claims: valid only if it names the agent it came from."""

    agent_id: str
    agent_registry: str


@dataclass(frozen=True, slots=True)
class RegistrationFile:
    """A registration file, parsed leniently; `problems` says what is wrong with it."""

    name: str = ""
    image: str = ""
    description: str = ""
    services: tuple[Service, ...] = ()
    registrations: tuple[ClaimedRegistration, ...] = ()
    trust_models: tuple[str, ...] = ()
    x402_support: bool | None = None
    active: bool | None = None
    problems: tuple[FileProblem, ...] = ()
    raw: JsonObject = field(default_factory=dict[str, "str"])
    size_bytes: int = field(default=0, compare=False)
    """Size of the file as received."""

    @property
    def weight(self) -> int:
        """Return its weight in a cache: 1, and one more for every 4 KiB."""
        return 1 + self.size_bytes // 4096


@dataclass(frozen=True, slots=True)
class AtomStats:
    """The Solana registry's own figures for an agent's feedback.

    `quality_score` and `confidence` are 0 to 10,000, `risk_score` 0 to 100 (high is bad);
    `average_score` 0 to 100 is the engine's slow moving average.
    Sources: interface.md#trust-profile; solana-registry.md#atom-figures.
    """

    trust_tier: str
    quality_score: int
    confidence: int
    risk_score: int
    unique_callers: int
    average_score: float


@dataclass(frozen=True, slots=True)
class OnchainAgent:
    """An agent as its registry shows it at one block. EVM addresses are lower case."""

    network: Network
    agent_id: str
    owner: str
    wallet: str | None
    """The registered `agentWallet`; None after a transfer or when unset."""
    token_uri: str
    registration: RegistrationFile | None
    registration_problem: str | None
    """Why there is no registration file (a sentence), or None."""
    collection: str | None = None
    """Solana: the collection its asset belongs to."""
    feedback_count: int | None = None
    """Number of feedback entries ever given, if the registry itself counts it."""
    atom: AtomStats | None = None

    @property
    def weight(self) -> int:
        """Return its weight in a cache: that of its registration file, which is most of it."""
        return 1 if self.registration is None else self.registration.weight

    @property
    def controllers(self) -> frozenset[str]:
        """Return the addresses that may act for this agent (conventions.md#agent-identity)."""
        return frozenset(a for a in (self.owner, self.wallet) if a)


@dataclass(frozen=True, slots=True)
class Feedback:
    """One feedback entry, as stored. `value` is already divided by 10**decimals."""

    client: str
    index: int
    value: Decimal
    decimals: int
    tag1: str
    tag2: str
    given_s: int | None = None
    """Unix seconds, if the entry itself has a time."""
    score: int | None = None
    """0 to 100 as the registry stores it beside the value."""
    is_scored: bool = False
    """Whether the registry stores scores: then an entry without one is on no such scale."""


@dataclass(frozen=True, slots=True)
class WalletMatch:
    """An agent that a wallet may act for, and how that was established."""

    agent_id: str
    source: Literal["owner", "agentWallet"]


def parse_token_id(text: str) -> str:
    """Return the canonical decimal form of an ERC-8004 token id; raises `InvalidRequest`."""
    if _TOKEN_ID.fullmatch(text) and int(text) <= TOKEN_ID_MAX:
        return str(int(text))
    message = "agentId must be a decimal ERC-8004 token id below 2^256"
    raise InvalidRequest(message, details=[Problem(("path", "agentId"), message)])


def parse_agent_id(network: Network, text: str) -> str:
    """Return the canonical agent id of this network's registry; raises `InvalidRequest`.

    On Solana it is the asset's public key or a sequential id in decimal. The length decides, so a
    key of nothing but digits is a key.
    """
    if network.family == "evm":
        return parse_token_id(text)
    if is_public_key(text):
        return text
    found = _NUMBER.fullmatch(text)
    if found and int(found[1]) > 0:
        return str(int(found[1]))
    message = "agentId must be a base-58 public key of 32 bytes, or a sequential id from 1 on"
    raise InvalidRequest(message, details=[Problem(("path", "agentId"), message)])


def sequential_id(network: Network, agent_id: str) -> int | None:
    """Return the number if a canonical agent id is a sequential one, else None."""
    return int(agent_id) if network.family == "solana" and not is_public_key(agent_id) else None


def number_asked(network: Network, agent_id: str) -> int | None:
    """Return the sequential id of a request's agent id, if it is one; on EVM chains always None.

    Raises `InvalidRequest` if it is not an agent id of a Solana registry.
    """
    if network.family != "solana":
        return None
    return sequential_id(network, parse_agent_id(network, agent_id))
