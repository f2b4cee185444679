"""The seeds that found something once."""

from pathlib import Path

SEEDS = Path(__file__).parent / "seeds" / "found.txt"
"""A seed a line, and after it what it found."""

_GAS = "# Above: worlds without gas accounts"


def kept_seeds() -> list[int]:
    """Oldest first."""
    return _seeds(SEEDS.read_text("utf-8"))


def seeds_without_gas() -> frozenset[int]:
    """Those that were kept before there were gas accounts: their schedules stay as they were."""
    return frozenset(_seeds(SEEDS.read_text("utf-8").partition(_GAS)[0]))


def _seeds(text: str) -> list[int]:
    lines = text.splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]
