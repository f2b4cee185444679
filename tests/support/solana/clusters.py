"""The two public clusters: the ids of their programs and the addresses derived from them."""

import hashlib
from dataclasses import dataclass

from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.system_program import ID as SYSTEM_PROGRAM

COMPUTE_BUDGET = Pubkey.from_string("ComputeBudget111111111111111111111111111111")
CORE = Pubkey.from_string("CoREENxT6tW1HoK8ypY1SxRMZTcVPm7R94rH4PZNhX7d")
"""Metaplex Core, whose assets say who owns an agent."""

__all__ = ["COMPUTE_BUDGET", "CORE", "DEVNET", "MAINNET", "SYSTEM_PROGRAM", "Cluster", "keypair"]


@dataclass(frozen=True)
class Cluster:
    name: str
    registry: Pubkey
    atom: Pubkey
    genesis: str

    def root_config(self) -> Pubkey:
        return derived(self.registry, b"root_config")[0]

    def registry_config(self, collection: Pubkey) -> Pubkey:
        return derived(self.registry, b"registry_config", bytes(collection))[0]

    def agent(self, asset: Pubkey) -> tuple[Pubkey, int]:
        return derived(self.registry, b"agent", bytes(asset))

    def metadata(self, asset: Pubkey, key: str) -> tuple[Pubkey, int]:
        digest = hashlib.sha256(key.encode()).digest()[:16]
        return derived(self.registry, b"agent_meta", bytes(asset), digest)

    def atom_authority(self) -> Pubkey:
        """The registry's signature in its calls of the ATOM engine."""
        return derived(self.registry, b"atom_cpi_authority")[0]

    def atom_config(self) -> tuple[Pubkey, int]:
        return derived(self.atom, b"atom_config")

    def atom_stats(self, asset: Pubkey) -> tuple[Pubkey, int]:
        return derived(self.atom, b"atom_stats", bytes(asset))


def derived(program: Pubkey, *seeds: bytes) -> tuple[Pubkey, int]:
    return Pubkey.find_program_address(list(seeds), program)


def keypair(label: str) -> Keypair:
    """Always the same one for a label; it holds nothing anywhere."""
    return Keypair.from_seed(hashlib.sha256(f"assay-tests:{label}".encode()).digest())


MAINNET = Cluster(
    "mainnet-beta",
    Pubkey.from_string("8oo4dC4JvBLwy5tGgiH3WwK4B9PWxL9Z4XjA2jzkQMbQ"),
    Pubkey.from_string("AToMw53aiPQ8j7iHVb4fGt6nzUNxUhcPc3tbPBZuzVVb"),
    "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d",
)
DEVNET = Cluster(
    "devnet",
    Pubkey.from_string("8oo4J9tBB3Hna1jRQ3rWvJjojqM5DYTDJo5cejUuJy3C"),
    Pubkey.from_string("AToMufS4QD6hEXvcvBDg9m1AHeCLpmZQsyfYa5h9MwAF"),
    "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG",
)
