"""Enrolling agents for visits (evidence.md#scheduled-visits)."""

from tests.support.live_service import STRANGER_KEY, TestService, refused

PATH = "/operator/agent/7/visits"


async def test_200_an_owner_enrols_lists_and_withdraws_its_agent(service: TestService) -> None:
    session = await service.session()
    answer = await service.http.post(PATH, headers=session)
    assert (answer.status_code, answer.json()) == (
        200,
        {"ok": True, "agentId": "7", "chain": "local"},
    )
    listed = (await service.http.get("/operator/visits", headers=session)).json()
    assert [one["agentId"] for one in listed["items"]] == ["7"]
    assert (listed["total"], listed["limit"]) == (1, 100)
    plan = await service.app.visits.schedule.find("eip155:31337/7")
    assert plan is not None
    assert plan.rank == 1
    assert (await service.http.delete(PATH, headers=session)).status_code == 200
    refused(await service.http.delete(PATH, headers=session), 404, "not_enrolled")


async def test_401_nobody_enrols_somebody_else_s_agent_as_its_owner(service: TestService) -> None:
    stranger = await service.session(STRANGER_KEY)
    refused(await service.http.post(PATH, headers=stranger), 401, "identity_mismatch")
    refused(await service.http.delete(PATH, headers=stranger), 401, "identity_mismatch")


async def test_200_one_operator_asks_and_that_alone_ranks_nothing(service: TestService) -> None:
    key = await service.operator()
    assert (await service.http.post(PATH, headers=key)).status_code == 200
    plan = await service.app.visits.schedule.find("eip155:31337/7")
    assert plan is not None
    assert plan.rank == 3
    listed = (await service.http.get("/operator/visits", headers=key)).json()
    assert (len(listed["items"]), listed["limit"]) == (1, 100)
    assert (await service.http.delete(PATH, headers=key)).status_code == 200


async def test_a_visit_that_is_due_is_made_by_the_service_itself(service: TestService) -> None:
    await service.http.post(PATH, headers=await service.session())
    before = await service.app.visits.schedule.find("eip155:31337/7")
    assert before is not None
    service.clock.set(before.due)
    assert await service.app.scheduler.run() == 1
    after = await service.app.visits.schedule.find("eip155:31337/7")
    assert after is not None
    assert after.due > service.clock.now()
    found = await service.app.visits.store.recent("eip155:31337/7", before.visited)
    assert [visit.timing for visit in found] == ["scheduled"]
    assert await service.app.scheduler.run() == 0
