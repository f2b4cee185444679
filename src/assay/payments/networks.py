"""Where payments are taken: one row a network, each with its source."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from assay.payments.model import Asset, PaymentNetwork

FINAL_ON_BASE = 600
"""Blocks of two seconds: twenty minutes, after which Ethereum has finalised Base's batch. Tempo's
blocks are final when they are made. Source: docs.base.org, "Transaction finality"; docs.tempo.xyz,
"Performance"."""

ROWS: tuple[PaymentNetwork, ...] = (
    PaymentNetwork(
        id="eip155:8453",
        protocol="x402",
        chain_id=8453,
        asset=Asset("0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", "USD Coin", "2"),
        rpc_urls=("https://mainnet.base.org", "https://base-rpc.publicnode.com"),
        testnet=False,
        source="spec 2.17; Circle's USDC on Base; facts, payments 1.1",
        short_name="base",
        final_blocks=FINAL_ON_BASE,
    ),
    PaymentNetwork(
        id="eip155:84532",
        protocol="x402",
        chain_id=84532,
        asset=Asset("0x036cbd53842c5426634e7929541ec2318f3dcf7e", "USDC", "2"),
        rpc_urls=("https://sepolia.base.org", "https://base-sepolia-rpc.publicnode.com"),
        testnet=True,
        source="spec 2.17; Circle's USDC on Base Sepolia; facts, payments 1.1",
        short_name="base-sepolia",
        final_blocks=FINAL_ON_BASE,
    ),
    PaymentNetwork(
        id="tempo:4217",
        protocol="mpp",
        chain_id=4217,
        asset=Asset("0x20c000000000000000000000b9537d11c60e8b50"),
        rpc_urls=("https://rpc.tempo.xyz",),
        testnet=False,
        source="spec 2.17; USDC.e of Tempo's token list; facts, payments 4.4",
    ),
    PaymentNetwork(
        id="tempo:42431",
        protocol="mpp",
        chain_id=42431,
        asset=Asset("0x20c0000000000000000000000000000000000000"),
        rpc_urls=("https://rpc.moderato.tempo.xyz",),
        testnet=True,
        source="spec 2.17; pathUSD of Moderato; facts, payments 4.4",
    ),
)

DEFAULTS: Mapping[str, str] = MappingProxyType({"x402": "eip155:8453", "mpp": "tempo:4217"})
"""The network of a config that names none: the protocol's main one."""


def payment_networks(
    rpc_urls: Mapping[str, tuple[str, ...]], confirmations: Mapping[str, int] | None = None
) -> Mapping[str, PaymentNetwork]:
    """Every network by its id, with configured endpoints and confirmations where there are some.

    Raises `ValueError` naming an id that is none of ours.
    """
    known = {row.id: row for row in ROWS}
    for network_id in (*rpc_urls, *(confirmations or {})):
        if network_id not in known:
            raise ValueError(f"no payment network is called {network_id}: {', '.join(known)}")
    for network_id, urls in rpc_urls.items():
        known[network_id] = replace(known[network_id], rpc_urls=tuple(urls))
    for network_id, blocks in (confirmations or {}).items():
        known[network_id] = replace(known[network_id], confirmations=blocks)
    return MappingProxyType(known)
