"""Runs of the course and counts of conduct, in both databases."""

from dataclasses import replace
from datetime import timedelta

import pytest

from assay.caller_behaviour.observations import DailyTally, ObservationLog
from assay.caller_behaviour.scenario import ScenarioCall
from assay.caller_behaviour.scenario_run import RecordedCall, Run
from assay.caller_behaviour.store import SqlConductStore, SqlCourseStore
from assay.common.errors import Unavailable
from assay.db.engine import Database
from tests.support.fakes.calls import call, changed
from tests.support.fakes.clock import FrozenClock

NOW = FrozenClock().now()
RUN = Run("run-1", "0xa", "seed", ("one", "two"), NOW, None, 0)


CALL = call("op", "w", NOW, path="/p", agent_address="0xa", identity_proven=True)


@pytest.fixture
def runs(database: Database) -> SqlCourseStore:
    return SqlCourseStore(database)


@pytest.fixture
def counts(database: Database) -> SqlConductStore:
    return SqlConductStore(database)


async def test_finished_runs_are_found_newest_first_and_no_more_than_asked(
    runs: SqlCourseStore,
) -> None:
    for number in range(3):
        run = replace(RUN, id=f"run-{number}", address="0xb" if number == 1 else "0xa")
        await runs.begin(run)
        await runs.finish(run.id, NOW + timedelta(minutes=number), {"one": {"n": number}})
    await runs.begin(replace(RUN, id="unfinished"))
    found = await runs.finished(["0xa", "0xb"], NOW, 10)
    assert [(run.id, seen) for run, seen in found] == [
        (f"run-{n}", {"one": {"n": n}}) for n in (2, 1, 0)
    ]
    assert found[0][0].finished_at == NOW + timedelta(minutes=2)
    assert [run.id for run, _ in await runs.finished(["0xa"], NOW, 1)] == ["run-2"]
    assert await runs.finished(["0xa"], NOW + timedelta(minutes=3), 10) == []


async def test_a_run_and_its_calls_are_kept_in_order(runs: SqlCourseStore) -> None:
    await runs.begin(RUN)
    assert await runs.find("run-1") == RUN
    assert await runs.find("run-2") is None
    for number in range(3):
        kept = RecordedCall(
            f"c{number}", number // 2, ScenarioCall(number, None, "", {"n": number})
        )
        await runs.note(replace(RUN, at_step=number // 2), kept)
    await runs.ended("c1", 99)
    found = await runs.calls("run-1")
    assert [(k.id, k.step, k.call.facts["n"], k.call.ended_ms) for k in found] == [
        ("c0", 0, 0, None),
        ("c1", 0, 1, 99),
        ("c2", 1, 2, None),
    ]
    assert await runs.find("run-1") == replace(RUN, at_step=1)


async def test_a_run_never_goes_back(runs: SqlCourseStore) -> None:
    await runs.begin(RUN)
    await runs.note(replace(RUN, at_step=1), RecordedCall("c0", 1, ScenarioCall(0, None, "", {})))
    await runs.note(replace(RUN, at_step=0), RecordedCall("c1", 0, ScenarioCall(1, None, "", {})))
    assert await runs.find("run-1") == replace(RUN, at_step=1)


async def test_the_newest_finished_run_of_any_address_counts(runs: SqlCourseStore) -> None:
    for number, address in enumerate(["0xa", "0xb", "0xa"]):
        run = replace(RUN, id=f"run-{number}", address=address)
        await runs.begin(run)
        await runs.finish(run.id, NOW + timedelta(minutes=number), {"run": number})
    await runs.begin(replace(RUN, id="run-9"))
    await runs.finish("run-2", NOW + timedelta(days=1), {"run": "again"})
    assert await runs.newest(["0xa", "0xb"], NOW) == {"run": 2}
    assert await runs.newest(["0xb"], NOW) == {"run": 1}
    assert await runs.newest(["0xb"], NOW + timedelta(hours=1)) is None
    assert await runs.newest(["0xc"], NOW) is None


async def test_counts_add_up_by_address_and_day(counts: SqlConductStore) -> None:
    await counts.add(
        [("0xa", "2026-01-01", DailyTally(5, 2, 1, 3)), ("0xb", "2026-01-01", DailyTally(1))]
    )
    await counts.add(
        [("0xa", "2026-01-01", DailyTally(1, 1, 0, 2)), ("0xa", "2026-01-03", DailyTally(4))]
    )
    assert await counts.total(["0xa"], "2026-01-01") == DailyTally(10, 3, 1, 3)
    assert await counts.total(["0xa", "0xb"], "2026-01-01") == DailyTally(11, 3, 1, 3)
    assert await counts.total(["0xa"], "2026-01-02") == DailyTally(4, 0, 0, 0)
    assert await counts.total(["0xz"], "2026-01-01") == DailyTally()


async def test_conduct_is_counted_as_it_happens(counts: SqlConductStore) -> None:
    log = ObservationLog(counts)
    for seconds, status in ((0, 200), (1, 429), (1.3, 429), (5, 200), (6, 403), (7, 403), (8, 403)):
        log.note(changed(CALL, at=NOW + timedelta(seconds=seconds), status=status))
    log.note(changed(CALL, identity_proven=False))
    log.note(changed(CALL, agent_address=None, identity_proven=False, payer="0xp"))
    await log.flush()
    await log.flush()
    assert await counts.total(["0xa"], "2000-01-01") == DailyTally(7, 2, 1, 3)
    assert (await counts.total(["0xp"], "2000-01-01")).calls == 1


class Down:
    async def add(self, counts: object) -> None:
        del counts
        raise Unavailable("down")

    async def total(self, addresses: object, since_day: str) -> DailyTally:
        del addresses, since_day
        raise Unavailable("down")


async def test_what_could_not_be_written_is_counted_on(counts: SqlConductStore) -> None:
    log = ObservationLog(Down())
    log.note(CALL)
    with pytest.raises(Unavailable):
        await log.flush()
    log.note(CALL)
    log._store = counts
    await log.flush()
    assert (await counts.total(["0xa"], "2000-01-01")).calls == 2
