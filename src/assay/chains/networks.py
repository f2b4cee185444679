"""Every chain with ERC-8004 registries, one row each (interface.md#enumerated-values; EIP-8004).

Registry addresses and the list of chains: erc-8004/erc-8004-contracts, commit b9e466c (2026-08-15),
README and scripts/addresses.ts. RPC endpoints: the source named in the row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from assay.chains.model import Network
from assay.chains.overrides import overridden
from assay.chains.solana.clusters import CLUSTERS
from assay.common.errors import InvalidRequest, Problem

MAINNET_REGISTRIES = (
    "0x8004a169fb4a3325136eb29fa0ceb6d2e539a432",
    "0x8004baa17c55a88189ae136b182e5fda19de9b63",
)
"""Identity and reputation registry, at one address on every mainnet.
Source: erc8004.md#addresses."""

TESTNET_REGISTRIES = (
    "0x8004a818bfb912233c491871b3d84c89a494bd9e",
    "0x8004b663056a597dffe9eccc1965a193b7388713",
)
"""The same on every testnet. Source: erc8004.md#addresses."""

DEFAULT_CHAIN = "ethereum"
"""Source: interface.md#operations."""

KNOWN_SHOWN = 6
"""Chains named in a refusal; GET /operator/health lists them all."""


def _row(  # noqa: PLR0913 - a table's columns
    slug: str,
    name: str,
    chain_id: int,
    rpc_urls: tuple[str, ...],
    source: str,
    explorer: str | None = None,
    *,
    testnet: bool = False,
    multicall3: bool = True,
    start_block: int | None = None,
) -> Network:
    identity, reputation = TESTNET_REGISTRIES if testnet else MAINNET_REGISTRIES
    return Network(
        slug=slug,
        name=name,
        chain_id=chain_id,
        testnet=testnet,
        identity_registry=identity,
        reputation_registry=reputation,
        rpc_urls=rpc_urls,
        source=source,
        explorer=explorer,
        multicall3=multicall3,
        start_block=start_block,
    )


