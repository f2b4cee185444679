"""Where the registry keeps what: program-derived addresses. Source: facts, solana 1.2."""

from functools import lru_cache

from assay.chains.solana.clusters import PROGRAMS


@lru_cache(maxsize=4096)
def agent_address(cluster: str, asset: str) -> str:
    """The AgentAccount of an asset."""
    return _derived(PROGRAMS[cluster].registry, b"agent", asset)


@lru_cache(maxsize=4096)
def atom_address(cluster: str, asset: str) -> str:
    """The AtomStats of an asset, whether there are any or not."""
    return _derived(PROGRAMS[cluster].atom, b"atom_stats", asset)


@lru_cache(maxsize=8)
def atom_config_address(cluster: str) -> str:
    """The ATOM engine's configuration."""
    return _derived(PROGRAMS[cluster].atom, b"atom_config")


@lru_cache(maxsize=8)
def cpi_authority_address(cluster: str) -> str:
    """In whose name the registry calls the ATOM engine."""
    return _derived(PROGRAMS[cluster].registry, b"atom_cpi_authority")


def _derived(program: str, seed: bytes, asset: str | None = None) -> str:
    from solders.pubkey import Pubkey  # noqa: PLC0415 - 25 ms and 14 MiB that only Solana needs

    seeds = [seed] if asset is None else [seed, bytes(Pubkey.from_string(asset))]
    return str(Pubkey.find_program_address(seeds, Pubkey.from_string(program))[0])
