"""Consents are an origin's, hold where they were read, and are kept within bounds."""

import pytest

from assay.common.egress_budget import ANYBODY, RESERVED, BudgetRules, current_use, egress_use
from assay.common.shared_state import MemorySharedState
from assay.net.egress.consent import CONSENT_S, NETWORKS_MAX, REMEMBERED_MAX, REMEMBERED_S, Consents
from assay.net.egress.url import EgressPolicy, is_exempt
from tests.support.fakes.clock import FrozenClock

ORIGIN = "https://host.test:443"


async def test_a_consent_holds_for_an_hour_at_the_networks_it_was_read_from() -> None:
    clock = FrozenClock()
    state = MemorySharedState(clock)
    one, other = Consents(state, clock), Consents(state, clock)
    assert await other.find(ORIGIN) is None
    await one.record(ORIGIN, "agent", "93.184.216.34")
    found = await one.find(ORIGIN)
    assert found is not None
    assert found.networks == ("93.184.216.34",)
    clock.move(REMEMBERED_S + 1)
    assert await other.find(ORIGIN) == found
    clock.move(CONSENT_S)
    assert await one.find(ORIGIN) is None


async def test_a_consent_remembers_few_networks_and_only_of_who_gave_it() -> None:
    clock = FrozenClock()
    consents = Consents(MemorySharedState(clock), clock)
    for number in range(20):
        await consents.record(ORIGIN, "agent", f"93.184.216.{number}")
    found = await consents.find(ORIGIN)
    assert found is not None
    assert len(found.networks) == NETWORKS_MAX
    assert found.networks[0] == "93.184.216.19"
    await consents.record(ORIGIN, "another", "93.184.217.1")
    found = await consents.find(ORIGIN)
    assert found is not None
    assert found.networks == ("93.184.217.1",)


async def test_only_who_it_was_given_for_withdraws_it() -> None:
    clock = FrozenClock()
    consents = Consents(MemorySharedState(clock), clock)
    await consents.record(ORIGIN, "agent", "93.184.216.34")
    await consents.withdraw(ORIGIN, "another")
    assert await consents.find(ORIGIN) is not None
    await consents.withdraw(ORIGIN, "agent")
    assert await consents.find(ORIGIN) is None


@pytest.mark.parametrize(
    "origins", [3 * REMEMBERED_MAX, pytest.param(1_000_000, marks=pytest.mark.slow)]
)
async def test_a_million_origins_leave_no_more_than_the_bound(origins: int) -> None:
    clock = FrozenClock()
    consents = Consents(MemorySharedState(clock), clock)
    for number in range(origins):
        consents._remember(f"https://h{number}.test:443", None)
    assert len(consents._remembered) == REMEMBERED_MAX


@pytest.mark.parametrize(
    ("host", "is_private"),
    [("127.0.0.1", True), ("10.1.2.3", True), ("agent", True), ("x.internal", True),
     ("93.184.216.34", False), ("example.com", False), ("169.254.169.254", False)],
)  # fmt: skip
def test_only_ones_own_network_opened_by_a_setting_has_no_budget(
    host: str, *, is_private: bool
) -> None:
    opened = EgressPolicy(allow_private=True, require_https=False)
    assert is_exempt(host, opened, BudgetRules()) is is_private
    assert not is_exempt(host, opened, BudgetRules(holds_private=True))
    assert not is_exempt(host, EgressPolicy(), BudgetRules())


def test_what_nobody_named_is_of_the_narrowest_class() -> None:
    assert current_use() == ANYBODY
    with egress_use(RESERVED):
        assert current_use() == RESERVED
    assert current_use() == ANYBODY
