"""Dashboard sessions: listed, ended, and over at once everywhere.

Source: conventions.md#account-security.
"""

from pathlib import Path

import httpx2

from assay.accounts.clients import Client
from assay.audit.service import Actor
from tests.support.house import PASSWORD, House, open_house, refused

CLIENT, ACTOR = Client("192.0.2.1"), Actor("operator")


async def log_in(house: House, user_agent: str) -> dict[str, str]:
    body = {"email": "op@example.com", "password": PASSWORD}
    answer = await house.http.post(
        "/operator/login", json=body, headers={"user-agent": user_agent.encode("latin-1")}
    )
    return {"authorization": f"Bearer {answer.json()['token']}"}


async def me(house: House, token: dict[str, str]) -> httpx2.Response:
    return await house.http.get("/operator/me", headers=token)


async def test_401_a_token_is_refused_once_its_owner_has_logged_out(house: House) -> None:
    await house.operator()
    token, other = await house.token(), await house.token()
    assert (await house.http.post("/operator/logout", headers=token)).status_code == 200
    refused(await me(house, token), 401, "unauthorized")
    assert (await me(house, other)).status_code == 200


async def test_200_sessions_say_when_whence_and_with_what(house: House) -> None:
    await house.operator()
    first = await log_in(house, "one/1.0\x85" + "x" * 500)
    house.clock.move(60)
    second = await log_in(house, "two/1.0")
    house.clock.move(60)
    await me(house, first)
    listed = (await house.http.get("/operator/sessions", headers=second)).json()
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


async def test_200_one_session_is_ended_by_its_id_and_all_others_at_once(house: House) -> None:
    await house.operator()
    tokens = [await house.token() for _ in range(4)]
    listed = (await house.http.get("/operator/sessions", headers=tokens[0])).json()["items"]
    one = next(item["id"] for item in listed if not item["current"])
    ended = await house.http.delete(f"/operator/sessions/{one}", headers=tokens[0])
    assert ended.json() == {"ok": True, "id": one}
    assert sorted([(await me(house, token)).status_code for token in tokens]) == [200] * 3 + [401]
    rest = await house.http.delete("/operator/sessions?others=true", headers=tokens[0])
    assert rest.json()["ended"] == 2
    assert [(await me(house, token)).status_code for token in tokens] == [200, 401, 401, 401]
    await house.http.delete("/operator/sessions", headers=tokens[0])
    refused(await me(house, tokens[0]), 401, "unauthorized")


async def test_404_another_operators_session_is_not_there(house: House) -> None:
    await house.operator("one@example.com")
    await house.operator("two@example.com")
    one, two = await house.token("one@example.com"), await house.token("two@example.com")
    (theirs,) = (await house.http.get("/operator/sessions", headers=two)).json()["items"]
    answer = await house.http.delete(f"/operator/sessions/{theirs['id']}", headers=one)
    refused(answer, 404, "session_not_found")
    await house.http.delete("/operator/sessions", headers=one)
    assert (await me(house, two)).status_code == 200


async def test_401_another_process_refuses_an_ended_session_with_the_very_next_request(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    async with open_house(folder) as one, open_house(folder) as other:
        await one.operator()
        token = await one.token()
        assert (await me(other, token)).status_code == 200
        await one.http.post("/operator/logout", headers=token)
        refused(await me(other, token), 401, "unauthorized")


async def test_401_a_token_without_a_session_is_refused_though_its_signature_holds(
    house: House,
) -> None:
    """A token of before there were sessions, or of a session whose row is gone."""
    await house.operator()
    (operator,) = await house.app.operators.list_for_admin()
    tokens = house.app.logins._tokens
    forged = {"authorization": f"Bearer {tokens.issue(operator.id, 'no-session')}"}
    refused(await me(house, forged), 401, "unauthorized")


async def test_200_an_account_has_a_bounded_number_of_sessions(house: House) -> None:
    await house.operator()
    first = await house.token()
    logins = house.app.logins
    record = await logins._proof._store.find_login("op@example.com", ())
    assert record is not None
    for _ in range(100):
        house.clock.move(1)
        await logins._begin(record, CLIENT, ACTOR)
    assert len(await logins.list(record.operator.id)) == 100
    refused(await me(house, first), 401, "unauthorized")


async def test_expired_sessions_leave_no_rows(house: House) -> None:
    await house.operator()
    await house.token()
    house.clock.move(12 * 3600 + 600)
    await house.app.flush()
    async with house.app.database.read() as connection:
        count = await connection.exec_driver_sql("SELECT count(*) FROM dashboard_sessions")
        assert count.scalar_one() == 0
