"""A host that never asked: whatever accounts, agents and triggers do, it sees its budget."""

import pytest
from bench.victim import Campaign, campaign

pytestmark = pytest.mark.slow

BUDGET = 60, 256 * 1024
SENT = {"sandbox ran", "gate ran", "gate cached", "proxy sent", "playground sent"}
SPENT = {
    "sandbox egress_budget",
    "gate egress_budget",
    "gate evaluation_quota",
    "proxy egress_budget",
    "playground egress_budget",
}


async def test_a_victim_sees_its_budget_whatever_accounts_agents_and_triggers_do() -> None:
    """`bench/victim.py`, shortened. Counted by the victim's own system."""
    found = await campaign(Campaign(accounts=3, agents=30, triggers=160, minutes=2))
    for requests, size_bytes in zip(found.requests, found.size_bytes, strict=True):
        assert 0 < requests <= BUDGET[0]
        assert 0 < size_bytes <= BUDGET[1]
    assert found.outcomes.keys() <= SENT | SPENT
    assert found.outcomes.total() == 160
    assert found.outcomes.keys() & SPENT
