"""Fixtures every test may ask for. Heavy things start when first asked for."""

import gc
import os
import sys
from collections.abc import AsyncGenerator, Generator, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# A busy machine is no fault of the code; and what CI finds, a developer must find again.
settings.register_profile("assay", deadline=None, print_blob=True, max_examples=50)
settings.register_profile("ci", settings.get_profile("assay"), derandomize=True, max_examples=100)
gc.disable()  # while tests are collected: they all stay
settings.load_profile("ci" if os.environ.get("CI") else "assay")  # noqa: TID251

# Without bytecode, every worker and every process compiles the tests and the sources anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # noqa: TID251

# The tests' own tools bring it, jsonschema imports it and it builds 38 parsers: 1.5 s that the
# service, which lives without it, does not spend.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

for _name in [n for n in os.environ if n.startswith("ASSAY_")]:  # noqa: TID251
    del os.environ[_name]  # noqa: TID251 - a developer's own settings are no part of a test


def _running(module: str, name: str) -> Iterator[Any]:
    """What a service's module starts; only tests that ask for it pay for its imports."""
    with getattr(import_module(f"tests.support.{module}"), name)() as started:
        yield started


@pytest.fixture(scope="session")
def chain() -> Iterator[Any]:
    """A `tests.support.chain.LocalChain`."""
    yield from _running("chain", "local_chain")


@pytest.fixture(scope="session")
def dollar_chain() -> Iterator[Any]:
    """A `tests.support.shop.Dollars`."""
    yield from _running("shop", "dollars_on")


@pytest.fixture(scope="session")
def tempo() -> Iterator[Any]:
    """A `tests.support.tempo.Tempo`."""
    yield from _running("tempo", "running")


@pytest.fixture(scope="session")
def world() -> Iterator[Any]:
    """An `assay_demo.world.World`."""
    yield from _running("world", "live_world")


@pytest.fixture(scope="session", autouse=True)
def compiled_sql() -> Iterator[None]:
    """Each SQL statement is compiled once, not once a database."""
    with import_module("tests.support.compiled_sql").compiled_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def bare_settings() -> Iterator[None]:
    """An environment that sets nothing is not searched for each of the settings."""
    with import_module("tests.support.bare_settings").read_where_set():
        yield


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[str]:
    """A migrated database of each kind."""
    with import_module("tests.support.databases").migrated(request.param, tmp_path) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of each kind with nothing in it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'assay.db'}"
    return import_module("tests.support.postgres").postgres().new_database()


@pytest.fixture
async def database(database_url: str) -> AsyncGenerator[Any]:
    """A migrated database of each kind, opened: an `assay.db.engine.Database`."""
    opened = await import_module("assay.db.engine").Database.open(database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def service(tmp_path: Path) -> AsyncGenerator[Any]:
    """The service in this process: a `tests.support.live_service.TestService`."""
    async with import_module("tests.support.live_service").start_test_service(
        tmp_path / "data"
    ) as opened:
        yield opened


def pytest_collection_finish() -> None:
    """The collector need not look at twenty thousand tests again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()
