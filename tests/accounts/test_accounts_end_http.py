"""An account's data, handed out and erased (conventions.md#account-security)."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from assay.accounts.model import AccountChange, LastAdmin, Role
from assay.audit.service import Actor
from assay.db.schema.everything import METADATA
from tests.support.fakes.calls import call, claimed, payment
from tests.support.live_service import PASSWORD, TestService, refused, start_test_service

EMAIL = "op@example.com"
HOOK = "http://127.0.0.1:8999/hook"


async def settled_in(service: TestService) -> tuple[dict[str, str], dict[str, str], dict[str, Any]]:
    """An account with one of everything: its key, its token, its wrapper."""
    key = await service.operator()
    token = await service.token()
    endpoint = {
        "path": "/x", "pricePerCall": 0, "targetUrl": "http://127.0.0.1:8999",
        "upstreamAuthType": "header", "upstreamAuthHeader": "x-key",
        "upstreamAuthSecret": "hush-upstream", "description": "mine alone",
        "passResponseHeaders": ["x-of-mine-alone"],
    }  # fmt: skip
    made = await service.http.post("/operator/endpoints", headers=token, json=endpoint)
    hook = {"event": "evaluation_complete", "url": HOOK}
    assert (
        await service.http.post("/operator/webhooks/register", headers=key, json=hook)
    ).status_code == 201
    wrapper = made.json()
    return key, token, wrapper


async def delete(service: TestService, token: dict[str, str], **body: str) -> httpx2.Response:
    asked = {"password": PASSWORD, **body}
    return await service.http.request("DELETE", "/operator/me", headers=token, json=asked)


async def test_200_an_export_has_everything_and_no_secret(service: TestService) -> None:
    key, token, wrapper = await settled_in(service)
    await service.app.flush()
    answer = await service.http.get("/operator/me/export", headers=token)
    export = answer.json()
    assert export["operator"]["email"] == EMAIL
    assert export["security"]["totpEnabled"] is False
    assert [one["id"] for one in export["endpoints"]] == [wrapper["id"]]
    assert [one["url"] for one in export["webhooks"]] == [HOOK]
    assert len(export["keys"]) == len(export["sessions"]) == 1
    actions = {one["action"] for one in export["audit"]}
    assert actions >= {"account.registered", "login.succeeded", "endpoint.created"}
    secrets = ("hush-upstream", key["authorization"][7:], token["authorization"][7:], "$argon2id$")
    assert not any(secret in answer.text for secret in secrets)


async def test_200_an_export_holds_nothing_of_anybody_else(service: TestService) -> None:
    await settled_in(service)
    await service.operator("two@example.com")
    answer = await service.http.get(
        "/operator/me/export", headers=await service.token("two@example.com")
    )
    assert EMAIL not in answer.text
    assert (answer.json()["endpoints"], answer.json()["webhooks"]) == ([], [])


async def test_200_a_deleted_account_is_gone_at_once_and_its_address_is_free(
    service: TestService,
) -> None:
    key, token, wrapper = await settled_in(service)
    operator = await service.app.operators.find_for_admin(EMAIL)
    wrapped = f"/wrap/{operator.id}{wrapper['path']}"
    await service.http.get("/operator/agent/7", headers=key)
    service.clock.move(86_400)
    token = await service.token()
    assert (await delete(service, token)).json() == {"ok": True}
    for headers, path in ((key, "/operator/agent/7"), (token, "/operator/me")):
        refused(await service.http.get(path, headers=headers), 401, "unauthorized")
    assert (await service.http.get(wrapped)).json()["code"] == "wrapper_not_found"
    login = {"email": EMAIL, "password": PASSWORD}
    refused(await service.http.post("/operator/login", json=login), 401, "unauthorized")
    await service.operator()
    assert (
        await service.http.get("/operator/me", headers=await service.token())
    ).status_code == 200


async def test_nothing_personal_is_left_and_calls_and_payments_stay(service: TestService) -> None:
    _, token, wrapper = await settled_in(service)
    renamed = {"name": "Otherwise"}
    assert (await service.http.patch("/operator/me", headers=token, json=renamed)).is_success
    wrong = {"email": EMAIL, "password": "wrong wrong wrong"}
    refused(await service.http.post("/operator/login", json=wrong), 401, "unauthorized")
    operator = await service.app.operators.find_for_admin(EMAIL)
    now = service.clock.now()
    service.app.call_log.add(call(operator.id, wrapper["id"], now))
    await claimed(service.app.ledger, payment(operator.id, wrapper["id"], now, 5))
    await service.app.flush()
    service.clock.move(86_400)
    token = await service.token()
    assert (await delete(service, token)).status_code == 200
    rows: dict[str, str] = {}
    async with service.app.database.read() as connection:
        for table in METADATA.sorted_tables:
            found = (await connection.execute(table.select())).all()
            rows[table.name] = repr([tuple(row) for row in found])
    everything = "".join(rows.values())
    for personal in (
        EMAIL,
        "'Op'",
        "argon2id",
        "mine alone",
        "x-of-mine-alone",
        "8999/hook",
        "first key",
        "Otherwise",
        "127.0.0.1:8999",
    ):
        assert personal not in everything, personal
    assert operator.id in rows["calls"]
    assert operator.id in rows["payments"]
    assert "127.0.0.1" not in rows["audit"]
    assert rows["audit"].count(operator.id) > 10
    for action in ("account.registered", "account.renamed", "key.issued", "account.deleted"):
        assert action in rows["audit"]
    assert rows["dashboard_sessions"] == rows["webhooks"] == rows["login_origins"] == "[]"


async def test_403_a_stolen_token_cannot_delete_the_account(service: TestService) -> None:
    await service.operator()
    token = await service.token()
    refused(await delete(service, token, password="x" * 12), 403, "password_wrong")
    assert (await service.http.get("/operator/me", headers=token)).status_code == 200


async def test_409_the_only_admin_stays(service: TestService) -> None:
    await service.operator()
    await service.app.operators.set_role_for_admin(EMAIL, Role.ADMIN)
    token = await service.token()
    refused(await delete(service, token), 409, "last_admin")
    await service.operator("two@example.com")
    await service.app.operators.set_role_for_admin("two@example.com", Role.ADMIN)
    assert (await delete(service, token)).status_code == 200


async def test_409_of_admins_that_take_each_others_role_at_once_one_is_left(
    service: TestService,
) -> None:
    tokens, ids = [], []
    for email in ("one@example.com", "two@example.com"):
        await service.operator(email)
        await service.app.operators.set_role_for_admin(email, Role.ADMIN)
        tokens.append(await service.token(email))
        ids.append((await service.app.operators.find_for_admin(email)).id)
    paths = [f"/operator/admin/operators/{one}" for one in reversed(ids)]
    for body in ({"suspended": True}, {"role": "operator"}):
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(service.http.patch(path, headers=token, json=body))
                for path, token in zip(paths, tokens, strict=True)
            ]
        statuses = sorted(task.result().status_code for task in asked)
        assert statuses[0] == 200
        assert statuses[1] in {403, 409}
        found = [await service.app.operators.find_for_admin(one) for one in ids]
        left = [one for one in found if one.role is Role.ADMIN and not one.is_suspended]
        assert len(left) == 1
        for one in ids:
            await service.app.operators.change_for_admin(
                one, AccountChange(role=Role.ADMIN, suspended=False)
            )


async def test_409_an_admin_cannot_end_itself_while_it_takes_the_others_role(
    service: TestService,
) -> None:
    ids = []
    for email in ("one@example.com", "two@example.com"):
        await service.operator(email)
        await service.app.operators.set_role_for_admin(email, Role.ADMIN)
        ids.append((await service.app.operators.find_for_admin(email)).id)
    one = await service.app.operators.find_for_admin(ids[0])
    await service.app.account_data.delete_for_admin(one.id)
    stale = Actor("admin", one.id)  # a request of its, let in a moment before
    with pytest.raises(LastAdmin):
        await service.app.operators.change_for_admin(
            ids[1], AccountChange(role=Role.OPERATOR), stale
        )


async def test_404_no_admin_restores_a_deleted_account(service: TestService) -> None:
    await service.operator()
    operator = await service.app.operators.find_for_admin(EMAIL)
    assert (await delete(service, await service.token())).status_code == 200
    await service.operator("admin@example.com")
    await service.app.operators.set_role_for_admin("admin@example.com", Role.ADMIN)
    answer = await service.http.patch(
        f"/operator/admin/operators/{operator.id}",
        headers=await service.token("admin@example.com"),
        json={"suspended": False},
    )
    refused(answer, 404, "operator_not_found")


async def test_another_process_refuses_the_keys_within_five_seconds_and_the_token_at_once(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    async with start_test_service(folder) as one, start_test_service(folder) as other:
        key = await one.operator()
        token = await one.token()
        assert (await other.http.get("/operator/agent/7", headers=key)).status_code == 200
        assert (await delete(one, token)).status_code == 200
        refused(await other.http.get("/operator/me", headers=token), 401, "unauthorized")
        other.clock.move(5)
        refused(await other.http.get("/operator/agent/7", headers=key), 401, "unauthorized")
