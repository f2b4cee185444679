"""Fixtures every test may ask for. Heavy things start when first asked for."""

import gc
import os
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import settings

# A busy machine is no fault of the code; and what CI finds, a developer must find again.
settings.register_profile("assay", deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("assay"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "assay")  # noqa: TID251

for _name in [n for n in os.environ if n.startswith("ASSAY_")]:  # noqa: TID251
    del os.environ[_name]  # noqa: TID251 - a developer's own settings are no part of a test


def _running(module: str, name: str) -> Iterator[Any]:
    """What a service's module starts; only tests that ask for it pay for its imports."""
    with getattr(import_module(f"tests.services.{module}"), name)() as started:
        yield started


@pytest.fixture(scope="session")
def chain() -> Iterator[Any]:
    """A `tests.services.chain.LocalChain`."""
    yield from _running("chain", "local_chain")


@pytest.fixture(scope="session")
def dollar_chain() -> Iterator[Any]:
    """A `tests.services.shop.Dollars`."""
    yield from _running("shop", "dollars_on")


@pytest.fixture(scope="session")
def tempo() -> Iterator[Any]:
    """A `tests.services.tempo.Tempo`."""
    yield from _running("tempo", "running")


@pytest.fixture(scope="session")
def world() -> Iterator[Any]:
    """An `assay_demo.world.World`."""
    yield from _running("world", "live_world")


def pytest_collection_finish() -> None:
    """The collector need not look at twenty thousand tests again and again."""
    gc.collect()
    gc.freeze()
