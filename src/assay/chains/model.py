"""Networks, agents on them and what was said about those agents, as plain values.

Sources: interface spec 2.1, 2.8, 4.2; ERC-8004 (EIP-8004) text and its deployed registries.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from assay.kit.errors import InvalidRequest, NotFound, Problem, Unavailable
from assay.kit.json import JsonObject

Family = Literal["evm"]
"""Families of chains with a reader in `chains/families`."""

TOKEN_ID_MAX = 2**256 - 1
"""Token ids are uint256. Source: ERC-721."""

_TOKEN_ID = re.compile(r"[0-9]{1,78}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")


class AgentNotFound(NotFound):
    """The registry knows no agent of this id (ERC721NonexistentToken), and only then."""

    code = "agent_not_found"


class ChainUnavailable(Unavailable):
    """No endpoint of the chain gave an answer that can be believed."""

    code = "chain_unavailable"


@dataclass(frozen=True, slots=True)
class Network:
    """One chain: where its registries are and how it is reached."""

    slug: str
    """Its name on the wire: `?chain=`, `x-chain`, `chain.name`."""
    name: str
    chain_id: int
    testnet: bool
    identity_registry: str
    reputation_registry: str
    rpc_urls: tuple[str, ...]
    source: str
    """Where this row comes from."""
    explorer: str | None = None
    multicall3: bool = True
    start_block: int | None = None
    """The block the identity registry was deployed in, where known."""
    family: Family = "evm"

    @property
    def caip2(self) -> str:
        """CAIP-2, such as `eip155:8453`."""
        return f"eip155:{self.chain_id}"

    @property
    def agent_registry(self) -> str:
        """The registry as registration files name it: `eip155:{chainId}:{identityRegistry}`."""
        return f"{self.caip2}:{self.identity_registry}"


@dataclass(frozen=True, slots=True)
class Service:
    """One service a registration file declares. Name and endpoint are as hostile as the file."""

    name: str
    endpoint: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimedRegistration:
    """A registration the file claims: it counts only when it names the agent it came from."""

    agent_id: str
    agent_registry: str


@dataclass(frozen=True, slots=True)
class Registration:
    """A registration file, parsed leniently; `problems` says what is wrong with it."""

    name: str = ""
    image: str = ""
    description: str = ""
    services: tuple[Service, ...] = ()
    registrations: tuple[ClaimedRegistration, ...] = ()
    trust_models: tuple[str, ...] = ()
    x402_support: bool | None = None
    active: bool | None = None
    problems: tuple[str, ...] = ()
    raw: JsonObject = field(default_factory=dict[str, "str"])


@dataclass(frozen=True, slots=True)
class OnchainAgent:
    """An agent as its registry shows it at one block. Addresses are lower case."""

    network: Network
    agent_id: str
    owner: str
    wallet: str | None
    """The registered `agentWallet`; None after a transfer or when unset."""
    token_uri: str
    registration: Registration | None
    registration_problem: str | None
    """Why there is no registration file (a sentence), or None."""

    @property
    def controllers(self) -> frozenset[str]:
        """The addresses that speak for this agent (decisions, section 6)."""
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


@dataclass(frozen=True, slots=True)
class Account:
    """What a chain shows of an address now; None is what could not be learnt."""

    transactions: int | None
    """Sent, for a contract: contracts it made."""
    is_contract: bool | None
    balance: int | None
    """In the chain's own coin, in its smallest unit."""
    since_days: int | None = None
    """Days ago of the oldest of a few days looked at on which it had sent a transaction already."""


@dataclass(frozen=True, slots=True)
class Reviewer:
    """What a chain shows of somebody who gave feedback; None is what could not be learnt."""

    transactions: int | None = None
    first_s: int | None = None
    """Their first feedback to any agent, unix seconds."""
    rated: frozenset[str] | None = None
    """Other agents they gave feedback to."""
    is_reciprocal: bool = False
    """They own an agent to which this agent's owner or wallet gave feedback."""


@dataclass(frozen=True, slots=True)
class Reviewers:
    """Reviewers by address, and when each entry was given."""

    known: Mapping[str, Reviewer]
    given_s: Mapping[tuple[str, int], int]
    """Unix seconds by reviewer and index."""
    since_s: int | None
    """An entry without a time was given before; None when no times could be learnt."""


@dataclass(frozen=True, slots=True)
class WalletMatch:
    """An agent a wallet speaks for, and how that was established."""

    agent_id: str
    source: Literal["owner", "agentWallet"]


def parse_token_id(text: str) -> str:
    """The canonical decimal form of an ERC-8004 token id; raises `InvalidRequest`."""
    if _TOKEN_ID.fullmatch(text) and int(text) <= TOKEN_ID_MAX:
        return str(int(text))
    message = "agentId must be a decimal ERC-8004 token id below 2^256"
    raise InvalidRequest(message, details=[Problem(("path", "agentId"), message)])


def is_address(text: str) -> bool:
    """Whether `text` is `0x` and 40 hex digits, in any case."""
    return _ADDRESS.fullmatch(text) is not None


def parse_address(text: str, field_name: str) -> str:
    """An EVM address in lower case; raises `InvalidRequest` naming `field_name`."""
    if is_address(text):
        return text.lower()
    message = f"{field_name} must be 0x followed by 40 hexadecimal digits"
    raise InvalidRequest(message, details=[Problem(("path", field_name), message)])
