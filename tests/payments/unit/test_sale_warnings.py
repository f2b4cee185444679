"""What sellers are told is asked for at once: nobody waits for one thing after another."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import pytest

from assay.chains.model import ChainUnavailable
from assay.payments.gas import GasRules
from assay.payments.model import PaymentsUnavailable
from assay.payments.networks import ROWS
from assay.payments.sale_checks import SaleTerms, SaleWarnings, seen_check
from assay.payments.settling_watch import SettlingWatch
from tests.payments.unit.test_gas_budget import STORE, rules
from tests.support.fakes.clock import FrozenClock

SOLD = ROWS[:3]


@dataclass
class Outside:
    """A facilitator and nodes, none of which fails before all have been asked."""

    everybody: asyncio.Barrier
    asked: Counter[str] = field(default_factory=Counter[str])

    urls = ("https://facilitator.test",)

    async def supported(self, _url: str) -> frozenset[str] | None:
        self.asked["facilitator"] += 1
        await self.everybody.wait()
        raise PaymentsUnavailable("gone")

    async def check(self, network: str) -> None:
        self.asked[network] += 1
        await self.everybody.wait()
        raise ChainUnavailable("gone")


def warnings(outside: Outside, used: GasRules, *, has_facilitator: bool) -> SaleWarnings:
    facilitator = outside if has_facilitator else None
    watch = SettlingWatch(None, facilitator, outside, FrozenClock(), STORE)
    return SaleWarnings([seen_check(watch, used, frozenset)])


def sale(network: int) -> SaleTerms:
    return SaleTerms("op", SOLD[network], 10_000, "0x" + "ab" * 20)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is asked after another has answered is never asked, and the test ends by that."""
    monkeypatch.setattr("assay.payments.settling_watch.WAIT_S", 30.0)


async def test_facilitator_and_node_are_asked_at_once() -> None:
    outside = Outside(asyncio.Barrier(2))
    async with asyncio.timeout(10):
        [told] = await warnings(outside, rules(), has_facilitator=True).of(sale(0))
    assert "facilitator that settles payments for this service does not answer" in told
    assert outside.asked == {"facilitator": 1, SOLD[0].id: 1}


async def test_dead_networks_of_a_list_are_asked_at_once_and_told_of_in_its_order() -> None:
    outside = Outside(asyncio.Barrier(len(SOLD)))
    asked = [sale(number) for number in (2, 0, 1, 0, 2)]
    async with asyncio.timeout(10):
        told = await warnings(outside, rules(), has_facilitator=False).of_each(asked)
    assert [text.split()[:5] for [text] in told] == [
        ["No", "node", "of", one.network.id, "answers"] for one in asked
    ]
    assert outside.asked == {row.id: 1 for row in SOLD}
