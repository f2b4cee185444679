"""A second factor: enrolled, asked for, spent, lost (conventions.md#account-security)."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import httpx2
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from assay.accounts.model import Role
from tests.support.live_service import PASSWORD, TestService, refused, start_test_service

EMAIL = "op@example.com"


class Authenticator:
    """What an owner has in its pocket."""

    def __init__(self, service: TestService, secret: str) -> None:
        self._house = service
        self._totp = TOTP(base64.b32decode(secret), 6, SHA1(), 30)  # noqa: S303 - RFC 6238

    def code(self, steps: int = 0) -> str:
        now = int(self._house.clock.now().timestamp())
        return self._totp.generate(now + steps * 30).decode()

    def wrong(self) -> str:
        near = {self.code(steps) for steps in (-1, 0, 1)}
        return next(text for n in range(10) if (text := f"{n}" * 6) not in near)


async def post(
    service: TestService, path: str, token: dict[str, str], **body: Any
) -> httpx2.Response:
    return await service.http.post(f"/operator/{path}", headers=token, json=body)


async def enrolled(
    service: TestService, token: dict[str, str] | None = None
) -> tuple[Authenticator, list[str]]:
    """An account with a second factor, and its recovery codes."""
    if token is None:
        await service.operator()
        token = await service.token()
    made = (await post(service, "totp", token, password=PASSWORD)).json()
    assert made["uri"].startswith("otpauth://totp/Assay:op%40example.com?")
    pocket = Authenticator(service, made["secret"])
    confirmed = await post(service, "totp/confirm", token, code=pocket.code())
    assert confirmed.status_code == 200, confirmed.text
    service.clock.move(30)  # the code that confirmed is spent
    return pocket, confirmed.json()["recoveryCodes"]


async def login(service: TestService, **more: str) -> httpx2.Response:
    body = {"email": EMAIL, "password": PASSWORD, **more}
    return await service.http.post("/operator/login", json=body)


async def test_401_a_login_without_a_code_says_that_one_is_needed(service: TestService) -> None:
    pocket, codes = await enrolled(service)
    assert len(set(codes)) == 10
    refused(await login(service), 401, "totp_required")
    assert (await login(service, code=pocket.code())).status_code == 200
    refused(await login(service, code=pocket.code(), password="x" * 12), 401, "unauthorized")


async def test_401_a_code_is_good_once_and_so_are_those_before_it(service: TestService) -> None:
    pocket, _ = await enrolled(service)
    code, before = pocket.code(), pocket.code(-1)
    assert (await login(service, code=code)).status_code == 200
    refused(await login(service, code=code), 401, "totp_invalid")
    refused(await login(service, code=before), 401, "totp_invalid")
    service.clock.move(30)
    assert (await login(service, code=pocket.code())).status_code == 200


async def test_401_of_logins_at_once_with_one_code_one_succeeds(service: TestService) -> None:
    pocket, codes = await enrolled(service)
    for code in (pocket.code(), codes[0]):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(login(service, code=code)) for _ in range(3)]
        statuses = sorted(task.result().status_code for task in tasks)
        assert statuses == [200, 401, 401]


async def test_401_a_code_of_the_neighbouring_step_is_taken_and_none_further_off(
    service: TestService,
) -> None:
    pocket, _ = await enrolled(service)
    service.clock.move(90)
    refused(await login(service, code=pocket.code(-2)), 401, "totp_invalid")
    refused(await login(service, code=pocket.code(2)), 401, "totp_invalid")
    assert (await login(service, code=pocket.code(-1))).status_code == 200
    assert (await login(service, code=pocket.code(1))).status_code == 200


async def test_429_wrong_codes_are_counted_though_the_password_is_right(
    service: TestService,
) -> None:
    pocket, _ = await enrolled(service)
    for _ in range(5):
        refused(await login(service, code=pocket.wrong()), 401, "totp_invalid")
        assert (await login(service)).json()["code"] in {"totp_required", "rate_limited"}
    answer = await login(service, code=pocket.code())
    refused(answer, 429, "rate_limited")
    service.clock.move(int(answer.headers["retry-after"]))
    assert (await login(service, code=pocket.code())).status_code == 200


async def test_a_login_that_lacks_a_code_is_no_failure_and_forgives_none(
    service: TestService,
) -> None:
    await enrolled(service)
    for _ in range(10):
        refused(await login(service), 401, "totp_required")
    for _ in range(5):
        refused(await login(service, password="x" * 12), 401, "unauthorized")
        refused(await login(service), *((401, "totp_required") if _ < 4 else (429, "rate_limited")))


async def test_200_a_recovery_code_stands_for_a_code_once_however_it_is_typed(
    service: TestService,
) -> None:
    _, codes = await enrolled(service)
    typed = codes[3].replace("-", " ").lower()
    logged_in = await login(service, code=typed)
    assert logged_in.status_code == 200
    refused(await login(service, code=codes[3]), 401, "totp_invalid")
    token = {"authorization": f"Bearer {logged_in.json()['token']}"}
    me = (await service.http.get("/operator/me", headers=token)).json()
    assert me["security"] == {
        "emailVerified": False, "totpEnabled": True, "recoveryCodesLeft": 9,
    }  # fmt: skip


async def test_200_new_recovery_codes_void_the_old_ones(service: TestService) -> None:
    await service.operator()
    token = await service.token()
    pocket, old = await enrolled(service, token)
    answer = await post(
        service, "totp/recovery-codes", token, password=PASSWORD, code=pocket.code()
    )
    new = answer.json()["recoveryCodes"]
    assert set(new).isdisjoint(old)
    refused(await login(service, code=old[0]), 401, "totp_invalid")
    assert (await login(service, code=new[0])).status_code == 200


async def test_403_a_stolen_token_neither_enrols_nor_removes_a_second_factor(
    service: TestService,
) -> None:
    await service.operator()
    token = await service.token()
    refused(await post(service, "totp", token, password="x" * 12), 403, "password_wrong")
    pocket, _ = await enrolled(service, token)
    wrong = {"password": "x" * 12, "code": pocket.code()}
    refused(await post(service, "totp/disable", token, **wrong), 403, "password_wrong")
    no_code = {"password": PASSWORD, "code": pocket.wrong()}
    refused(await post(service, "totp/disable", token, **no_code), 401, "totp_invalid")
    refused(await post(service, "totp", token, password=PASSWORD), 409, "totp_conflict")
    right = {"password": PASSWORD, "code": pocket.code()}
    assert (await post(service, "totp/disable", token, **right)).status_code == 200
    assert (await login(service)).status_code == 200
    refused(await post(service, "totp/disable", token, **right), 409, "totp_conflict")


async def test_an_enrolment_that_is_not_confirmed_changes_nothing(service: TestService) -> None:
    await service.operator()
    token = await service.token()
    refused(await post(service, "totp/confirm", token, code="123456"), 409, "totp_conflict")
    made = (await post(service, "totp", token, password=PASSWORD)).json()
    pocket = Authenticator(service, made["secret"])
    refused(await post(service, "totp/confirm", token, code=pocket.wrong()), 401, "totp_invalid")
    assert (await login(service)).status_code == 200


async def test_200_a_reset_of_the_password_leaves_the_second_factor(service: TestService) -> None:
    pocket, _ = await enrolled(service)
    operator = await service.app.operators.find_for_admin(EMAIL)
    await service.app.passwords.set_for_admin(operator, "another horse battery")
    refused(await login(service, password="another horse battery"), 401, "totp_required")
    more = {"password": "another horse battery", "code": pocket.code()}
    assert (await login(service, **more)).status_code == 200


async def test_neither_secret_nor_recovery_code_is_stored_in_the_clear(
    service: TestService,
) -> None:
    await service.operator()
    token = await service.token()
    made = (await post(service, "totp", token, password=PASSWORD)).json()
    pocket = Authenticator(service, made["secret"])
    answer = await post(service, "totp/confirm", token, code=pocket.code())
    folder = service.app.settings.data_dir
    stored = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert base64.b32decode(made["secret"]) not in stored
    for code in answer.json()["recoveryCodes"]:
        assert code.encode() not in stored
        assert code.replace("-", "").encode() not in stored


async def test_a_sealed_secret_is_sealed_anew_under_the_newest_key(tmp_path: Path) -> None:
    old, new = "o" * 40, "n" * 40
    folder = tmp_path / "data"
    async with start_test_service(folder, upstream_secrets=[old]) as service:
        await service.operator()
        token = await service.token()
        made = (await post(service, "totp", token, password=PASSWORD)).json()
        code = Authenticator(service, made["secret"]).code()
        assert (await post(service, "totp/confirm", token, code=code)).status_code == 200
    async with start_test_service(folder, upstream_secrets=[new, old]) as service:
        (operator,) = await service.app.operators.list_for_admin()
        assert await service.app.second_factors.reseal(operator.id) == 1
        assert await service.app.second_factors.reseal(operator.id) == 0
    async with start_test_service(folder, upstream_secrets=[new]) as service:
        service.clock.move(60)
        code = Authenticator(service, made["secret"]).code()
        assert (await login(service, code=code)).status_code == 200
    async with start_test_service(folder, upstream_secrets=["x" * 40]) as service:
        service.clock.move(120)
        refused(await login(service, code="123456"), 503, "temporarily_unavailable")


async def test_403_admins_without_one_are_refused_where_it_is_required(tmp_path: Path) -> None:
    async with start_test_service(tmp_path / "data", admin_totp="required") as service:
        await service.operator()
        await service.app.operators.set_role_for_admin(EMAIL, Role.ADMIN)
        token = await service.token()
        refused(
            await service.http.get("/operator/admin/stats", headers=token),
            403,
            "totp_enrolment_required",
        )
        await enrolled(service, token)
        assert (await service.http.get("/operator/admin/stats", headers=token)).status_code == 200


async def test_the_terminal_removes_a_lost_second_factor(service: TestService) -> None:
    await enrolled(service)
    operator = await service.app.operators.find_for_admin(EMAIL)
    assert await service.app.second_factors.disable_for_admin(operator.id) is True
    assert await service.app.second_factors.disable_for_admin(operator.id) is False
    assert (await login(service)).status_code == 200
