"""What is made of an operator's wrappers is made once, and anew when they change."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from assay.net.egress.url import EgressPolicy
from assay.wrappers.model import WrapperConfig, WrapperNotFound
from assay.wrappers.route_table import OPERATOR_ID_CHARS, REMEMBERED_BYTES, REMEMBERED_S, Routes
from tests.support.fakes.clock import FrozenClock
from tests.wrappers.test_stores_wrappers import config

FREE = replace(config(), auth=None, price=0, fee_rate=Decimal(0))


def _no_secret(_config: WrapperConfig) -> None:
    return None


class Store:
    def __init__(self) -> None:
        self.configs: list[WrapperConfig] = [FREE]
        self.asked = 0

    async def active(self, operator_id: str) -> Sequence[WrapperConfig]:
        del operator_id
        self.asked += 1
        return [replace(one) for one in self.configs]


async def test_wrappers_that_did_not_change_are_not_made_again() -> None:
    """Making a thousand of them with long paths takes a second, of which nobody else has any."""
    clock, store = FrozenClock(datetime(2026, 3, 1, tzinfo=UTC)), Store()
    endpoints = SimpleNamespace(upstream_secret=_no_secret)
    routes = Routes(cast("Any", store), cast("Any", endpoints), EgressPolicy(), clock)
    first = (await routes.find("one", "GET", "/quote")).route
    clock.move(REMEMBERED_S + 1)
    assert (await routes.find("one", "GET", "/quote")).route is first
    routes.doubt()  # something has changed, of another operator perhaps
    assert (await routes.find("one", "GET", "/quote")).route is first
    store.configs = [replace(FREE, fee_rate=Decimal("0.1"))]
    clock.move(REMEMBERED_S + 1)
    changed = (await routes.find("one", "GET", "/quote")).route
    assert changed.config.fee_rate == Decimal("0.1")
    store.configs = []
    clock.move(REMEMBERED_S + 1)
    with pytest.raises(WrapperNotFound):
        await routes.find("one", "GET", "/quote")


async def test_of_an_operator_id_too_long_to_exist_nothing_is_asked_or_remembered() -> None:
    """65,536 of 60 kB each would be 4 GB, and a stranger can send them within his limits."""
    store = Store()
    endpoints = SimpleNamespace(upstream_secret=_no_secret)
    clock = FrozenClock(datetime(2026, 3, 1, tzinfo=UTC))
    routes = Routes(cast("Any", store), cast("Any", endpoints), EgressPolicy(), clock)
    longest, longer = "x" * OPERATOR_ID_CHARS, "x" * (OPERATOR_ID_CHARS + 1)
    assert (await routes.find(longest, "GET", "/quote")).route.config.path == "/quote"
    asked = store.asked
    with pytest.raises(WrapperNotFound):
        await routes.find(longer, "GET", "/quote")
    assert store.asked == asked
    assert routes.find_cached(longer, "GET", "/quote") is None


async def test_wrappers_of_many_operators_are_remembered_up_to_so_many_bytes() -> None:
    clock, store = FrozenClock(datetime(2026, 3, 1, tzinfo=UTC)), Store()
    store.configs = [replace(FREE, description="x" * (REMEMBERED_BYTES // 10))]
    endpoints = SimpleNamespace(upstream_secret=_no_secret)
    routes = Routes(cast("Any", store), cast("Any", endpoints), EgressPolicy(), clock)
    operators = [f"op{number}" for number in range(30)]
    for one in operators:
        await routes.find(one, "GET", "/quote")
    kept = [one for one in operators if routes.find_cached(one, "GET", "/quote") is not None]
    assert kept == operators[-9:]
    assert (await routes.find(operators[0], "GET", "/quote")).route.config.path == "/quote"