ROWS: tuple[Network, ...] = (
    _row(
        "ethereum",
        "Ethereum Mainnet",
        1,
        ("https://ethereum.reth.rs/rpc", "https://ethereum-rpc.publicnode.com"),
        "viem@2.57.20; unverified",
        "https://etherscan.io",
        start_block=24339924,
    ),
    _row(
        "ethereum-sepolia",
        "Ethereum Sepolia",
        11155111,
        ("https://11155111.rpc.thirdweb.com", "https://ethereum-sepolia-rpc.publicnode.com"),
        "viem@2.57.20; unverified",
        "https://sepolia.etherscan.io",
        testnet=True,
        start_block=9980000,
    ),
    _row(
        "base",
        "Base Mainnet",
        8453,
        ("https://mainnet.base.org", "https://base-rpc.publicnode.com"),
        "erc-8004-contracts hardhat.config.ts; unverified",
        "https://basescan.org",
        start_block=41663799,
    ),
    _row(
        "base-sepolia",
        "Base Sepolia",
        84532,
        ("https://sepolia.base.org", "https://base-sepolia-rpc.publicnode.com"),
        "erc-8004-contracts hardhat.config.ts; unverified",
        "https://sepolia.basescan.org",
        testnet=True,
        start_block=37174254,
    ),
    _row(
        "abstract",
        "Abstract Mainnet",
        2741,
        ("https://api.mainnet.abs.xyz",),
        "erc-8004-contracts hardhat.config.ts",
        "https://explorer.mainnet.abs.xyz",
    ),
    _row(
        "abstract-testnet",
        "Abstract Testnet",
        11124,
        ("https://api.testnet.abs.xyz",),
        "erc-8004-contracts hardhat.config.ts",
        "https://explorer.testnet.abs.xyz",
        testnet=True,
    ),
    _row(
        "arbitrum",
        "Arbitrum Mainnet",
        42161,
        ("https://arb1.arbitrum.io/rpc", "https://arbitrum-one-rpc.publicnode.com"),
        "erc-8004-contracts hardhat.config.ts; unverified",
        "https://arbiscan.io",
    ),
    _row(
        "arbitrum-sepolia",
        "Arbitrum Testnet",
        421614,
        ("https://sepolia-rollup.arbitrum.io/rpc", "https://arbitrum-sepolia-rpc.publicnode.com"),
        "erc-8004-contracts hardhat.config.ts; unverified",
        "https://sepolia.arbiscan.io",
        testnet=True,
    ),
    _row(
        "avalanche",
        "Avalanche Mainnet",
        43114,
        ("https://api.avax.network/ext/bc/C/rpc", "https://avalanche-c-chain-rpc.publicnode.com"),
        "erc-8004-contracts hardhat.config.ts; unverified",
        "https://snowtrace.io",
    ),
    _row(
        "avalanche-fuji",
        "Avalanche Testnet",
        43113,
        (
            "https://api.avax-test.network/ext/bc/C/rpc",
            "https://avalanche-fuji-c-chain-rpc.publicnode.com",
        ),
        "erc-8004-contracts hardhat.config.ts; unverified",
        "https://testnet.snowtrace.io",
        testnet=True,
    ),
    _row(
        "bsc",
        "BSC Mainnet",
        56,
        (
            "https://bsc-dataseed.binance.org",
            "https://56.rpc.thirdweb.com",
            "https://bsc-rpc.publicnode.com",
        ),
        "erc-8004-contracts hardhat.config.ts; viem@2.57.20; unverified",
        "https://bscscan.com",
        start_block=79031671,
    ),
    _row(
        "bsc-testnet",
        "BSC Testnet",
        97,
        (
            "https://bsc-testnet-rpc.publicnode.com",
            "https://data-seed-prebsc-1-s1.bnbchain.org:8545",
        ),
        "erc-8004-contracts hardhat.config.ts; viem@2.57.20",
        "https://testnet.bscscan.com",
        testnet=True,
    ),
    _row(
        "celo",
        "Celo Mainnet",
        42220,
        ("https://forno.celo.org",),
        "erc-8004-contracts hardhat.config.ts",
        "https://celoscan.io",
    ),
    _row(
        "celo-sepolia",
        "Celo Testnet",
        11142220,
        ("https://forno.celo-sepolia.celo-testnet.org",),
        "erc-8004-contracts hardhat.config.ts",
        "https://sepolia.celoscan.io",
        testnet=True,
    ),
    _row(
        "gnosis",
        "Gnosis Mainnet",
        100,
        ("https://rpc.gnosischain.com", "https://gnosis-rpc.publicnode.com"),
        "erc-8004-contracts hardhat.config.ts; unverified",
        "https://gnosisscan.io",
    ),
    _row(
        "goat",
        "GOAT Network Mainnet",
        2345,
        ("https://rpc.goat.network",),
        "erc-8004-contracts hardhat.config.ts",
        "https://explorer.goat.network",
    ),
    _row(
        "linea",
        "Linea Mainnet",
        59144,
        ("https://rpc.linea.build", "https://linea-rpc.publicnode.com"),
        "erc-8004-contracts hardhat.config.ts; unverified",
        "https://lineascan.build",
    ),
    _row(
        "linea-sepolia",
        "Linea Sepolia",
        59141,
        ("https://rpc.sepolia.linea.build",),
        "erc-8004-contracts hardhat.config.ts",
        "https://sepolia.lineascan.build",
        testnet=True,
    ),
    _row(
        "mantle",
        "Mantle Mainnet",
        5000,
        ("https://rpc.mantle.xyz",),
        "erc-8004-contracts hardhat.config.ts",
        "https://mantlescan.xyz",
    ),
    _row(
        "mantle-sepolia",
        "Mantle Testnet",
        5003,
        ("https://rpc.sepolia.mantle.xyz",),
        "erc-8004-contracts hardhat.config.ts",
        "https://sepolia.mantlescan.xyz",
        testnet=True,
    ),
    _row(
        "megaeth",
        "MegaETH Mainnet",
        4326,
        ("https://mainnet.megaeth.com/rpc", "https://alpha.megaeth.com/rpc"),
        "viem@2.57.20; erc-8004-contracts hardhat.config.ts",
        "https://megaeth.blockscout.com",
    ),
    _row(
        "megaeth-testnet",
        "MegaETH Testnet",
        6343,
        ("https://carrot.megaeth.com/rpc", "https://timothy.megaeth.com/rpc"),
        "viem@2.57.20; erc-8004-contracts hardhat.config.ts",
        "https://megaeth-testnet-v2.blockscout.com",
        testnet=True,
    ),
    _row(
        "metis",
        "Metis Mainnet",
        1088,
        (
            "https://andromeda.metis.io/?owner=1088",
            "https://metis.rpc.hypersync.xyz",
            "https://metis-pokt.nodies.app",
        ),
        "erc-8004-contracts hardhat.config.ts; viem@2.57.20",
        "https://andromeda-explorer.metis.io",
    ),
    _row(
        "metis-sepolia",
        "Metis Sepolia",
        59902,
        (
            "https://sepolia.metisdevops.link",
            "https://metis-sepolia-rpc.publicnode.com",
            "https://metis-sepolia.gateway.tenderly.co",
        ),
        "erc-8004-contracts hardhat.config.ts; viem@2.57.20",
        "https://sepolia-explorer.metisdevops.link",
        testnet=True,
    ),
    _row(
        "monad",
        "Monad Mainnet",
        143,
        ("https://rpc.monad.xyz", "https://rpc1.monad.xyz"),
        "erc-8004-contracts hardhat.config.ts; viem@2.57.20",
        "https://monadscan.com",
        start_block=52952898,
    ),
    _row(
        "monad-testnet",
        "Monad Testnet",
        10143,
        ("https://testnet-rpc.monad.xyz",),
        "erc-8004-contracts hardhat.config.ts",
        "https://monad-testnet.socialscan.io",
        testnet=True,
    ),
    _row(
        "optimism",
        "Optimism Mainnet",
        10,
        ("https://mainnet.optimism.io", "https://optimism-rpc.publicnode.com"),
        "erc-8004-contracts hardhat.config.ts; unverified",
        "https://explorer.optimism.io",
    ),
    _row(
        "optimism-sepolia",
        "Optimism Testnet",
        11155420,
        ("https://sepolia.optimism.io", "https://optimism-sepolia-rpc.publicnode.com"),
        "erc-8004-contracts hardhat.config.ts; unverified",
        "https://testnet-explorer.optimism.io",
        testnet=True,
    ),
    _row(
        "polygon",
        "Polygon Mainnet",
        137,
        (
            "https://polygon-rpc.com",
            "https://polygon.drpc.org",
            "https://polygon-bor-rpc.publicnode.com",
        ),
        "erc-8004-contracts hardhat.config.ts; viem@2.57.20; unverified",
        "https://polygonscan.com",
        start_block=82458528,
    ),
    _row(
        "polygon-amoy",
        "Polygon Amoy",
        80002,
        (
            "https://rpc-amoy.polygon.technology",
            "https://polygon-amoy.drpc.org",
            "https://polygon-amoy-bor-rpc.publicnode.com",
        ),
        "erc-8004-contracts hardhat.config.ts; viem@2.57.20; unverified",
        "https://amoy.polygonscan.com",
        testnet=True,
    ),
    _row(
        "robinhood",
        "Robinhood Chain Mainnet",
        4663,
        ("https://rpc.mainnet.chain.robinhood.com", "https://rpc.ordofi.network"),
        "viem@2.57.20",
        "https://robinhoodchain.blockscout.com",
    ),
    _row(
        "robinhood-testnet",
        "Robinhood Chain Testnet",
        46630,
        ("https://rpc.testnet.chain.robinhood.com",),
        "viem@2.57.20",
        "https://explorer.testnet.chain.robinhood.com",
        testnet=True,
    ),
    _row(
        "scroll",
        "Scroll Mainnet",
        534352,
        ("https://rpc.scroll.io", "https://scroll-rpc.publicnode.com"),
        "erc-8004-contracts hardhat.config.ts; unverified",
        "https://scrollscan.com",
    ),
    _row(
        "scroll-sepolia",
        "Scroll Testnet",
        534351,
        ("https://sepolia-rpc.scroll.io",),
        "erc-8004-contracts hardhat.config.ts",
        "https://sepolia.scrollscan.com",
        testnet=True,
    ),
    _row(
        "skale-base",
        "SKALE Base Mainnet",
        1187947933,
        ("https://skale-base.skalenodes.com/v1/base",),
        "erc-8004-contracts hardhat.config.ts",
        "https://skale-base-explorer.skalenodes.com",
        multicall3=False,
    ),
    _row(
        "skale-base-sepolia",
        "SKALE Base Sepolia",
        324705682,
        ("https://base-sepolia-testnet.skalenodes.com/v1/jubilant-horrible-ancha",),
        "erc-8004-contracts hardhat.config.ts",
        "https://base-sepolia-testnet-explorer.skalenodes.com",
        testnet=True,
        multicall3=False,
    ),
    _row(
        "soneium",
        "Soneium Mainnet",
        1868,
        ("https://rpc.soneium.org",),
        "erc-8004-contracts hardhat.config.ts",
        "https://soneium.blockscout.com",
    ),
    _row(
        "soneium-minato",
        "Soneium Minato",
        1946,
        ("https://rpc.minato.soneium.org",),
        "erc-8004-contracts hardhat.config.ts",
        "https://soneium-minato.blockscout.com",
        testnet=True,
    ),
    _row(
        "taiko",
        "Taiko Mainnet",
        167000,
        ("https://rpc.mainnet.taiko.xyz",),
        "erc-8004-contracts hardhat.config.ts",
        "https://taikoscan.io",
    ),
    _row(
        "taiko-hoodi",
        "Taiko Hoodi",
        167013,
        ("https://rpc.hoodi.taiko.xyz",),
        "erc-8004-contracts hardhat.config.ts",
        "https://hoodi.taikoscan.io",
        testnet=True,
    ),
    _row(
        "xlayer",
        "XLayer Mainnet",
        196,
        ("https://rpc.xlayer.tech", "https://xlayerrpc.okx.com"),
        "erc-8004-contracts hardhat.config.ts; viem@2.57.20",
        "https://www.oklink.com/xlayer",
    ),
    _row(
        "xlayer-testnet",
        "XLayer Testnet",
        1952,
        ("https://testrpc.xlayer.tech", "https://xlayertestrpc.okx.com"),
        "erc-8004-contracts hardhat.config.ts; viem@2.57.20",
        "https://www.oklink.com/xlayer-test",
        testnet=True,
    ),
    _row(
        "hedera-testnet",
        "Hedera Testnet",
        296,
        ("https://testnet.hashio.io/api",),
        "erc-8004-contracts hardhat.config.ts",
        "https://hashscan.io/testnet",
        testnet=True,
        multicall3=False,
    ),
    _row(
        "arc-testnet",
        "Arc Testnet",
        5042002,
        (
            "https://rpc.testnet.arc.network",
            "https://rpc.testnet.arc.io",
            "https://rpc.blockdaemon.testnet.arc.io",
            "https://rpc.drpc.testnet.arc.io",
        ),
        "erc-8004-contracts hardhat.config.ts; viem@2.57.20",
        "https://testnet.arcscan.app",
        testnet=True,
    ),
    _row(
        "billions",
        "Billions Mainnet",
        45056,
        ("https://rpc-mainnet.billions.network", "https://billions-rpc.eu-north-2.gateway.fm"),
        "ethereum-lists/other public config",
        "https://explorer.billions.network",
        multicall3=False,
    ),
    _row(
        "billions-testnet",
        "Billions Testnet",
        6913,
        ("https://billions-testnet-rpc.eu-north-2.gateway.fm",),
        "ethereum-lists/other public config",
        "https://explorer-testnet.billions.network",
        testnet=True,
        multicall3=False,
    ),
    _row(
        "injective",
        "Injective Mainnet",
        1776,
        ("https://sentry.evm-rpc.injective.network",),
        "viem@2.57.20",
        "https://blockscout.injective.network",
        multicall3=False,
    ),
    _row(
        "0g",
        "0G Mainnet",
        16661,
        ("https://evmrpc.0g.ai",),
        "viem@2.57.20",
        "https://chainscan.0g.ai",
        multicall3=False,
    ),
    _row(
        "injective-testnet",
        "Injective Testnet",
        1439,
        ("https://k8s.testnet.json-rpc.injective.network",),
        "viem@2.57.20",
        "https://testnet.blockscout.injective.network",
        testnet=True,
        multicall3=False,
    ),
    _row(
        "0g-galileo",
        "0G Galileo Testnet",
        16602,
        ("https://evmrpc-testnet.0g.ai",),
        "viem@2.57.20",
        "https://chainscan-galileo.0g.ai",
        testnet=True,
        multicall3=False,
    ),
)


