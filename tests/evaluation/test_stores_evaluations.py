"""Evaluations and their chains of snapshots, against every database."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from assay.common.ids import new_id
from assay.db.engine import Database
from assay.evaluation.model import (
    Cap,
    Evaluation,
    Evidence,
    Grade,
    SignalName,
    SignalResult,
    SignalScore,
    Snapshot,
)
from assay.evaluation.store_evaluations import SqlEvaluationStore

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, UTC)


def evaluation(subject: str = "eip155:1/7", at: datetime = NOW) -> Evaluation:
    evidence = {"probes": {"x": None, "y": [1, 0.1, "\u0000\ud800 \u4e2d", True]}, "n": 1e-7}
    return Evaluation(
        id=new_id(),
        subject_key=subject,
        chain="ethereum",
        agent_id="7",
        wallet="0x" + "a" * 40,
        collected=(
            SignalResult(
                SignalName.SANDBOX,
                Evidence(evidence, 12),
                SignalScore(83.33, 0.1 + 0.2, ("good", "bad"), Cap(34.99, "leaks")),
            ),
            SignalResult(SignalName.REGISTRY_8004, Evidence({}), SignalScore(0.0, 0.0)),
        ),
        unavailable={SignalName.WALLET: "down"},
        score=34.99,
        grade=Grade("CA", "RED", "sandbox_only"),
        evaluated_at=at,
    )


def snapshot(of: Evaluation, digest: str = "0x" + "1" * 64) -> Snapshot:
    return Snapshot(
        id=new_id(),
        evaluation_id=of.id,
        subject_key=of.subject_key,
        agent_id=of.agent_id,
        snapshot_hash=digest,
        previous_hash="0x0",
        encrypted_data_uri=None,
        interaction_count=12,
        taken_at=of.evaluated_at,
    )


async def test_an_evaluation_is_read_back_exactly(database: Database) -> None:
    store, one = SqlEvaluationStore(database), evaluation()
    stored = await store.add(one, snapshot(one))
    assert await store.newest(one.subject_key, NOW) == one
    assert await store.newest_snapshot(one.subject_key) == stored


async def test_rung_policy_bounds_checks_and_record_are_read_back(database: Database) -> None:
    weighed = SignalScore(80.0, 0.5, low=SignalScore(20.0, 0.7), high=SignalScore(90.0, 0.7))
    seen = SignalResult(
        SignalName.SANDBOX,
        Evidence({}, 3, {"seed": "s"}),
        replace(weighed, checks={"reachable": "passed", "no_bombs": "not_made"}),
    )
    policy = {"rules": 1, "ladder": {"ceilings": [64.0, 74.0]}}
    one = replace(evaluation(), collected=(seen,), rung=2, policy=policy)
    taken = replace(snapshot(one), evidence_hash="0x" + "2" * 64, record='{"rung":2}')
    store = SqlEvaluationStore(database)
    assert await store.add(one, taken) == taken
    assert await store.newest(one.subject_key, NOW) == one
    assert await store.newest_snapshot(one.subject_key) == taken


async def test_only_what_is_young_enough_and_the_same_subjects_is_found(
    database: Database,
) -> None:
    store, one = SqlEvaluationStore(database), evaluation()
    newer = evaluation(at=NOW + timedelta(microseconds=1))
    for each in (newer, one):
        await store.add(each, snapshot(each))
    assert await store.newest(one.subject_key, NOW) == newer
    assert await store.newest(one.subject_key, NOW + timedelta(microseconds=2)) is None
    assert await store.newest("eip155:1/8", NOW) is None
    assert await store.newest_snapshot("eip155:1/8") is None


async def test_every_snapshot_names_the_one_before(database: Database) -> None:
    store = SqlEvaluationStore(database)
    hashes = ["0x" + digit * 64 for digit in "123"]
    previous = []
    for digest in hashes:
        one = evaluation()
        previous.append((await store.add(one, snapshot(one, digest))).previous_hash)
    assert previous == ["0x0", *hashes[:-1]]


async def test_writers_at_once_still_make_one_chain(database: Database, database_url: str) -> None:
    """Two processes, and a server whose default is another isolation than we need."""
    strict = "?default_transaction_isolation=serializable" if "postgres" in database_url else ""
    other = await Database.open(database_url + strict)
    stores = [SqlEvaluationStore(database), SqlEvaluationStore(other)]
    pairs = []
    for number in range(30):
        one = evaluation(at=NOW + timedelta(seconds=number))
        pairs.append((one, snapshot(one, f"0x{number:064x}")))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(stores[n % 2].add(*p)) for n, p in enumerate(pairs)]
    links = {t.result().previous_hash: t.result().snapshot_hash for t in tasks}
    assert len(links) == 30
    walked, at = 0, "0x0"
    while at in links:
        at, walked = links[at], walked + 1
    assert walked == 30
    last = await stores[0].newest_snapshot("eip155:1/7")
    assert last is not None
    assert last.snapshot_hash == at
    await other.close()


async def test_other_subjects_have_chains_of_their_own(database: Database) -> None:
    store = SqlEvaluationStore(database)
    for subject in ("eip155:1/7", "eip155:8453/7", "key/0x" + "a" * 40):
        one = evaluation(subject)
        assert (await store.add(one, replace(snapshot(one)))).previous_hash == "0x0"
