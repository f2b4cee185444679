"""What strangers made is removed in time; whole chains, and what is in use, stay."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from assay.accounts.store_operators import SqlOperatorStore
from assay.admin.store_retention import SqlRetention
from assay.app.retention import Retention
from assay.audit.service import Action, Actor, ActorKind, AuditEntry
from assay.audit.store import SqlAuditStore
from assay.common.ids import new_id
from assay.db.engine import Database
from assay.db.schema.everything import evaluations, snapshots
from assay.db.store_costs import SqlCostStore
from assay.evaluation.model import FIRST_PREVIOUS_HASH, Evaluation, Grade, Snapshot
from assay.evaluation.store_evaluations import SqlEvaluationStore
from assay.identity.model import KeyAgent
from assay.key_agents.store import SqlKeyAgentStore
from assay.settings import load
from tests.support.fakes.clock import FrozenClock

CLOCK = FrozenClock()
NOW = CLOCK.now()


def stranger(number: int) -> str:
    return f"0x{number:040x}"


async def evaluated(database: Database, key: str, days_ago: float) -> Snapshot:
    at = NOW - timedelta(days=days_ago)
    agent = key.partition("/")[2]
    evaluation = Evaluation(
        id=new_id(),
        subject_key=key,
        chain="local",
        agent_id=agent,
        wallet=agent,
        collected=(),
        unavailable={},
        score=50.0,
        grade=Grade("B", "RED", "sandbox"),
        evaluated_at=at,
    )
    uri = f"ipfs://{key}/{days_ago}"
    snapshot = Snapshot(
        new_id(), evaluation.id, key, agent, f"0x{days_ago}", FIRST_PREVIOUS_HASH, uri, 0, at
    )
    return await SqlEvaluationStore(database).add(evaluation, snapshot)


async def rows(database: Database) -> tuple[int, int]:
    async with database.read() as connection:
        one = (await connection.execute(select(func.count()).select_from(evaluations))).scalar_one()
    async with database.read() as connection:
        other = (await connection.execute(select(func.count()).select_from(snapshots))).scalar_one()
    return one, other


def stores(database: Database) -> tuple[SqlRetention, SqlCostStore]:
    return SqlRetention(database), SqlCostStore(database, CLOCK)


async def removed(database: Database, limit: int = 50) -> Sequence[str] | None:
    return await SqlRetention(database).remove_unproven(NOW - timedelta(days=7), limit)


async def test_old_evaluations_of_unproven_key_agents_go_with_their_whole_chain(
    database: Database,
) -> None:
    for days in (30, 20, 10):
        await evaluated(database, f"key/{stranger(1)}", days)
    assert await rows(database) == (3, 3)
    found = await removed(database)
    assert sorted(found or ()) == [f"ipfs://key/{stranger(1)}/{days}" for days in (10, 20, 30)]
    assert await rows(database) == (0, 0)
    assert await removed(database) is None


async def test_a_chain_that_is_still_added_to_stays_whole(database: Database) -> None:
    for days in (30, 20, 1):
        await evaluated(database, f"key/{stranger(1)}", days)
    assert await removed(database) is None
    assert await rows(database) == (3, 3)


async def test_nothing_of_proven_and_registered_agents_leaves_as_unproven(
    database: Database,
) -> None:
    await SqlKeyAgentStore(database).remember(KeyAgent(stranger(1), NOW))
    await evaluated(database, f"key/{stranger(1)}", 900)
    await evaluated(database, "eip155:31337/7", 900)
    assert await removed(database) is None
    assert await rows(database) == (2, 2)


async def test_only_so_many_go_at_once(database: Database) -> None:
    for number in range(5):
        await evaluated(database, f"key/{stranger(number)}", 30)
    assert len(await removed(database, 2) or ()) == 2
    assert await rows(database) == (3, 3)


async def test_key_agents_of_which_nothing_is_known_are_forgotten(database: Database) -> None:
    store = SqlKeyAgentStore(database)
    old, young, seen = stranger(1), stranger(2), stranger(3)
    await store.remember(KeyAgent(old, NOW - timedelta(days=400)))
    await store.remember(KeyAgent(young, NOW))
    await store.remember(KeyAgent(seen, NOW - timedelta(days=400)))
    await evaluated(database, f"key/{seen}", 364)
    retention, before = SqlRetention(database), NOW - timedelta(days=365)
    assert await retention.remove_key_agents(before, 100) == 1
    assert await store.find(old) is None
    assert await store.find(young) is not None
    assert await store.find(seen) is not None


class Blobs:
    """Remembers what it was to remove."""

    def __init__(self) -> None:
        self.removed: list[str] = []
        self.bounds: list[int] = []

    async def remove(self, uri: str) -> None:
        self.removed.append(uri)

    async def trim(self, bytes_max: int, limit: int) -> int:
        self.bounds.append(bytes_max)
        return min(0, limit)


def told(action: Action, days_ago: float, kind: ActorKind = "anonymous") -> AuditEntry:
    at = NOW - timedelta(days=days_ago)
    return AuditEntry(new_id(), at, Actor(kind, None, "192.0.2.1"), action, "o", "o", {})


async def test_failed_log_ins_leave_the_trail_in_time_and_nothing_else_does(
    database: Database,
) -> None:
    store, trail = SqlOperatorStore(database), SqlAuditStore(database)
    failed = [told("login.failed", days) for days in (90, 31, 30.1, 29.9, 0)]
    acted = [told("login.succeeded", 90, "operator"), told("account.changed", 900, "admin")]
    for one in (*failed, *acted):
        await store.record(one)
    retention, before = SqlRetention(database), NOW - timedelta(days=30)
    assert [await retention.remove_failed_logins(before, 2) for _ in range(3)] == [2, 1, 0]
    kept = {one.id for one in await trail.page_for_admin(None, None, 50)}
    assert kept == {one.id for one in (*failed[3:], *acted)}


@pytest.mark.parametrize(("days", "left"), [(30, 0), (0, 1)])
async def test_the_setting_says_how_long_failed_log_ins_stay(
    database: Database, days: int, left: int
) -> None:
    await SqlOperatorStore(database).record(told("login.failed", 31))
    settings = load(failed_login_days=days)
    await Retention(*stores(database), Blobs(), settings, CLOCK).run()  # type: ignore[arg-type]
    assert len(await SqlAuditStore(database).page_for_admin(None, None, 50)) == left


async def test_a_round_removes_what_is_due_and_its_blocks(database: Database) -> None:
    blobs = Blobs()
    await evaluated(database, f"key/{stranger(1)}", 30)
    retention = Retention(*stores(database), blobs, load(), CLOCK)  # type: ignore[arg-type]
    assert await retention.run()
    assert not await retention.run()
    assert blobs.removed == [f"ipfs://key/{stranger(1)}/30"]
    assert blobs.bounds[0] == 10_240 * 1024 * 1024


async def test_zero_switches_every_removal_off(database: Database) -> None:
    blobs = Blobs()
    await evaluated(database, f"key/{stranger(1)}", 3000)
    await SqlKeyAgentStore(database).remember(KeyAgent(stranger(2), NOW - timedelta(days=3000)))
    off = load(unproven_days=0, key_agent_days=0, snapshot_blocks_mib=0)
    retention = Retention(*stores(database), blobs, off, CLOCK)  # type: ignore[arg-type]
    assert not await retention.run()
    assert await rows(database) == (1, 1)
    assert await SqlKeyAgentStore(database).find(stranger(2)) is not None
    assert blobs.bounds == []


async def test_a_removal_that_fails_is_named_and_holds_up_no_other(database: Database) -> None:
    blobs, failed = Blobs(), dict[str, Exception]()

    async def gone(uri: str) -> None:
        raise OSError(uri)

    blobs.remove = gone  # type: ignore[method-assign]
    await evaluated(database, f"key/{stranger(1)}", 30)
    await SqlKeyAgentStore(database).remember(KeyAgent(stranger(2), NOW - timedelta(days=3000)))
    retention = Retention(*stores(database), blobs, load(), CLOCK)  # type: ignore[arg-type]
    assert not await retention.run(failed.__setitem__)
    assert {name: type(error) for name, error in failed.items()} == {
        "unproven evaluations": OSError
    }
    assert await SqlKeyAgentStore(database).find(stranger(2)) is None
    assert blobs.bounds
