"""Program-derived addresses of the registry's accounts.

Source: solana-registry.md#derived-addresses.
"""

from functools import lru_cache

from assay.chains.solana.clusters import PROGRAMS


@lru_cache(maxsize=4096)
def agent_address(cluster: str, asset: str) -> str:
    """Return the AgentAccount of an asset."""
    return _derived(PROGRAMS[cluster].registry, b"agent", asset)


@lru_cache(maxsize=4096)
def atom_address(cluster: str, asset: str) -> str:
    """Return the AtomStats of an asset, whether the account exists or not."""
    return _derived(PROGRAMS[cluster].atom, b"atom_stats", asset)


@lru_cache(maxsize=8)
def atom_config_address(cluster: str) -> str:
    """Return the ATOM engine's configuration."""
    return _derived(PROGRAMS[cluster].atom, b"atom_config")


@lru_cache(maxsize=8)
def cpi_authority_address(cluster: str) -> str:
    """Return the authority with which the registry calls the ATOM engine."""
    return _derived(PROGRAMS[cluster].registry, b"atom_cpi_authority")


def _derived(program: str, seed: bytes, asset: str | None = None) -> str:
    from solders.pubkey import Pubkey  # noqa: PLC0415 - 25 ms and 14 MiB that only Solana needs

    seeds = [seed] if asset is None else [seed, bytes(Pubkey.from_string(asset))]
    return str(Pubkey.find_program_address(seeds, Pubkey.from_string(program))[0])
