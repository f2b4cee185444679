"""The networks on which payments are taken, and the addresses that may be paid.

Each network is one row with its source. It also checks whether a network's nodes answer
(`payments.settling_watch.NodeReader`). Money that is sent to a wrong address is gone.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeVar

from assay.chains.model import Network
from assay.chains.rpc import Rpc
from assay.common.addresses import keccak256
from assay.payments.model import PaymentAsset, PaymentNetwork, ProtocolName

Value = TypeVar("Value")

FINAL_ON_BASE = 600
"""Blocks of two seconds: twenty minutes, after which Ethereum has finalised Base's batch. Tempo's
blocks are final when they are made. Source: docs.base.org, "Transaction finality"; docs.tempo.xyz,
"Performance"."""

ROWS: tuple[PaymentNetwork, ...] = (
    PaymentNetwork(
        id="eip155:8453",
        protocol="x402",
        chain_id=8453,
        asset=PaymentAsset("0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", "USD Coin", "2"),
        rpc_urls=("https://mainnet.base.org", "https://base-rpc.publicnode.com"),
        testnet=False,
        source="interface.md#enumerated-values; x402.md#assets",
        short_name="base",
        final_blocks=FINAL_ON_BASE,
    ),
    PaymentNetwork(
        id="eip155:84532",
        protocol="x402",
        chain_id=84532,
        asset=PaymentAsset("0x036cbd53842c5426634e7929541ec2318f3dcf7e", "USDC", "2"),
        rpc_urls=("https://sepolia.base.org", "https://base-sepolia-rpc.publicnode.com"),
        testnet=True,
        source="interface.md#enumerated-values; x402.md#assets",
        short_name="base-sepolia",
        final_blocks=FINAL_ON_BASE,
    ),
    PaymentNetwork(
        id="tempo:4217",
        protocol="mpp",
        chain_id=4217,
        asset=PaymentAsset("0x20c000000000000000000000b9537d11c60e8b50"),
        rpc_urls=("https://rpc.tempo.xyz",),
        testnet=False,
        source="interface.md#enumerated-values; mpp.md#tempo-constants (USDC.e)",
        short_name="tempo",
    ),
    PaymentNetwork(
        id="tempo:42431",
        protocol="mpp",
        chain_id=42431,
        asset=PaymentAsset("0x20c0000000000000000000000000000000000000"),
        rpc_urls=("https://rpc.moderato.tempo.xyz",),
        testnet=True,
        source="interface.md#enumerated-values; mpp.md#tempo-constants (pathUSD)",
        short_name="tempo-moderato",
    ),
)

DEFAULTS: Mapping[str, str] = MappingProxyType({"x402": "eip155:8453", "mpp": "tempo:4217"})
"""The network of a config that names none: the protocol's main one."""


_SPELLINGS: Mapping[str, str] = MappingProxyType(
    {row.short_name: row.id for row in ROWS}
    | {f"eip155:{row.chain_id}": row.id for row in ROWS}
    | {row.id: row.id for row in ROWS}
)

NETWORK_NAMES: tuple[str, ...] = tuple(_SPELLINGS)
"""Every accepted name: `base`, its CAIP-2 identifier, and the id."""


def network_id(name: str) -> str | None:
    """Return the id of a network by any of its names, in any case; None for an unknown one."""
    return _SPELLINGS.get(name.strip().lower())


def accepted_names(protocol: ProtocolName | None = None) -> str:
    """Return the networks of a protocol, or all, as errors list them: `eip155:8453 (base), ...`."""
    fitting = (row for row in ROWS if protocol in {None, row.protocol})
    return ", ".join(f"{row.id} ({row.short_name})" for row in fitting)


def payment_networks(
    rpc_urls: Mapping[str, tuple[str, ...]], confirmations: Mapping[str, int] | None = None
) -> Mapping[str, PaymentNetwork]:
    """Return every network by its id, with configured endpoints and confirmations.

    Raises `ValueError` for an unknown name, and for a network that is named twice.
    """
    known = {row.id: row for row in ROWS}
    for found, urls in by_network(rpc_urls).items():
        known[found] = replace(known[found], rpc_urls=tuple(urls))
    for found, blocks in by_network(confirmations or {}).items():
        known[found] = replace(known[found], confirmations=blocks)
    return MappingProxyType(known)


def by_network(named: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return a setting's values by the networks' ids, whatever names it uses.

    Raises `ValueError` for an unknown name, and for a network that is named twice.
    """
    found: dict[str, Value] = {}
    for name, value in named.items():
        known = network_id(name)
        if known is None:
            raise ValueError(f"no payment network is called {name}: {accepted_names()}")
        if known in found:
            raise ValueError(f"the payment network {known} is named twice")
        found[known] = value
    return found


@dataclass(frozen=True, slots=True)
class PaymentNodes:
    """The nodes of the payment networks, by network id; implements `NodeReader`."""

    rpc: Rpc
    networks: Mapping[str, Network]

    async def check(self, network: str) -> None:
        await self.rpc.request(self.networks[network], "eth_blockNumber", ())


_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}")
_LOWEST: Final = 0x10000
"""Below it are the zero address, precompiles and `0x..dEaD`, whose keys nobody has."""

_BURNT: Final = frozenset(
    {
        "0xdead000000000000000042069420694206942069",
        "0xdeaddeaddeaddeaddeaddeaddeaddeaddeaddead",
        "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
        "0xffffffffffffffffffffffffffffffffffffffff",
    }
)
"""Addresses where tokens are sent to be lost, and the one for ether. Source: labels of
Etherscan."""


def payee_problem(address: str, assets: Collection[str] = ()) -> str | None:
    """Return what is wrong with an address that is to be paid, or None.

    `assets` are the lower-case contracts of the assets that it may be paid in. An address in one
    case has no checksum; one in mixed case must have the right one. Source: EIP-55.
    """
    if not _ADDRESS.fullmatch(address):
        return "must be 0x and 40 hexadecimal digits"
    lower = address.lower()
    if int(address, 16) < _LOWEST or lower in _BURNT:
        return "is an address that nobody has the key of: what it is paid is lost"
    if lower in assets:
        return "is the contract of the asset itself: what it is paid is lost"
    digits = address[2:]
    if digits not in {digits.lower(), digits.upper()} and address != checksummed(address):
        return "has a wrong checksum (EIP-55): a digit of it is mistyped"
    return None


def checksummed(address: str) -> str:
    """Return the address as EIP-55 spells it."""
    digits = address[2:].lower()
    digest = keccak256(digits.encode()).hex()
    upper = "89abcdef"
    return "0x" + "".join(
        digit.upper() if place in upper else digit
        for digit, place in zip(digits, digest, strict=False)
    )
