"""Whole lists of an operator's wrappers: few are in memory at once, and none holds anybody up."""

import asyncio
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from assay.common.errors import InvalidRequest
from assay.common.fair_queue import LISTS
from assay.common.keyring import SecretBox
from assay.net.egress.url import EgressPolicy
from assay.payments.networks import payment_networks
from assay.wrappers import matching as match
from assay.wrappers.endpoint_rules import EndpointChange
from assay.wrappers.matching import PatternIndex
from assay.wrappers.model import WrapperConfig
from assay.wrappers.route_table import Routes
from assay.wrappers.service import ENDPOINTS_MAX, ConfigRules, Endpoints, NewEndpoint
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.wrappers import MemoryWrapperStore
from tests.wrappers.test_stores_wrappers import config

AT_ONCE = 40
"""More than of one operator's may wait for a list."""

POLICY = EgressPolicy(allow_private=True, require_https=False)
FREE = replace(config(), auth=None, price=0)


class Whole(list[WrapperConfig]):
    """A list that tells when nobody holds it any more."""


class Store(MemoryWrapperStore):
    """Counts the lists of active wrappers that are held at once, and those that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.held, self.held_most, self.read = 0, 0, 0

    async def active(self, operator_id: str) -> Sequence[WrapperConfig]:
        found = Whole(await super().active(operator_id))
        weakref.finalize(found, self._left)
        self.read += 1
        self.held += 1
        self.held_most = max(self.held_most, self.held)
        await asyncio.sleep(0)
        return found

    def _left(self) -> None:
        self.held -= 1

    def fill(self, count: int) -> None:
        for number in range(count):
            name = f"c{number}"
            self.rows[name] = replace(FREE, id=name, path=f"/{number}", active=True)


def served(store: Store) -> tuple[Endpoints, Routes]:
    rules = ConfigRules(POLICY, payment_networks({}), None, Decimal(1))
    box, clock = SecretBox.from_secrets("k" * 40), FrozenClock()
    endpoints = Endpoints(store, box, rules, clock)
    return endpoints, Routes(store, endpoints, POLICY, clock)


async def all_at_once(ask: Callable[[], Awaitable[object]]) -> None:
    async def one() -> None:
        await ask()

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(one())


async def test_few_wrappers_are_compared_with_all_others_at_once_and_nobody_is_refused() -> None:
    """Each change held a list of its own, of up to 33 MB; a change that is stored is answered."""
    store = Store()
    store.fill(50)
    endpoints, _ = served(store)

    await all_at_once(lambda: endpoints.warnings(store.rows["c7"]))
    assert store.read == AT_ONCE
    assert store.held_most <= LISTS[0]


async def test_few_dry_runs_look_through_all_wrappers_at_once() -> None:
    store = Store()
    store.fill(50)
    endpoints, routes = served(store)
    known = asyncio.Semaphore(LISTS[2])

    async def looked() -> None:
        async with known:
            found = await routes.registered("one", "GET", "/7")
        assert found is not None
        assert found.id == "c7"

    await all_at_once(looked)
    assert store.read == AT_ONCE
    assert store.held_most <= LISTS[0]
    assert endpoints.lists.waiting == 0


async def test_wrappers_are_counted_without_reading_them() -> None:
    store = Store()
    store.fill(ENDPOINTS_MAX)
    store.rows["stopped"] = replace(FREE, id="stopped", path="/stopped", active=False)
    endpoints, _ = served(store)
    asked = NewEndpoint("/another", Decimal(0), "http://127.0.0.1:8999/")
    with pytest.raises(InvalidRequest):
        await endpoints.create("one", asked)
    with pytest.raises(InvalidRequest):
        await endpoints.change("one", "stopped", EndpointChange({}, active=True))
    await endpoints.deactivate("one", "c0")
    await endpoints.create("one", asked)
    assert store.read == 0


async def test_many_wrappers_are_made_ready_to_be_matched_by_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thousand with long paths held up everybody for a third of a second, with their first call
    after each change."""
    turn, of_turns = 0, Counter[tuple[str, int]]()

    def counted(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def one(*args: Any, **named: Any) -> Any:
            of_turns[name, turn] += 1
            return work(*args, **named)

        return one

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(match, "_entry", counted("entry", match._entry))
    monkeypatch.setattr(PatternIndex, "add", counted("add", PatternIndex.add))
    store = Store()
    store.fill(200)
    for name, one in store.rows.items():
        store.rows[name] = replace(one, path=f"{one.path}/{{p}}", price=7)
    _, routes = served(store)
    async with asyncio.TaskGroup() as group:
        counting = group.create_task(others())
        found = await routes.find("one", "GET", "/7/x")
        registered = await routes.registered("one", "GET", "/7/x")
        counting.cancel()
    assert found.route.config == registered
    totals = Counter[str]()
    for (name, _turn), count in of_turns.items():
        totals[name] += count
    assert totals == {"entry": 400, "add": 3 * 400}
    assert max(of_turns.values()) <= 2 * match.STEPS_AT_ONCE
