"""The node with one rated agent that most of these tests ask."""

from collections.abc import Iterator

import pytest

from tests.support.solana import golden
from tests.support.solana.clusters import MAINNET, keypair
from tests.support.solana.ground import Ground, ground
from tests.support.solana.registry import Registry


@pytest.fixture(name="ground")
def rated_agent() -> Iterator[Ground]:
    registry, wallet = Registry(MAINNET), keypair("its wallet").pubkey()
    atom = golden.atom("five-clients")
    agent = registry.agent("first", wallet=wallet, feedback_count=42, atom=atom)
    with ground(registry, agent) as made:
        yield made