@dataclass(frozen=True, slots=True)
class Networks:
    """The chains a service knows, by slug."""

    rows: Mapping[str, Network]
    default: Network

    @classmethod
    def built_in(cls) -> "Networks":
        """Return the chains of this file."""
        rows = {row.slug: row for row in (*ROWS, CLUSTERS["mainnet-beta"])}
        return cls(MappingProxyType(rows), rows[DEFAULT_CHAIN])

    def with_solana(self, cluster: Network) -> "Networks":
        """Return these chains with another row for Solana."""
        default = cluster if self.default.slug == cluster.slug else self.default
        return Networks(MappingProxyType({**self.rows, cluster.slug: cluster}), default)

    @property
    def slugs(self) -> tuple[str, ...]:
        """Return every slug, the default first."""
        others = (slug for slug in self.rows if slug != self.default.slug)
        return (self.default.slug, *others)

    def by_slug(self, slug: str, where: str = "query") -> Network:
        """Return the chain of a request, by its slug, CAIP-2 identifier or EVM chain id.

        Raises `InvalidRequest` for an unknown one; `where` names its place in the request.
        """
        network = self.rows.get(slug.lower()) or self._by_caip2(slug, f"eip155:{slug}")
        if network is None:
            some = ", ".join(self.slugs[:KNOWN_SHOWN])
            message = (
                f"unknown chain; some that are known: {some}; all: GET /operator/health;"
                " or a chain id such as 8453 or eip155:8453"
            )
            raise InvalidRequest(message, details=[Problem((where, "chain"), message)])
        return network

    def _by_caip2(self, *identifiers: str) -> Network | None:
        return next((row for row in self.rows.values() if row.caip2 in identifiers), None)

    def with_overrides(
        self, overrides: Mapping[str, Mapping[str, object]], default_chain: str
    ) -> "Networks":
        """Return these chains with fields replaced, rows added, and another default.

        A known chain may also be named by its CAIP-2 identifier. Raises `ValueError` with a plain
        sentence for any invalid value.
        """
        rows = dict(self.rows)
        for name, values in overrides.items():
            known = self._by_caip2(name)
            slug = name if known is None else known.slug
            if slug in rows and rows[slug].family == "solana":
                raise ValueError(f"the chain {slug!r} is set by ASSAY_SOLANA_*, not in a table")
            rows[slug] = overridden(slug, rows.get(slug), values)
        made = Networks(MappingProxyType(rows), self.default)
        default = rows.get(default_chain) or made._by_caip2(default_chain)
        if default is None:
            raise ValueError(f"the default chain {default_chain!r} is not a known chain")
        taken: dict[str, str] = {}
        for row in rows.values():
            if taken.setdefault(row.caip2, row.slug) != row.slug:
                both = f"{taken[row.caip2]!r} and {row.slug!r}"
                raise ValueError(f"the chains {both} have the same chain_id")
        return replace(made, default=default)
