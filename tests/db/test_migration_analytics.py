"""A log and a ledger from before the analytics are counted by the migration itself."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from assay.analytics.model import LogFilter
from assay.analytics.store_analytics import SqlAnalyticsStore
from assay.analytics.store_rollups import SqlRollupProof
from assay.db.engine import Database, to_us

AT = to_us(datetime(2026, 3, 1, 12, tzinfo=UTC))
TODAY = AT // 86_400_000_000

CALL = text(
    "INSERT INTO calls (operator_id, wrapper_id, at_us, request_id, method, path, agent_id, payer,"
    " identity_proven, client, tier, status, outcome, latency_us, cost, payment_id, request_bytes,"
    " response_bytes) VALUES ('op', 'w', :at, 'r', 'GET', '/q', :agent, :payer, :no, 'c', :tier,"
    " :status, 'forwarded', 1000, 0, :payment, 0, 0)"
)
PAYMENT = text(
    "INSERT INTO payments (id, protocol, network, asset, payer, nonce, digest, amount, pay_to,"
    " operator_id, wrapper_id, request_digest, state, tx, raw_tx, reason, credential, version,"
    " expires_us, lease_us, created_us, updated_us, moves) VALUES (:id, 'x402', 'eip155:8453',"
    " 'a', 'payer', :id, :id, :amount, 'p', 'op', 'w', 'r', :state, '', '', '', '{}', 2, 0, 0,"
    " :at, :at, 0)"
)


def at_0002(connection: Connection) -> None:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "assay.db:migrations")
    config.set_main_option("path_separator", "os")
    command.upgrade(config, "0002")


@pytest.fixture
async def old(empty_database_url: str) -> Database:
    opened = await Database.open(empty_database_url)
    async with opened.write(60) as connection:
        await connection.run_sync(at_0002)
        for number, (agent, payer, tier, status, payment) in enumerate(
            [
                ("7", None, "A", 200, None),
                ("7", "payer", "BA", 500, "p1"),
                (None, "payer", None, 200, "p2"),
                (None, None, None, 402, None),
            ]
        ):
            row = {"agent": agent, "payer": payer, "tier": tier, "status": status, "no": False}
            await connection.execute(CALL, {**row, "payment": payment, "at": AT + number})
        for payment, state in (("p1", "delivered"), ("p2", "settled"), ("p3", "failed")):
            row = {"id": payment, "state": state, "amount": 5, "at": AT}
            await connection.execute(PAYMENT, row)
    return opened


async def test_what_was_there_before_is_counted_and_found(old: Database) -> None:
    await old.migrate()
    store = SqlAnalyticsStore(old)
    stats = await store.stats("op", TODAY)
    assert (stats.total.calls, stats.total.errors, stats.total.revenue) == (4, 1, 10)
    assert (stats.agents, stats.funnel.settled, stats.funnel.failed) == (2, 2, 1)
    found, _ = await store.agents("op", "calls", 10, 0)
    assert [(a.agent_id, a.counted.calls, a.counted.revenue, a.tier) for a in found] == [
        ("7", 2, 5, "BA"),
        ("payer", 1, 5, None),
    ]
    for which, count in ((LogFilter(agent_id="7"), 2), (LogFilter(wrapper_id="w"), 4)):
        assert len(await store.logs("op", which, None, None, 10, 0)) == count
    assert not any((await SqlRollupProof(old).differences()).values())
    await old.close()


async def test_calls_from_before_have_ids_that_stay_the_same(old: Database) -> None:
    await old.migrate()
    shown = [
        [one.id for one in await SqlAnalyticsStore(old).logs("op", LogFilter(), None, None, 10, 0)]
        for _ in range(2)
    ]
    assert shown[0] == shown[1]
    assert [UUID(one).version for one in shown[0]] == [7] * 4
    store = SqlAnalyticsStore(old)
    at = [await store.position("op", one) for one in shown[0]]
    assert [place[0] if place else None for place in at] == [AT + n for n in (3, 2, 1, 0)]
    assert await store.position("another", shown[0][0]) is None
    await old.close()
