"""The ladder in every answer, both hashes, and evaluations of before there was one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, update

from assay.common.json import JsonObject, JsonValue
from assay.db.schema.everything import evaluations, snapshots
from assay.evaluation.accumulation import AccumulatedEvidence, VisitHistory
from assay.evaluation.model import Evidence, SignalName, SignalResult, SignalScore
from assay.evaluation.signals.sandbox import SIGNAL
from assay.evaluation.snapshot import older_snapshot_bytes, snapshot_hash
from tests.support.fakes.ladder import STEADY, proven
from tests.support.live_service import TestService

TESTED: dict[str, JsonValue] = {
    "status": "tested",
    "why": None,
    "services": [{"kind": "a2a", "name": "a2a", "endpoint": "https://a.test", "state": "visited"}],
    "probes": {
        "a2a_card_valid": {"card": "read", "wrong": []},
        "a2a_answers": {"answer": "ok"},
        "a2a_unknown_task": None,
        "no_cross_talk": {"repeated": False},
        "no_poisoning": {"agent card": [], "registration": []},
        "reachable": {"services": [{"kind": "a2a", "answers": True}]},
        "steady_answers": {"a2a": {"steady": True, "latency": "fast"}},
    },
}
PREVIOUS = Path(__file__).parents[1] / "vectors/evaluations/before_the_ladder.json"
"""An evaluation and its snapshot as the release before the ladder stored them."""

Sees = Callable[[JsonObject], None]


@pytest.fixture
def sees(service: TestService, monkeypatch: pytest.MonkeyPatch) -> Sees:
    """What a visit sees is given, its history too: who sees it is another matter."""

    def given(behaviour: JsonObject) -> None:
        evidence = Evidence(behaviour, 9)
        collected = SignalResult(
            SignalName.SANDBOX, evidence, SIGNAL.weigh(evidence, service.app.probes)
        )
        chain = SignalResult(
            SignalName.REGISTRY_8004, Evidence({"registered": False}), SignalScore(50, 0)
        )

        async def collect(*_: object, **__: object) -> Any:
            return (chain, collected), {}

        async def accumulate(
            _: object, subject: object, found: Any, *more: object
        ) -> AccumulatedEvidence:
            del subject, more
            return AccumulatedEvidence(found)

        monkeypatch.setattr(type(service.app.evaluator), "collect", collect)
        monkeypatch.setattr(VisitHistory, "accumulate", accumulate)

    return given


async def headers_of(service: TestService) -> dict[str, str]:
    return await service.operator() | await service.session()


async def test_the_default_gate_denies_what_nothing_is_proven_of_and_says_what_is_missing(
    service: TestService, sees: Sees
) -> None:
    sees(TESTED)
    told = (await service.gate(await headers_of(service))).json()
    assert (told["allow"], told["tier"], told["denialReason"]) == (
        False,
        "B",
        "insufficient_evidence",
    )
    ladder = told["ladder"]
    assert (ladder["rung"], ladder["name"], ladder["ceiling"]) == (0, "unproven", 64.0)
    assert [row["name"] for row in ladder["nextRung"]] == ["function", "control"]
    assert ladder["checks"]["summary"] == "6 of 7 applicable checks"
    assert told["scoreLow"] <= told["score"] <= told["scoreHigh"] <= 64


async def test_what_works_and_is_controlled_is_let_in_with_its_rung_in_every_answer(
    service: TestService, sees: Sees
) -> None:
    sees({**TESTED, **proven()})
    told = (await service.gate(await headers_of(service))).json()
    assert (told["allow"], told["tier"], told["ladder"]["rung"]) == (True, "BA", 1)
    assert "denialReason" not in told
    sandbox = (await service.http.post("/operator/trigger-sandbox/7")).json()
    snapshot = (await service.http.get("/operator/agent/7/snapshot")).json()
    assert sandbox["ladder"] == snapshot["ladder"] == told["ladder"]
    assert snapshot["rung"] == 1
    for name in ("snapshotHash", "evidenceHash"):
        assert sandbox[name] == snapshot[name]


async def test_no_selection_of_signals_lifts_the_ceiling(service: TestService, sees: Sees) -> None:
    sees(TESTED)
    headers = await headers_of(service)
    for signals in (["sandbox"], ["8004"], ["sandbox", "8004"]):
        told = (await service.gate(headers, trustSignals=signals)).json()
        assert told["score"] <= told["ladder"]["ceiling"] == 64.0


@pytest.mark.parametrize(
    ("cold_start", "allow", "route"),
    [("deny", False, "sandbox"), ("throttle", True, "prod_throttled"), ("allow", True, "prod")],
)
async def test_cold_start_decides_on_a_gate_call(
    service: TestService,
    sees: Sees,
    cold_start: str,
    allow: bool,  # noqa: FBT001 - a column of the table
    route: str,
) -> None:
    sees(TESTED)
    headers = await headers_of(service)
    told = (await service.gate(headers, coldStart=cold_start)).json()
    assert (told["allow"], told["route"], told["coldStart"]) == (allow, route, cold_start)
    assert told["meetsThreshold"] == told["allow"]
    cached = (await service.gate(headers, coldStart=cold_start)).json()
    assert (cached["allow"], cached["cached"]) == (allow, True)
    assert (await service.gate(headers)).json()["allow"] is False
    assert (await service.gate(headers, coldStart="always")).status_code == 400


async def test_an_unchanged_agent_has_one_hash_per_rung_and_other_evidence_each_time(
    service: TestService, sees: Sees
) -> None:
    taken: list[dict[str, Any]] = []
    for visits, past in ((1, {}), (2, {}), (12, STEADY)):
        sees({**TESTED, **proven(), "history": {**past, "visits": visits}})
        service.clock.move(60)
        await service.http.post("/operator/trigger-sandbox/7")
        taken.append((await service.http.get("/operator/agent/7/snapshot")).json())
    assert [one["rung"] for one in taken] == [1, 1, 2]
    assert taken[0]["snapshotHash"] == taken[1]["snapshotHash"] != taken[2]["snapshotHash"]
    assert len({one["evidenceHash"] for one in taken}) == 3
    assert [one["previousHash"] for one in taken[1:]] == [one["snapshotHash"] for one in taken[:2]]


async def test_every_record_follows_from_its_stored_evidence_byte_for_byte(
    service: TestService, sees: Sees
) -> None:
    sees({**TESTED, **proven(), "note": "\ud800", "large": 2**60})
    await service.http.post("/operator/trigger-sandbox/7")
    [checked] = [one async for one in service.app.audit.snapshots()]
    assert (checked.faults, checked.has_data) == ((), True)


async def test_a_record_that_does_not_follow_from_its_evidence_is_found(
    service: TestService, sees: Sees
) -> None:
    sees({**TESTED, **proven()})
    await service.http.post("/operator/trigger-sandbox/7")
    async with service.app.database.write() as connection:
        await connection.exec_driver_sql(
            "UPDATE evaluations SET collected = replace(collected, 'functional', 'refuses')"
        )
    [checked] = [one async for one in service.app.audit.snapshots()]
    assert "the stored evidence does not give this hash" in checked.faults
    assert "the stored evidence does not give its evidenceHash" in checked.faults


async def test_evaluations_of_before_the_ladder_stay_readable_and_verifiable(
    service: TestService, sees: Sees
) -> None:
    """As an upgrade leaves them: no rung, no policy, and the hash of version 1."""
    sees(TESTED)
    await service.http.post("/operator/trigger-sandbox/7")
    store = service.app.profiles._store
    [(_, made, _)] = await store.history(0, 10)
    older = older_snapshot_bytes(made.subject_key, made.collected)
    async with service.app.database.write() as connection:
        await connection.exec_driver_sql("UPDATE evaluations SET rung = NULL, policy = NULL")
        await connection.exec_driver_sql(
            "UPDATE snapshots SET record = NULL, evidence_hash = NULL, encrypted_data_uri = NULL,"
            " snapshot_hash = ?",
            (snapshot_hash(older),),
        )
    [checked] = [one async for one in service.app.audit.snapshots()]
    assert checked.faults == ()
    snapshot = (await service.http.get("/operator/agent/7/snapshot")).json()
    assert (snapshot["rung"], snapshot["ladder"], snapshot["evidenceHash"]) == (None, None, None)
    [row] = await service.app.audit.replay(service.app.rules)
    assert (row.evaluation.rung, row.rung) == (None, 0)
    told = (await service.gate(await headers_of(service))).json()
    assert told["cached"] is False  # it proves nothing by the ladder: evaluated once more


async def test_a_stored_evaluation_of_the_previous_release_is_read_verified_and_replayed(
    service: TestService,
) -> None:
    """The rows are as that release wrote them, with its own hash, for an agent of stock parts."""
    rows = json.loads(PREVIOUS.read_text("utf-8"))
    async with service.app.database.write() as connection:
        await connection.execute(insert(evaluations).values(rows["evaluation"]))
        await connection.execute(insert(snapshots).values(rows["snapshot"]))
    [checked] = [one async for one in service.app.audit.snapshots()]
    assert checked.faults == ()
    snapshot = (await service.http.get("/operator/agent/7/snapshot")).json()
    assert snapshot["snapshotHash"] == rows["snapshot"]["snapshot_hash"]
    assert (snapshot["rung"], snapshot["ladder"], snapshot["evidenceHash"]) == (None, None, None)
    [row] = await service.app.audit.replay(service.app.rules)
    assert (row.evaluation.score, row.evaluation.grade.tier) == (80.23, "BAA")  # as it was made
    assert (row.rung, row.score) == (0, 64.0)  # and what the same evidence is worth today
    [again] = await service.app.audit.replay(service.app.rules)
    assert again == row

    spoiled = rows["evaluation"]["collected"].replace('"own_site": true', '"own_site": false')
    assert spoiled != rows["evaluation"]["collected"]
    async with service.app.database.write() as connection:
        await connection.execute(update(evaluations).values(collected=spoiled))
    [checked] = [one async for one in service.app.audit.snapshots()]
    assert checked.faults == ("the stored evidence does not give this hash",)
