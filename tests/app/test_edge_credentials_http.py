"""Credentials outside `Authorization`: strangers at the same address lock none of them out."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from assay.common.errors import Unavailable
from tests.app.test_edge_limits_http import FEW, NOBODYS, exhaust, limit_of, used_up
from tests.support.live_service import (
    OWNER_KEY,
    PASSWORD,
    STRANGER_KEY,
    TestService,
    address,
    refused,
    start_test_service,
)

EMAIL = "op@example.com"
RIGHT = {"email": EMAIL, "password": PASSWORD}


async def test_200_a_log_in_works_whatever_strangers_at_its_address_do(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, **FEW) as service:
        await service.operator()
        await used_up(service)
        answer = await service.http.post("/operator/login", json=RIGHT)
        assert (answer.status_code, limit_of(answer)) == (200, (50, 49))


async def test_200_a_first_log_in_works_after_strangers_have_guessed_at_others(
    service: TestService,
) -> None:
    """The owner's network is known from the sign-up on."""
    await service.operator()
    for number in range(60):
        wrong = {"email": f"nobody{number}@example.com", "password": "wrong wrong wrong"}
        answer = await service.http.post("/operator/login", json=wrong)
    assert answer.status_code == 429
    assert (await service.http.post("/operator/login", json=RIGHT)).status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/operator/password/reset", {"token": "x" * 43, "newPassword": PASSWORD}),
        ("/operator/email/verify", {"token": "x" * 43}),
    ],
)
async def test_400_guesses_at_tokens_are_counted_by_themselves(
    tmp_path: Path, path: str, body: dict[str, str]
) -> None:
    async with start_test_service(tmp_path, **FEW) as service:
        await used_up(service)
        statuses = [(await service.http.post(path, json=body)).status_code for _ in range(25)]
        assert statuses == [400] * 20 + [429] * 5


async def test_200_a_reset_link_works_whatever_strangers_at_its_address_do(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path, **FEW) as service:
        await service.operator()
        operator = await service.app.operators.find_for_admin(EMAIL)
        made = await service.app.passwords.reset_link_for_admin(operator)
        assert made is not None
        await used_up(service)
        guess = {"token": "x" * 43, "newPassword": PASSWORD}
        for _ in range(25):
            answer = await service.http.post("/operator/password/reset", json=guess)
        refused(answer, 429, "rate_limited")
        body = {"token": made[0].partition("#reset=")[2], "newPassword": "another good one"}
        assert (await service.http.post("/operator/password/reset", json=body)).status_code == 200


async def test_200_an_agent_proves_itself_and_uses_its_session_whatever_strangers_do(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path, **FEW) as service:
        session, signed = await service.session(), await service.challenge(STRANGER_KEY)
        await used_up(service)
        assert (await service.http.post("/operator/key/verify", json=signed)).status_code == 200
        course = await service.http.post("/operator/sandbox/course", headers=session)
        assert (course.status_code, limit_of(course)) == (200, (20, 19))
        step = course.json()["next"]["url"].removeprefix("http://127.0.0.1:8004")
        unsigned = step[:-1] + ("y" if step[-1] == "x" else "x")
        refused(await service.http.get(unsigned), 429, "rate_limited")
        path = f"/operator/key/{address(OWNER_KEY)}/session"
        forged = {**session, "x-agent-session": session["x-agent-session"][:-12] + "A" * 12}
        refused(await service.http.delete(path, headers=forged), 429, "rate_limited")
        assert (await service.http.delete(path, headers=session)).status_code == 200
        service.clock.move(86_400)  # a run that is over: what a step answers is drawn
        await exhaust(service)
        late = await service.http.get(step)
        assert (late.status_code, limit_of(late)) == (404, (20, 19))


async def test_agents_of_one_address_have_no_more_than_one_operator_together(
    tmp_path: Path,
) -> None:
    """Agents are made for nothing: each has a limit of its own, and all of them another."""
    async with start_test_service(tmp_path, **{**FEW, "keyed_per_minute": 30}) as service:
        sessions = [await service.session(f"0x{number:064x}") for number in range(1, 5)]
        service.clock.move(60)
        await exhaust(service)
        admitted = 0
        for session in sessions:
            path = f"/operator/key/{session['x-agent-address']}/attestation"
            for _ in range(21):
                answer = await service.http.get(path, headers=session)
                admitted += answer.status_code != 429
        assert admitted == 30


async def logged_out(service: TestService, token: dict[str, str]) -> None:
    await service.http.post("/operator/logout", headers=token)


async def suspended(service: TestService, _: dict[str, str]) -> None:
    await service.app.operators.suspend_for_admin("op@example.com", suspended=True)


async def deleted(service: TestService, token: dict[str, str]) -> None:
    body = {"password": PASSWORD}
    await service.http.request("DELETE", "/operator/me", json=body, headers=token)


@pytest.mark.parametrize("end", [logged_out, suspended, deleted])
async def test_a_token_that_has_ended_is_a_stranger_s_on_open_operations(
    tmp_path: Path, end: Callable[[TestService, dict[str, str]], Awaitable[None]]
) -> None:
    limits = {"sandbox_per_minute": 3, "sandbox_per_agent_minute": 4}
    async with start_test_service(tmp_path, **limits) as service:
        await service.operator()
        token = await service.token()
        await end(service, token)
        for headers, agent_id, statuses in (
            (token, "7", [200, 200, 429]),  # the half of strangers
            ({}, "8", [429]),  # and those of its address
        ):
            path = f"/operator/trigger-sandbox/{agent_id}"
            asked = [await service.http.post(path, headers=headers) for _ in statuses]
            assert [answer.status_code for answer in asked] == statuses


async def test_a_token_that_has_ended_uses_up_no_evaluation_of_its_owners(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, sandbox_per_agent_minute=100) as service:
        await service.operator()
        ended, token = await service.token(), await service.token()
        await logged_out(service, ended)
        trigger = "/operator/trigger-sandbox/7"
        asked = [await service.http.post(trigger, headers=ended) for _ in range(13)]
        assert [answer.status_code for answer in asked] == [200] * 12 + [429]
        assert (await service.http.post(trigger, headers=token)).status_code == 200


async def test_a_token_is_a_stranger_s_on_open_operations_while_the_store_is_gone(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.operator()
    token = await service.token()

    async def gone(*_: object) -> None:
        raise Unavailable("The database cannot be used now.", retry_after_s=5)

    monkeypatch.setattr(service.app.logins._sessions, "owner", gone)
    assert (await service.http.get("/api", headers=token)).status_code == 200
    refused(await service.http.get("/operator/me", headers=token), 503, "temporarily_unavailable")


async def test_200_an_operator_triggers_whatever_strangers_at_its_address_have(
    tmp_path: Path,
) -> None:
    limits = {"sandbox_per_minute": 2, "sandbox_per_agent_minute": 100}
    async with start_test_service(tmp_path, **limits) as service:
        key, token = await service.operator(), await service.token()
        trigger = "/operator/trigger-sandbox/7"
        assert [(await service.http.post(trigger)).status_code for _ in range(3)] == [200, 200, 429]
        for headers in (key, token):
            statuses = [
                (await service.http.post(trigger, headers=headers)).status_code for _ in range(3)
            ]
            assert statuses == [200, 200, 429]
        refused(await service.http.post(trigger, headers=NOBODYS), 429, "rate_limited")
