"""Dashboard sessions: listed, ended, and over at once everywhere.

Source: conventions.md#account-security.
"""

from pathlib import Path

import httpx2

from assay.accounts.ports import Client
from assay.audit.service import Actor
from tests.support.live_service import PASSWORD, TestService, refused, start_test_service

CLIENT, ACTOR = Client("192.0.2.1"), Actor("operator")


async def log_in(service: TestService, user_agent: str) -> dict[str, str]:
    body = {"email": "op@example.com", "password": PASSWORD}
    answer = await service.http.post(
        "/operator/login", json=body, headers={"user-agent": user_agent.encode("latin-1")}
    )
    return {"authorization": f"Bearer {answer.json()['token']}"}


async def me(service: TestService, token: dict[str, str]) -> httpx2.Response:
    return await service.http.get("/operator/me", headers=token)


async def test_401_a_token_is_refused_once_its_owner_has_logged_out(service: TestService) -> None:
    await service.operator()
    token, other = await service.token(), await service.token()
    assert (await service.http.post("/operator/logout", headers=token)).status_code == 200
    refused(await me(service, token), 401, "unauthorized")
    assert (await me(service, other)).status_code == 200


async def test_200_sessions_say_when_whence_and_with_what(service: TestService) -> None:
    await service.operator()
    first = await log_in(service, "one/1.0\x85" + "x" * 500)
    service.clock.move(60)
    second = await log_in(service, "two/1.0")
    service.clock.move(60)
    await me(service, first)
    listed = (await service.http.get("/operator/sessions", headers=second)).json()
    assert {name: listed[name] for name in ("total", "limit", "offset", "nextCursor")} == {
        "total": 2, "limit": 100, "offset": 0, "nextCursor": None,
    }  # fmt: skip
    newest, oldest = listed["items"]
    assert (newest["userAgent"], newest["current"]) == ("two/1.0", True)
    assert oldest["userAgent"].startswith("one/1.0xxx")
    assert len(oldest["userAgent"]) == 200
    assert oldest["address"] == "127.0.0.1"
    assert oldest["createdAt"] == "2026-03-01T12:00:00.000Z"
    assert oldest["lastUsed"] == "2026-03-01T12:02:00.000Z"
    assert oldest["expiresAt"] == "2026-03-02T00:00:00.000Z"


async def test_200_one_session_is_ended_by_its_id_and_all_others_at_once(
    service: TestService,
) -> None:
    await service.operator()
    tokens = [await service.token() for _ in range(4)]
    listed = (await service.http.get("/operator/sessions", headers=tokens[0])).json()["items"]
    one = next(item["id"] for item in listed if not item["current"])
    ended = await service.http.delete(f"/operator/sessions/{one}", headers=tokens[0])
    assert ended.json() == {"ok": True, "id": one}
    assert sorted([(await me(service, token)).status_code for token in tokens]) == [200] * 3 + [401]
    rest = await service.http.delete("/operator/sessions?others=true", headers=tokens[0])
    assert rest.json()["ended"] == 2
    assert [(await me(service, token)).status_code for token in tokens] == [200, 401, 401, 401]
    await service.http.delete("/operator/sessions", headers=tokens[0])
    refused(await me(service, tokens[0]), 401, "unauthorized")


async def test_404_another_operators_session_is_not_there(service: TestService) -> None:
    await service.operator("one@example.com")
    await service.operator("two@example.com")
    one, two = await service.token("one@example.com"), await service.token("two@example.com")
    (theirs,) = (await service.http.get("/operator/sessions", headers=two)).json()["items"]
    answer = await service.http.delete(f"/operator/sessions/{theirs['id']}", headers=one)
    refused(answer, 404, "session_not_found")
    await service.http.delete("/operator/sessions", headers=one)
    assert (await me(service, two)).status_code == 200


async def test_401_another_process_refuses_an_ended_session_with_the_very_next_request(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    async with start_test_service(folder) as one, start_test_service(folder) as other:
        await one.operator()
        token = await one.token()
        assert (await me(other, token)).status_code == 200
        await one.http.post("/operator/logout", headers=token)
        refused(await me(other, token), 401, "unauthorized")


async def test_401_a_token_without_a_session_is_refused_though_its_signature_holds(
    service: TestService,
) -> None:
    """A token of before there were sessions, or of a session whose row is gone."""
    await service.operator()
    (operator,) = await service.app.operators.list_for_admin()
    tokens = service.app.logins._tokens
    forged = {"authorization": f"Bearer {tokens.issue(operator.id, 'no-session')}"}
    refused(await me(service, forged), 401, "unauthorized")


async def test_200_an_account_has_a_bounded_number_of_sessions(service: TestService) -> None:
    await service.operator()
    first = await service.token()
    logins = service.app.logins
    record = await logins._proof._store.find_login("op@example.com", ())
    assert record is not None
    for _ in range(100):
        service.clock.move(1)
        await logins._begin(record, CLIENT, ACTOR)
    assert len(await logins.list(record.operator.id)) == 100
    refused(await me(service, first), 401, "unauthorized")


async def test_expired_sessions_leave_no_rows(service: TestService) -> None:
    await service.operator()
    await service.token()
    service.clock.move(12 * 3600 + 600)
    await service.app.flush()
    async with service.app.database.read() as connection:
        count = await connection.exec_driver_sql("SELECT count(*) FROM dashboard_sessions")
        assert count.scalar_one() == 0
