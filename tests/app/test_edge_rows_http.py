"""Rows that strangers could add without end: exports, runs of the course, counts of conduct."""

from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from sqlalchemy import func, select

from assay.admin.store_retention import SqlRetention
from assay.app.retention import Retention
from assay.common.costs import Cost, address_bearer
from assay.db.engine import Database
from assay.db.schema.everything import (
    audit,
    course_calls,
    course_runs,
    evaluations,
    key_agents,
    wrapper_conduct,
)
from assay.db.store_costs import SqlCostStore
from assay.evaluation.blobs import NoSnapshotBlobs
from tests.support.fakes.calls import call
from tests.support.live_service import (
    OWNER_KEY,
    STRANGER_KEY,
    TestService,
    address,
    refused,
    start_test_service,
)

COURSE = "/operator/sandbox/course"
HERE = address_bearer("127.0.0.1")


async def _count(database: Database, table: object) -> int:
    async with database.read() as connection:
        statement = select(func.count()).select_from(table)  # type: ignore[arg-type]
        return (await connection.execute(statement)).scalar_one()


def _retention(service: TestService) -> Retention:
    database, clock = service.app.database, service.clock
    stores = SqlRetention(database), SqlCostStore(database, clock)
    return Retention(*stores, NoSnapshotBlobs(), service.app.settings, clock)


async def _export(service: TestService, token: dict[str, str]) -> httpx2.Response:
    return await service.http.get("/operator/me/export", headers=token)


async def test_429_an_account_is_exported_ten_times_an_hour(service: TestService) -> None:
    await service.operator()
    token = await service.token()
    before = await _count(service.app.database, audit)
    answers = [await _export(service, token) for _ in range(15)]
    assert [answer.status_code for answer in answers] == [200] * 10 + [429] * 5
    refused(answers[-1], 429, "rate_limited")
    assert await _count(service.app.database, audit) - before == 10
    await service.operator("b@example.com")
    other = await service.token("b@example.com")
    assert (await _export(service, other)).status_code == 200
    service.clock.move(3600)
    assert (await _export(service, token)).status_code == 200


async def _begin(service: TestService, key: str = OWNER_KEY) -> httpx2.Response:
    return await service.http.post(COURSE, headers=await service.session(key))


async def _call(service: TestService, begun: httpx2.Response) -> httpx2.Response:
    return await service.http.post(urlsplit(begun.json()["next"]["url"]).path)


async def test_429_runs_of_the_course_and_their_calls_are_rows_of_whoever_calls(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path, quota_rows=6) as service:
        begun = await _begin(service)  # and its key agent is a row too
        for _ in range(4):
            assert (await _call(service, begun)).status_code != 500
        assert service.app.costs.used(Cost.ROWS, HERE) == 6
        assert (await _call(service, begun)).json()["quota"] == "rows"
        assert refused(await _begin(service), 429, "quota_exceeded")["quota"] == "rows"
        rows = [await _count(service.app.database, one) for one in (course_runs, course_calls)]
        assert rows == [1, 4]


async def test_runs_are_removed_when_they_do_not_count_and_keep_no_key_agent(
    service: TestService,
) -> None:
    """One that was left goes after an hour, a finished one when it speaks for nobody any more."""
    app = service.app
    removal = _retention(service)
    left, finished = await _begin(service), await _begin(service, STRANGER_KEY)
    for begun in (left, finished):
        await _call(service, begun)
    store = app.course._store  # pyright: ignore[reportPrivateUsage]
    await store.finish(finished.json()["runId"], service.clock.now(), {})
    service.clock.move(3600)
    assert await removal.run() is False
    assert [await _count(app.database, one) for one in (course_runs, course_calls)] == [2, 2]
    service.clock.move(1)
    await removal.run()
    assert [await _count(app.database, one) for one in (course_runs, course_calls)] == [1, 1]
    assert await app.course.observed([address(STRANGER_KEY).lower()]) is not None
    service.clock.move(30 * 86_400)
    assert await app.course.observed([address(STRANGER_KEY).lower()]) is None
    await removal.run()
    assert [await _count(app.database, one) for one in (course_runs, course_calls)] == [0, 0]
    removed = SqlRetention(app.database)
    assert await removed.remove_key_agents(service.clock.now() + timedelta(seconds=1), 9) == 2
    assert await _count(app.database, key_agents) == 0


async def test_counts_of_conduct_are_rows_once_a_day_and_are_removed(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, quota_rows=2) as service:
        app, now = service.app, service.clock.now()

        def noted(agent: str, at_days: float = 0, paid: str | None = None) -> None:
            made = call(
                *("op", "w", now + timedelta(days=at_days)),
                agent_address=agent, identity_proven=True, payment_id=paid, client="192.0.2.1",
                is_sale=paid is not None,
            )  # fmt: skip
            app.conduct_log.note(made)

        for _ in range(3):
            noted("0xa")
            await app.conduct_log.flush()
        assert app.costs.used(Cost.ROWS, address_bearer("192.0.2.1")) == 1
        noted("0xa", at_days=1)
        noted("0xb")  # beyond the quota
        noted("0xc", paid="p")  # money came in
        await app.conduct_log.flush()
        assert await _count(app.database, wrapper_conduct) == 3
        removal = _retention(service)
        service.clock.move(30 * 86_400)
        await removal.run()
        assert await _count(app.database, wrapper_conduct) == 3
        service.clock.move(86_400)
        await removal.run()
        assert await _count(app.database, wrapper_conduct) == 1


async def test_429_agents_that_prove_themselves_are_rows_of_their_address(tmp_path: Path) -> None:
    """Keys are made for nothing, and each one that proves itself is kept for a year."""
    async with start_test_service(tmp_path, quota_rows=5) as service:
        first = await service.session()
        for n in range(4):
            await service.session("0x" + f"{n + 3:064x}")
        body = await service.challenge(STRANGER_KEY)
        answer = await service.http.post("/operator/key/verify", json=body)
        assert refused(answer, 429, "quota_exceeded")["quota"] == "rows"
        assert await _count(service.app.database, key_agents) == 5
        # One that is known proves itself as before: that is no new row.
        again = await service.http.post(
            "/operator/key/verify", json=await service.challenge(OWNER_KEY)
        )
        assert again.status_code == 200, again.text
        assert again.json()["agentAddress"] == first["x-agent-address"]


async def test_no_answer_changes_when_old_evaluations_leave(tmp_path: Path) -> None:
    """Visits, and what follows from them, are counted in tables of their own."""
    async with start_test_service(tmp_path, evaluations_kept=1) as service:
        operator = await service.operator()
        for days in (40, 20, 31):
            await service.http.post("/operator/trigger-sandbox/7")
            service.clock.move(days * 86_400)
        await service.http.post("/operator/trigger-sandbox/7")
        service.clock.move(3600)
        headers = operator | await service.session()

        async def told() -> list[object]:
            paths = (("GET", "agent/7"), ("GET", "agent/7/snapshot"), ("POST", "gate/7"))
            found = [
                await service.http.request(method, f"/operator/{path}", headers=headers)
                for method, path in paths
            ]
            assert [one.status_code for one in found] == [200] * 3
            return [one.json() for one in found]

        await told()  # the gate evaluates once
        before = await told()
        assert await _count(service.app.database, evaluations) == 5
        await _retention(service).run()
        assert await _count(service.app.database, evaluations) == 2
        assert await told() == before
        checked = [one async for one in service.app.audit.snapshots()]
        assert [one.faults for one in checked] == [(), ()]
