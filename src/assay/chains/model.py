"""Networks, agents on them and what was said about those agents, as plain values.

Sources: interface.md#trust-profile, #wallet-resolution, #trust-evaluation; ERC-8004 (EIP-8004) text
and its deployed registries.
"""

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from assay.chains.problems import FileProblem
from assay.kit.base58 import decode as from_base58
from assay.kit.errors import InvalidRequest, NotFound, Problem, Unavailable
from assay.kit.json import JsonObject

Family = Literal["evm", "solana"]
"""Families of chains with a reader in `chains/families`."""

TOKEN_ID_MAX = 2**256 - 1
"""Token ids are uint256. Source: ERC-721."""

_TOKEN_ID = re.compile(r"[0-9]{1,78}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_NUMBER = re.compile(r"(?:sol:)?([0-9]{1,18})")
"""A sequential id of the Solana registry. Source: solana-registry.md#ids-and-wallets, #indexer
(`sol:42` is taken)."""

PUBLIC_KEY_BYTES = 32
_GENESIS_CHARS = 32
"""Of the genesis hash, in a CAIP-2 name. Source: the Solana namespace of ChainAgnostic CAIPs."""


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
    cluster: str = ""
    """Solana: `mainnet-beta` or `devnet`."""
    genesis: str = ""
    """Solana: the hash of the first block, by which a cluster is known."""
    index_urls: tuple[str, ...] = ()
    """Solana: indexers of the registry, asked in this order."""

    @property
    def caip2(self) -> str:
        """CAIP-2, such as `eip155:8453`."""
        if self.family == "solana":
            return f"solana:{self.genesis[:_GENESIS_CHARS]}"
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
    problems: tuple[FileProblem, ...] = ()
    raw: JsonObject = field(default_factory=dict[str, "str"])
    size_bytes: int = field(default=0, compare=False)
    """Of the file as it came."""

    @property
    def weight(self) -> int:
        """What it weighs in a cache: 1 and one more for every 4 KiB."""
        return 1 + self.size_bytes // 4096


@dataclass(frozen=True, slots=True)
class AtomStats:
    """What the Solana registry's own engine makes of an agent's feedback.

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
    registration: Registration | None
    registration_problem: str | None
    """Why there is no registration file (a sentence), or None."""
    collection: str | None = None
    """Solana: the collection its asset belongs to."""
    feedback_count: int | None = None
    """Feedback ever given, where the registry itself counts it."""
    atom: AtomStats | None = None

    @property
    def weight(self) -> int:
        """What it weighs in a cache: as its registration file, which is most of it."""
        return 1 if self.registration is None else self.registration.weight

    @property
    def controllers(self) -> frozenset[str]:
        """The addresses that speak for this agent (conventions.md#agent-identity)."""
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
    """Unix seconds, where the entry itself tells."""
    score: int | None = None
    """0 to 100 as the registry keeps it beside the value."""
    is_scored: bool = False
    """The registry keeps scores: none means that the entry is on no such scale."""


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


def parse_agent_id(network: Network, text: str) -> str:
    """An agent id of this network's registry in canonical form; raises `InvalidRequest`.

    On Solana the asset's public key, or a sequential id in decimal: the length decides, so that
    a key of nothing but digits is a key.
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
    """The number, where a canonical agent id is a sequential one."""
    return int(agent_id) if network.family == "solana" and not is_public_key(agent_id) else None


def number_asked(network: Network, agent_id: str) -> int | None:
    """The sequential id an agent is asked for by, if it is one; elsewhere nothing is looked at.

    Raises `InvalidRequest` for what is no agent id of a Solana registry.
    """
    if network.family != "solana":
        return None
    return sequential_id(network, parse_agent_id(network, agent_id))


def is_public_key(text: str) -> bool:
    """Whether `text` is 32 bytes in base 58, as Solana writes keys and addresses."""
    decoded = from_base58(text)
    return decoded is not None and len(decoded) == PUBLIC_KEY_BYTES


def parse_wallet(network: Network, text: str, field_name: str) -> str:
    """An address of this network in canonical form; raises `InvalidRequest`."""
    if network.family == "evm":
        return parse_address(text, field_name)
    if is_public_key(text):
        return text
    message = f"{field_name} must be a base-58 public key of 32 bytes"
    raise InvalidRequest(message, details=[Problem(("path", field_name), message)])


def is_address(text: str) -> bool:
    """Whether `text` is `0x` and 40 hex digits, in any case."""
    return _ADDRESS.fullmatch(text) is not None


def parse_address(text: str, field_name: str) -> str:
    """An EVM address in lower case; raises `InvalidRequest` naming `field_name`."""
    if is_address(text):
        return text.lower()
    message = f"{field_name} must be 0x followed by 40 hexadecimal digits"
    raise InvalidRequest(message, details=[Problem(("path", field_name), message)])
