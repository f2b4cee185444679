"""Register, login, me (interface.md#dashboard, #dashboard-tokens), by status."""

import pytest

from tests.support.live_service import PASSWORD, TestService, refused

ACCOUNT = {"email": "Ann@example.com", "password": PASSWORD, "name": "Ann"}


async def test_register_200_gives_the_account_and_a_key_that_works(service: TestService) -> None:
    answer = (await service.http.post("/operator/register", json=ACCOUNT)).json()
    assert answer["operator"].keys() == {"id", "email", "name", "role"}
    assert answer["operator"]["role"] == "operator"
    assert answer["apiKey"].startswith("svc_op_")
    key = {"authorization": f"Bearer {answer['apiKey']}"}
    assert (await service.http.get("/operator/agent/7", headers=key)).status_code == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"email": "nobody"}, {"email": "a@b"}, {"email": "a b@c.dd"},
        {"email": "a@" + "b" * 300 + ".cc"},
        {"password": "short"}, {"password": "x" * 257}, {"name": ""}, {"name": "   "},
        {"name": "a\u0000b"}, {"name": "x" * 101}, {"name": None}, {"email": 5}, {"role": "admin"},
        {"plan": "pro"}, {"name": "a\u202eb"},
    ],
    ids=str,
)  # fmt: skip
async def test_register_400_says_what_is_wrong(
    service: TestService, wrong: dict[str, object]
) -> None:
    answer = await service.http.post("/operator/register", json=ACCOUNT | wrong)
    assert refused(answer, 400, "invalid_request")["details"][0]["loc"][0] == "body"


async def test_register_400_a_lone_surrogate_or_nul_is_no_fault_of_ours(
    service: TestService,
) -> None:
    for name in (b'"\\ud800"', b'"\\u0000"', b'"\xff"'):
        body = b'{"email": "a@b.cc", "password": "correct horse battery", "name": ' + name + b"}"
        refused(await service.http.post("/operator/register", content=body), 400, "invalid_request")


async def test_register_409_an_address_is_taken_in_any_case(service: TestService) -> None:
    await service.http.post("/operator/register", json=ACCOUNT)
    again = await service.http.post(
        "/operator/register", json=ACCOUNT | {"email": "ann@EXAMPLE.com"}
    )
    refused(again, 409, "email_taken")


async def test_login_200_gives_a_token_that_works(service: TestService) -> None:
    await service.operator()
    me = await service.http.get("/operator/me", headers=await service.token())
    assert me.json()["operator"]["email"] == "op@example.com"


async def test_login_401_says_the_same_for_unknown_and_wrong(service: TestService) -> None:
    await service.operator()
    wrong = {"email": "op@example.com", "password": "wrong wrong wrong"}
    unknown = wrong | {"email": "nobody@example.com"}
    said = [
        refused(await service.http.post("/operator/login", json=body), 401, "unauthorized")[
            "message"
        ]
        for body in (wrong, unknown)
    ]
    assert said[0] == said[1]


async def test_login_429_guessing_is_slowed_down_and_then_forgiven(service: TestService) -> None:
    await service.operator()
    wrong = {"email": "op@example.com", "password": "wrong wrong wrong"}
    for _ in range(5):
        await service.http.post("/operator/login", json=wrong)
    answer = await service.http.post("/operator/login", json=wrong)
    refused(answer, 429, "rate_limited")
    service.clock.move(int(answer.headers["retry-after"]))
    right = {"email": "op@example.com", "password": PASSWORD}
    assert (await service.http.post("/operator/login", json=right)).status_code == 200


async def test_me_200_shows_the_account_as_the_specification_writes_it(
    service: TestService,
) -> None:
    await service.operator()
    me = (await service.http.get("/operator/me", headers=await service.token())).json()
    assert me["ok"] is True
    fields = {"id", "email", "name", "role", "plan", "fee_rate", "created_at", "updated_at"}
    assert me["operator"].keys() == fields
    assert (me["operator"]["plan"], me["operator"]["fee_rate"]) == ("free", "0.00")


async def test_me_patch_200_changes_the_name_and_nothing_else(service: TestService) -> None:
    await service.operator()
    token = await service.token()
    service.clock.move(1)
    changed = await service.http.patch("/operator/me", headers=token, json={"name": " Bea "})
    assert changed.json()["operator"]["name"] == "Bea"
    other = await service.http.patch("/operator/me", headers=token, json={"plan": "pro"})
    refused(other, 400, "invalid_request")


async def test_me_401_an_api_key_or_an_old_token_is_no_dashboard_token(
    service: TestService,
) -> None:
    key = await service.operator()
    refused(await service.http.get("/operator/me", headers=key), 401, "unauthorized")
    refused(await service.http.get("/operator/me"), 401, "unauthorized")
    token = await service.token()
    service.clock.move(12 * 3600 + 1)
    refused(await service.http.get("/operator/me", headers=token), 401, "unauthorized")


async def test_plan_and_role_are_the_stores_and_not_the_tokens(service: TestService) -> None:
    await service.operator()
    token = await service.token()
    await service.pro()
    me = (await service.http.get("/operator/me", headers=token)).json()
    assert me["operator"]["plan"] == "pro"
