"""API keys (interface.md#api-key-record, #dashboard), by status, and between two operators."""

import pytest

from tests.support.live_service import TestService, refused


async def test_200_keys_are_listed_without_their_secret(service: TestService) -> None:
    key = (await service.operator())["authorization"].removeprefix("Bearer ")
    (listed,) = (await service.http.get("/operator/keys", headers=await service.token())).json()
    specified = {"id", "keyPrefix", "label", "revoked", "lastUsed", "createdAt"}
    assert listed.keys() == specified | {"scopes", "expiresAt"}
    assert key.startswith(listed["keyPrefix"])
    assert len(listed["keyPrefix"]) < 20
    assert listed["lastUsed"] is None


async def test_200_a_used_key_says_when(service: TestService) -> None:
    key = await service.operator()
    await service.http.get("/operator/agent/7", headers=key)
    (listed,) = (await service.http.get("/operator/keys", headers=await service.token())).json()
    assert listed["lastUsed"] == "2026-03-01T12:00:00.000Z"


async def test_200_rotating_makes_another_key_and_leaves_the_old_one(service: TestService) -> None:
    old = await service.operator()
    token = await service.token()
    made = (
        await service.http.post("/operator/keys/rotate", headers=token, json={"label": "ci"})
    ).json()
    assert made.keys() == {"key", "id", "label"}
    assert made["label"] == "ci"
    for key in (old, {"authorization": f"Bearer {made['key']}"}):
        assert (await service.http.get("/operator/agent/7", headers=key)).status_code == 200
    assert (await service.http.post("/operator/keys/rotate", headers=token)).json()["label"] is None


@pytest.mark.parametrize("label", ["", "x" * 101, 5, "a\nb"])
async def test_400_a_label_that_does_not_hold(service: TestService, label: object) -> None:
    await service.operator()
    answer = await service.http.post(
        "/operator/keys/rotate", headers=await service.token(), json={"label": label}
    )
    refused(answer, 400, "invalid_request")


async def test_404_another_operators_key_is_not_there(service: TestService) -> None:
    await service.operator("one@example.com")
    theirs = await service.operator("two@example.com")
    one, two = await service.token("one@example.com"), await service.token("two@example.com")
    (key,) = (await service.http.get("/operator/keys", headers=two)).json()
    refused(
        await service.http.delete(f"/operator/keys/{key['id']}", headers=one), 404, "key_not_found"
    )
    assert (await service.http.get("/operator/agent/7", headers=theirs)).status_code == 200
    mine = (await service.http.get("/operator/keys", headers=one)).json()
    assert key["id"] not in [k["id"] for k in mine]


async def test_401_nothing_without_a_token(service: TestService) -> None:
    for method, path in (
        ("GET", "/operator/keys"),
        ("POST", "/operator/keys/rotate"),
        ("DELETE", "/operator/keys/x"),
    ):
        refused(await service.http.request(method, path), 401, "unauthorized")
