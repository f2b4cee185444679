"""The simulation's ledger keeps the contract of the SQL ones: their own suite, over it."""

import inspect

import pytest

from tests.payments.ledger import test_ledger_store as contract
from tests.support.fakes.ledger import MemoryLedgerStore

_OF_A_DATABASE = "database"


@pytest.fixture
def ledger() -> MemoryLedgerStore:
    return MemoryLedgerStore(contract.CLOCK)


# Whatever the suite has: a test that is added there holds here too.
for _name, _test in inspect.getmembers(contract, inspect.isfunction):
    if _name.startswith("test_") and _OF_A_DATABASE not in inspect.signature(_test).parameters:
        globals()[_name] = _test
