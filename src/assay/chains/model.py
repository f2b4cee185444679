"""Networks, accounts and addresses as plain values.

Sources: interface.md#trust-profile, #wallet-resolution, #trust-evaluation; ERC-8004 (EIP-8004) text
and its deployed registries.
"""

import re
from dataclasses import dataclass
from typing import Literal

from assay.common.addresses import decode as from_base58
from assay.common.errors import InvalidRequest, Problem, SourceAway

Family = Literal["evm", "solana"]
"""Families of chains with a reader in `registries/families`."""


_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")

PUBLIC_KEY_BYTES = 32
_GENESIS_CHARS = 32
"""Characters of the genesis hash in a CAIP-2 name. Source: the Solana namespace of ChainAgnostic
CAIPs."""


class ChainUnavailable(SourceAway):
    """No endpoint of the chain gave a credible answer."""

    code = "chain_unavailable"


@dataclass(frozen=True, slots=True)
class Network:
    """A chain: its registries and its endpoints."""

    slug: str
    """Its name in requests and responses: `?chain=`, `x-chain`, `chain.name`."""
    name: str
    chain_id: int
    testnet: bool
    identity_registry: str
    reputation_registry: str
    rpc_urls: tuple[str, ...]
    source: str
    """The source of this row's values."""
    explorer: str | None = None
    multicall3: bool = True
    start_block: int | None = None
    """The block the identity registry was deployed in, if known."""
    family: Family = "evm"
    cluster: str = ""
    """Solana: `mainnet-beta` or `devnet`."""
    genesis: str = ""
    """Solana: the hash of the first block, which identifies a cluster."""
    index_urls: tuple[str, ...] = ()
    """Solana: indexers of the registry, in the order of use."""

    @property
    def caip2(self) -> str:
        """Return the CAIP-2 name, such as `eip155:8453`."""
        if self.family == "solana":
            return f"solana:{self.genesis[:_GENESIS_CHARS]}"
        return f"eip155:{self.chain_id}"

    @property
    def agent_registry(self) -> str:
        """Return the registry as in registration files: `eip155:{chainId}:{identityRegistry}`."""
        return f"{self.caip2}:{self.identity_registry}"


@dataclass(frozen=True, slots=True)
class Account:
    """What a chain shows of an address now; None for unknown values."""

    transactions: int | None
    """Transactions sent; for a contract, contracts it created."""
    is_contract: bool | None
    balance: int | None
    """In the chain's own coin, in its smallest unit."""
    since_days: int | None = None
    """The most days ago, of a few days examined, on which it had already sent a transaction."""


def is_public_key(text: str) -> bool:
    """Return whether `text` is 32 bytes in base 58, as Solana writes keys and addresses."""
    decoded = from_base58(text)
    return decoded is not None and len(decoded) == PUBLIC_KEY_BYTES


def parse_wallet(network: Network, text: str, field_name: str) -> str:
    """Return an address of this network in canonical form; raises `InvalidRequest`."""
    if network.family == "evm":
        return parse_address(text, field_name)
    if is_public_key(text):
        return text
    message = f"{field_name} must be a base-58 public key of 32 bytes"
    raise InvalidRequest(message, details=[Problem(("path", field_name), message)])


def is_address(text: str) -> bool:
    """Return whether `text` is `0x` and 40 hex digits, in any case."""
    return _ADDRESS.fullmatch(text) is not None


def parse_address(text: str, field_name: str) -> str:
    """Return an EVM address in lower case; raises `InvalidRequest` naming `field_name`."""
    if is_address(text):
        return text.lower()
    message = f"{field_name} must be 0x followed by 40 hexadecimal digits"
    raise InvalidRequest(message, details=[Problem(("path", field_name), message)])
