"""Old evaluations leave, oldest first; the chain goes on from the last that left, and verifies."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest
from sqlalchemy import func, insert, select, text

import assay.evaluation.recompute
from assay.admin.store_retention import SqlRetention
from assay.app.retention import Retention
from assay.common.ids import new_id
from assay.db.engine import Database, to_us
from assay.db.schema.everything import (
    evaluations,
    payments,
    removed_snapshots,
    service_credentials,
    snapshots,
    visit_requests,
)
from assay.db.store_costs import SqlCostStore
from assay.evaluation.blobs import NoSnapshotBlobs
from assay.evaluation.model import (
    FIRST_PREVIOUS_HASH,
    Evaluation,
    Evidence,
    Grade,
    SignalName,
    SignalResult,
    SignalScore,
    Snapshot,
)
from assay.evaluation.recompute import Audit, SnapshotCheck
from assay.evaluation.scoring import DEFAULT_WEIGHTS, ScoringPolicy, tiers_from
from assay.evaluation.snapshot import older_snapshot_bytes, snapshot_hash
from assay.evaluation.store_evaluations import DUE, OF_SUBJECT, SqlEvaluationStore
from assay.identity.model import KeyAgent
from assay.key_agents.store import SqlKeyAgentStore
from assay.payments.networks import ROWS
from assay.payments.store import values_of
from assay.personhood.model import Personhood
from assay.personhood.store import SqlPersonhoodStore
from assay.settings import load
from tests.admin.test_retention import Blobs, stranger
from tests.payments.ledger.test_ledger_store import entry
from tests.support.fakes.clock import FrozenClock

CLOCK = FrozenClock()
NOW = CLOCK.now()
SEVEN = "eip155:31337/7"


async def evaluated(
    database: Database, days_ago: float, key: str = SEVEN, value: float | None = None
) -> Snapshot:
    """One whose score and evidence are other than those of any other day, or have this value."""
    at, agent = NOW - timedelta(days=days_ago), key.partition("/")[2]
    value = 40 + days_ago / 100 if value is None else value
    collected = (
        SignalResult(SignalName.SANDBOX, Evidence({"seen": value}, 1), SignalScore(value, 0.5)),
    )
    evaluation = Evaluation(
        id=new_id(),
        subject_key=key,
        chain="local",
        agent_id=agent,
        wallet=agent,
        collected=collected,
        unavailable={},
        score=value,
        grade=Grade("B", "RED", "sandbox"),
        evaluated_at=at,
    )
    digest = snapshot_hash(older_snapshot_bytes(key, collected))
    taken = Snapshot(
        *(new_id(), evaluation.id, key, agent, digest, FIRST_PREVIOUS_HASH),
        *(f"ipfs://{days_ago}", 1, at),
    )
    return await SqlEvaluationStore(database).add(evaluation, taken)


async def removed(database: Database, kept: int, limit: int = 500) -> Sequence[str]:
    before = NOW - timedelta(days=30)
    return (await SqlRetention(database).remove_evaluations(kept, before, limit))[1]


def audit(database: Database) -> Audit:
    return Audit(SqlEvaluationStore(database), NoSnapshotBlobs(), {}, {})


async def checked(database: Database) -> list[SnapshotCheck]:
    return [one async for one in audit(database).snapshots()]


async def faults(database: Database) -> list[str]:
    return [fault for one in await checked(database) for fault in one.faults]


async def left(database: Database, key: str = SEVEN) -> list[float]:
    """How many days ago those were that are there, oldest first."""
    history = await SqlEvaluationStore(database).history(0, 1_000)
    taken = [snapshot.taken_at for _, _, snapshot in history if snapshot.subject_key == key]
    return [(NOW - at) / timedelta(days=1) for at in taken]


async def count(database: Database, table: object) -> int:
    async with database.read() as connection:
        statement = select(func.count()).select_from(table)  # type: ignore[arg-type]
        return (await connection.execute(statement)).scalar_one()


async def a_round(database: Database, **settings: int) -> Blobs:
    blobs, stores = Blobs(), (SqlRetention(database), SqlCostStore(database, CLOCK))
    given = load(snapshot_blocks_mib=0, **settings)
    retention = Retention(*stores, blobs, given, CLOCK)  # type: ignore[arg-type]
    for _ in range(2):  # what an agent leaves that is forgotten goes in the second
        await retention.run()
    return blobs


async def test_the_oldest_beyond_the_newest_few_leave_in_batches_with_their_blocks(
    database: Database,
) -> None:
    for days in (90, 80, 70, 60, 50):
        await evaluated(database, days)
        await evaluated(database, days, "eip155:31337/8")
    await evaluated(database, 40)
    assert sorted(await removed(database, 4, 3)) == ["ipfs://80", "ipfs://90", "ipfs://90"]
    assert await removed(database, 4, 3) == []
    assert await left(database) == [70, 60, 50, 40]
    assert await left(database, "eip155:31337/8") == [80, 70, 60, 50]
    assert await count(database, evaluations) == await count(database, snapshots) == 8


async def test_those_of_the_last_30_days_stay_however_many(database: Database) -> None:
    for days in (31, 30, 29, 2, 1):
        await evaluated(database, days)
    await removed(database, 1)
    assert await left(database) == [30, 29, 2, 1]


async def test_no_hole_is_made_where_the_clock_went_back(database: Database) -> None:
    for days in (90, 5, 60, 50, 40):
        await evaluated(database, days)
    assert await removed(database, 1) == ["ipfs://90"]
    assert await left(database) == [5, 60, 50, 40]
    assert await faults(database) == []


async def test_every_chain_verifies_after_its_oldest_left_and_goes_on(database: Database) -> None:
    for days in (90, 80, 70, 60, 50, 40):
        await evaluated(database, days)
    assert await faults(database) == []
    for kept in (4, 2):  # on and on
        await removed(database, kept)
        assert [len(one.faults) for one in await checked(database)] == [0] * kept
    last = await SqlEvaluationStore(database).newest_snapshot(SEVEN)
    assert last is not None
    assert (await evaluated(database, 0)).previous_hash == last.snapshot_hash
    assert await faults(database) == []


async def test_what_left_otherwise_is_noticed(database: Database) -> None:
    for days in (90, 80, 70, 60, 50):
        await evaluated(database, days)
    await removed(database, 4)
    async with database.write() as connection:
        await connection.execute(
            text("DELETE FROM snapshots WHERE encrypted_data_uri = 'ipfs://80'")
        )
    (fault,) = await faults(database)
    assert fault.startswith("previousHash is ")


async def test_the_chain_of_an_agent_that_is_seen_alike_at_every_visit_verifies(
    database: Database,
) -> None:
    for days in (90, 80, 70, 60, 50):
        await evaluated(database, days, value=40)
    await removed(database, 3)
    assert await left(database) == [70, 60, 50]
    assert await faults(database) == []


async def test_one_missing_in_the_middle_is_noticed_though_it_was_like_the_last_that_left(
    database: Database,
) -> None:
    for days, value in ((90, 41), (80, 42), (70, 41), (60, 43)):
        await evaluated(database, days, value=value)
    await removed(database, 3)
    async with database.write() as connection:
        await connection.execute(
            text("DELETE FROM snapshots WHERE encrypted_data_uri = 'ipfs://70'")
        )
    (fault,) = await faults(database)
    assert fault.startswith("previousHash is ")


async def test_what_leaves_while_snapshots_are_verified_breaks_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assay.evaluation.recompute, "PAGE", 1)
    for days in (90, 80, 70, 60, 50):
        await evaluated(database, days)
    found: list[SnapshotCheck] = []
    async for one in audit(database).snapshots():
        found.append(one)
        await removed(database, 2)
    assert [len(one.faults) for one in found] == [0, 0, 0]  # the first, and the two that are left


async def test_no_grade_changes(database: Database) -> None:
    for days in (90, 80, 70, 60, 50):
        await evaluated(database, days)
    store, rules = SqlEvaluationStore(database), ScoringPolicy(DEFAULT_WEIGHTS, tiers_from())
    since = NOW - timedelta(days=900)
    before = [await store.newest(SEVEN, since), await store.newest_snapshot(SEVEN)]
    scores = await audit(database).replay(rules)
    await removed(database, 1)
    assert await left(database) == [50]
    assert [await store.newest(SEVEN, since), await store.newest_snapshot(SEVEN)] == before
    assert await audit(database).replay(rules) == scores


async def test_many_at_once_remove_each_once_and_an_addition_goes_on(database: Database) -> None:
    for days in range(80, 40, -1):
        await evaluated(database, days)
    async with asyncio.TaskGroup() as group:
        work = [group.create_task(removed(database, 5, 9)) for _ in range(6)]
        group.create_task(evaluated(database, 0))
    uris = [uri for one in work for uri in one.result()]
    assert len(uris) == len(set(uris)) >= 35
    assert await faults(database) == []


@pytest.mark.parametrize(("kept", "found"), [(0, 5), (3, 3), (1_000, 5)])
async def test_the_setting_says_how_many_and_0_keeps_all(
    database: Database, kept: int, found: int
) -> None:
    for days in (90, 80, 70, 60, 50):
        await evaluated(database, days)
    blobs = await a_round(database, evaluations_kept=kept)
    assert len(await left(database)) == found
    assert len(blobs.removed) == 5 - found


async def test_a_chain_that_is_shortened_while_it_is_read_is_whole(database: Database) -> None:
    await evaluated(database, 95)
    await evaluated(database, 5, "eip155:31337/8")
    for days in (90, 80, 70, 60, 50):
        await evaluated(database, days)
    await removed(database, 5)
    found: list[SnapshotCheck] = []
    async for one in audit(database).snapshots():
        found.append(one)
        if len(found) == 1:
            await removed(database, 2)
    assert [one.faults for one in found] == [()] * 6


async def test_the_statements_read_an_index(database: Database) -> None:
    if database.kind != "sqlite":
        return
    values = {"kept": 1, "before_us": 1, "limit": 1, "key": SEVEN, "newer": 0}
    for statement, way in (
        (DUE, "SCAN evaluations USING COVERING INDEX ix_evaluations_subject"),
        (OF_SUBJECT, "SEARCH snapshots USING INDEX ix_snapshots_subject (subject_key=? AND seq<?)"),
        (
            text("SELECT 1 FROM snapshots WHERE evaluation_id = :key"),  # as the database asks
            "SEARCH snapshots USING COVERING INDEX ix_snapshots_evaluation (evaluation_id=?)",
        ),
    ):
        async with database.read() as connection:
            plan = await connection.execute(text(f"EXPLAIN QUERY PLAN {statement.text}"), values)
            steps = [row[3] for row in plan]
        assert way in steps, steps


async def proven(database: Database, number: int, days: float, *evaluated_days: float) -> str:
    address = stranger(number)
    store = SqlKeyAgentStore(database)
    await store.remember(KeyAgent(address, NOW - timedelta(days=days)))
    for one in evaluated_days:
        await evaluated(database, one, f"key/{address}")
    return address


async def test_a_proven_key_agent_that_nobody_evaluates_leaves_with_its_chain(
    database: Database,
) -> None:
    old = await proven(database, 1, 900, 800, 700, 366)
    used = await proven(database, 2, 900, 800, 364)
    await removed(database, 2)
    blobs = await a_round(database)
    assert await SqlKeyAgentStore(database).find(old) is None
    assert await left(database, f"key/{old}") == []
    assert sorted(blobs.removed) == ["ipfs://366", "ipfs://700"]
    assert await SqlKeyAgentStore(database).find(used) is not None
    assert await left(database, f"key/{used}") == [800, 364]
    assert await count(database, removed_snapshots) == 0
    await evaluated(database, 0, f"key/{old}")  # a chain of its own begins
    assert await faults(database) == []


@pytest.mark.parametrize("days", [0, 1])
async def test_0_keeps_key_agents_and_fewer_than_30_days_are_30(
    database: Database, days: int
) -> None:
    young = await proven(database, 1, 900, 29)
    old = await proven(database, 2, 900, 31)
    await a_round(database, key_agent_days=days)
    assert await left(database, f"key/{young}") == [29]
    assert await left(database, f"key/{old}") == ([] if days else [31])


async def test_key_agents_with_money_a_human_enrolment_or_deposits_stay(
    database: Database,
) -> None:
    paid, human, enrolled, deposited, unpaid = [
        await proven(database, number, 900, 800) for number in range(1, 6)
    ]
    at_us = to_us(NOW)
    people = SqlPersonhoodStore(database)
    await people.add(Personhood(f"key/{human}", human, "orb", "scope", "0x1", NOW))
    whose = {"chain": "local", "created_us": at_us}
    async with database.write() as connection:
        for address, settled in ((paid, NOW), (unpaid, None)):
            sold = {"network": ROWS[0].id, "asset": ROWS[0].asset.address}
            made = entry(f"0x{address}", payer=address, **sold)
            row = values_of(made) | {"settled_us": None if settled is None else at_us}
            await connection.execute(insert(payments).values(row))
        asked = {**whose, "agent_id": enrolled, "subject_key": f"key/{enrolled}"}
        await connection.execute(
            insert(visit_requests).values(kind="owner", holder=enrolled, **asked)
        )
        sealed = {**whose, "agent_id": deposited, "subject_key": f"key/{deposited}"}
        await connection.execute(
            insert(service_credentials).values(
                **sealed, id=new_id(), owner=deposited, url="https://a.example", place="header",
                name="x", sealed=b"x",
            )
        )  # fmt: skip
    await a_round(database)
    store = SqlKeyAgentStore(database)
    for address in (paid, human, enrolled, deposited):
        assert await store.find(address) is not None
        assert await left(database, f"key/{address}") == [800]
    assert await store.find(unpaid) is None
    assert await left(database, f"key/{unpaid}") == []
