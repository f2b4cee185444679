"""Messages likely to cost an owner a call of a model: so many a day, whoever asks."""

import pytest

from assay.app.limits import MESSAGES_PER_DAY, message_quota
from assay.common.egress_budget import ANYBODY, RESERVED, egress_use
from assay.db.engine import Database
from assay.net.egress.url import EgressPolicy
from tests.support.egress_process import Process
from tests.support.fakes.clock import FrozenClock

POLICY = EgressPolicy(allow_private=False, require_https=True)
URL = "https://one.agents.example/.well-known/agent-card.json"


@pytest.fixture
def processes(database: Database, clock: FrozenClock) -> list[Process]:
    return [Process(database, clock), Process(database, clock)]


async def sent(processes: list[Process], key: str, url: str, times: int) -> int:
    """How many messages all processes together may send."""
    quotas = [message_quota(process.budget, POLICY) for process in processes]
    return sum([await quotas[number % len(quotas)](key, url) for number in range(times)])


async def test_an_agent_gets_twenty_messages_a_day_from_all_processes(
    processes: list[Process], clock: FrozenClock
) -> None:
    with egress_use(RESERVED):
        assert await sent(processes, "agent 1", URL, 30) == MESSAGES_PER_DAY
        assert await sent(processes, "agent 2", URL, 5) == 5
        clock.move(24 * 3600 + 1)
        assert await sent(processes, "agent 1", URL, 1) == 1


async def test_however_many_ids_point_at_a_domain_strangers_cost_it_twenty(
    processes: list[Process],
) -> None:
    with egress_use(ANYBODY):
        hosts = [f"https://{number}.agents.example/card.json" for number in range(30)]
        counts = [await sent(processes, f"agent {n}", url, 1) for n, url in enumerate(hosts)]
        assert sum(counts) == MESSAGES_PER_DAY
    with egress_use(RESERVED):
        assert await sent(processes, "proven", URL, 1) == 1


async def test_ones_own_network_has_no_quota(processes: list[Process]) -> None:
    own = EgressPolicy(allow_private=True, require_https=False)
    budget = processes[0].budget
    budget.rules = type(budget.rules)(holds_private=False)
    may_send = message_quota(budget, own)
    with egress_use(ANYBODY):
        assert all([await may_send("agent", "http://127.0.0.1:8088/card") for _ in range(30)])
