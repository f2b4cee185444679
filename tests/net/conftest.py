"""A process that sends on egress budgets, and its clock."""

from collections.abc import AsyncIterator

import pytest

from assay.db.engine import Database
from tests.support.egress_process import Process
from tests.support.fakes.clock import FrozenClock


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def one(database: Database, clock: FrozenClock) -> AsyncIterator[Process]:
    made = Process(database, clock)
    yield made
    await made.http.aclose()
