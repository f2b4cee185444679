"""An unannounced visit looks like a stock client to the agent: its headers, its TLS, its version.

Order, timing and content differ, and are measured: `bench/unannounced.py`.
"""

import random
from pathlib import Path

import pytest
from bench.unannounced import Ground, bought, features, visited

pytestmark = pytest.mark.slow

CHANCE = 7


@pytest.mark.parametrize("kind", ["a2a", "mcp", "http"])
@pytest.mark.parametrize("group", ["headers", "tls", "version"])
async def test_nothing_an_unannounced_visit_sends_is_spelled_otherwise_than_by_stock_clients(
    kind: str, group: str, tmp_path: Path
) -> None:
    ground = Ground(tmp_path, ())
    try:
        ours = await visited(ground, kind, random.Random(CHANCE))
        customer = await bought(ground, kind, random.Random(CHANCE), calls=3)
    finally:
        await ground.http.aclose()
    assert ours.requests
    seen, known = set(features(ours, group)), set(features(customer, group))
    assert seen
    assert seen <= known
