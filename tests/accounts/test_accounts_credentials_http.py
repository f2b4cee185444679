"""Who passes for whom at the dashboard's endpoints (interface.md#api-keys, #dashboard-tokens)."""

import base64
import json

import httpx2
import pytest

from assay.app.web import build
from tests.support.live_service import PASSWORD, TestService, refused


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic b3A6b3A=", "Bearer a.b.c", "Bearer \xff"]
)
async def test_401_without_a_token_nobody_is_known(service: TestService, header: str) -> None:
    headers = {"authorization": header.encode("latin-1")}
    answer = await service.http.get("/operator/me", headers=headers)
    refused(answer, 401, "unauthorized")
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_401_the_algorithm_is_ours_to_say_and_not_the_tokens(service: TestService) -> None:
    """RFC 8725, section 3.1."""
    await service.operator()
    token = (await service.token())["authorization"].removeprefix("Bearer ")
    _, claims, signature = token.split(".")
    none = base64.urlsafe_b64encode(json.dumps({"alg": "none", "typ": "JWT"}).encode())
    unsigned = none.decode().rstrip("=")
    for forged in (f"{unsigned}.{claims}.", f"{unsigned}.{claims}.{signature}"):
        headers = {"authorization": f"Bearer {forged}"}
        refused(await service.http.get("/operator/me", headers=headers), 401, "unauthorized")


async def test_401_who_may_not_ask_is_told_so_before_the_body_is_judged(
    service: TestService,
) -> None:
    headers = await service.operator()
    answer = await service.http.patch("/operator/me", headers=headers, content=b"{")
    refused(answer, 401, "unauthorized")


async def test_401_a_stolen_api_key_can_neither_make_nor_see_nor_end_keys(
    service: TestService,
) -> None:
    key = await service.operator()
    (record,) = (await service.http.get("/operator/keys", headers=await service.token())).json()
    for method, path in (
        ("GET", "/operator/keys"),
        ("POST", "/operator/keys/rotate"),
        ("DELETE", f"/operator/keys/{record['id']}"),
    ):
        refused(await service.http.request(method, path, headers=key), 401, "unauthorized")


async def test_401_who_takes_an_api_key_for_a_dashboard_token_is_told(service: TestService) -> None:
    answer = await service.http.get("/operator/me", headers=await service.operator())
    assert "not an API key" in refused(answer, 401, "unauthorized")["message"]


async def test_401_a_dashboard_token_is_no_api_key(service: TestService) -> None:
    await service.operator()
    path = "/operator/key/0x" + "a" * 40
    refused(await service.http.get(path, headers=await service.token()), 401, "unauthorized")


async def test_somebody_elses_failures_do_not_lock_the_owner_out(service: TestService) -> None:
    await service.operator()
    wrong = {"email": "op@example.com", "password": "wrong wrong wrong"}
    for _ in range(6):
        last = await service.http.post("/operator/login", json=wrong)
    assert last.status_code == 429
    elsewhere = httpx2.ASGITransport(build(service.app), client=("198.51.100.7", 1))
    async with httpx2.AsyncClient(transport=elsewhere, base_url="http://a") as owner:
        right = {"email": "op@example.com", "password": PASSWORD}
        assert (await owner.post("/operator/login", json=right)).status_code == 200


async def test_400_a_password_is_never_repeated(service: TestService) -> None:
    body = {"email": "a@b.cc", "password": "hush-hush", "name": "A"}
    answer = await service.http.post("/operator/register", json=body)
    refused(answer, 400, "invalid_request")
    assert "hush-hush" not in answer.text
