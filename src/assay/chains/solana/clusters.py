"""The clusters on which the registry is deployed, one row each.

Program ids, genesis hashes and indexers: solana-registry.md#clusters, #indexer (npm 8004-solana
0.8.3, `programs.ts`; 8004-solana `declare_id!`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from assay.chains.model import Network

Cluster = Literal["mainnet-beta", "devnet"]

SLUG = "solana"
CORE_PROGRAM = "CoREENxT6tW1HoK8ypY1SxRMZTcVPm7R94rH4PZNhX7d"
"""Metaplex Core, which holds the assets: at one address on every cluster."""

SYSTEM_PROGRAM = "1" * 32
COMPUTE_BUDGET_PROGRAM = "ComputeBudget111111111111111111111111111111"

_SOURCE = "npm 8004-solana 0.8.3, programs.ts; declare_id! of 8004-solana and 8004-atom"


@dataclass(frozen=True, slots=True)
class Programs:
    """The registry's programs on one cluster."""

    registry: str
    atom: str
    """The engine that derives figures from feedback."""


PROGRAMS: Mapping[str, Programs] = MappingProxyType(
    {
        "mainnet-beta": Programs(
            registry="8oo4dC4JvBLwy5tGgiH3WwK4B9PWxL9Z4XjA2jzkQMbQ",
            atom="AToMw53aiPQ8j7iHVb4fGt6nzUNxUhcPc3tbPBZuzVVb",
        ),
        "devnet": Programs(
            registry="8oo4J9tBB3Hna1jRQ3rWvJjojqM5DYTDJo5cejUuJy3C",
            atom="AToMufS4QD6hEXvcvBDg9m1AHeCLpmZQsyfYa5h9MwAF",
        ),
    }
)


def _row(
    cluster: Cluster, name: str, chain_id: int, genesis: str, rpc: str, indexers: tuple[str, ...]
) -> Network:
    registry = PROGRAMS[cluster].registry
    return Network(
        slug=SLUG,
        name=name,
        chain_id=chain_id,
        testnet=cluster != "mainnet-beta",
        identity_registry=registry,
        reputation_registry=registry,
        rpc_urls=(rpc,),
        source=_SOURCE,
        explorer="https://explorer.solana.com",
        multicall3=False,
        family="solana",
        cluster=cluster,
        genesis=genesis,
        index_urls=indexers,
    )


CLUSTERS: Mapping[str, Network] = MappingProxyType(
    {
        row.cluster: row
        for row in (
            _row(
                "mainnet-beta",
                "Solana Mainnet",
                101,
                "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d",
                "https://api.mainnet-beta.solana.com",
                ("https://8004-indexer-main.qnt.sh", "https://8004-indexer-main2.qnt.sh"),
            ),
            _row(
                "devnet",
                "Solana Devnet",
                103,
                "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG",
                "https://api.devnet.solana.com",
                ("https://8004-indexer-dev.qnt.sh", "https://8004-indexer-dev2.qnt.sh"),
            ),
        )
    }
)
"""Solana has no chain numbers; 101 and 103 are those of its token list, which wallets know."""


def cluster_row(
    cluster: Cluster, rpc_url: str | None = None, index_url: str | None = None
) -> Network:
    """Return a configured cluster, with other addresses, or without an indexer if it is empty."""
    row = CLUSTERS[cluster]
    if rpc_url:
        row = replace(row, rpc_urls=(rpc_url,))
    if index_url is not None:
        row = replace(row, index_urls=(index_url,) if index_url else ())
    return row
