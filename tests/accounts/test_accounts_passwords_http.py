"""Passwords changed and reset, with mail through a real server.

Source: conventions.md#account-security.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.live_service import PASSWORD, TestService, refused, start_test_service
from tests.support.mail import Inbox, mail_server

NEW = "another horse battery"
EMAIL = "op@example.com"


async def login(service: TestService, password: str, email: str = EMAIL) -> httpx2.Response:
    return await service.http.post("/operator/login", json={"email": email, "password": password})


async def change(service: TestService, token: dict[str, str], **body: Any) -> httpx2.Response:
    asked = {"password": PASSWORD, "newPassword": NEW, **body}
    return await service.http.post("/operator/password", headers=token, json=asked)


async def reset(service: TestService, token: str, **more: Any) -> httpx2.Response:
    body = {"token": token, "newPassword": NEW, **more}
    return await service.http.post("/operator/password/reset", json=body)


async def link_of(service: TestService) -> str:
    """The token of a link made for the terminal."""
    operator = await service.app.operators.find_for_admin(EMAIL)
    made = await service.app.passwords.reset_link_for_admin(operator)
    assert made is not None
    base, _, token = made[0].partition("#reset=")
    assert base == f"{service.app.settings.address}/account"
    return token


async def test_200_a_new_password_ends_every_other_session_and_no_key(service: TestService) -> None:
    key = await service.operator()
    token, other = await service.token(), await service.token()
    answer = await change(service, token)
    assert answer.json() == {"ok": True, "sessionsEnded": 1, "keysRevoked": 0, "keysLeft": 1}
    assert (await service.http.get("/operator/me", headers=token)).status_code == 200
    refused(await service.http.get("/operator/me", headers=other), 401, "unauthorized")
    assert (await service.http.get("/operator/agent/7", headers=key)).status_code == 200
    refused(await login(service, PASSWORD), 401, "unauthorized")
    assert (await login(service, NEW)).status_code == 200


async def test_200_keys_are_revoked_with_it_when_that_is_asked_for(service: TestService) -> None:
    key = await service.operator()
    await service.http.get("/operator/agent/7", headers=key)
    answer = await change(service, await service.token(), revokeKeys=True)
    assert (answer.json()["keysRevoked"], answer.json()["keysLeft"]) == (1, 0)
    refused(await service.http.get("/operator/agent/7", headers=key), 401, "unauthorized")


async def test_403_a_stolen_token_cannot_change_the_password_nor_guess_it(
    service: TestService,
) -> None:
    await service.operator()
    token = await service.token()
    for _ in range(5):
        refused(await change(service, token, password="x" * 12), 403, "password_wrong")
    refused(await change(service, token), 429, "rate_limited")
    service.clock.move(2)
    assert (await change(service, token)).status_code == 200


async def test_400_a_new_password_keeps_to_the_rules(service: TestService) -> None:
    await service.operator()
    refused(
        await change(service, await service.token(), newPassword="short"), 400, "invalid_request"
    )
    refused(
        await reset(service, await link_of(service), newPassword="x" * 257), 400, "invalid_request"
    )


async def test_200_a_reset_link_is_good_once_ends_all_sessions_and_offers_to_revoke_keys(
    service: TestService,
) -> None:
    key = await service.operator()
    token = await service.token()
    link = await link_of(service)
    assert (await reset(service, link)).json() == {
        "ok": True, "sessionsEnded": 1, "keysRevoked": 0, "keysLeft": 1,
    }  # fmt: skip
    refused(await service.http.get("/operator/me", headers=token), 401, "unauthorized")
    refused(await reset(service, link, newPassword="a third battery"), 400, "token_invalid")
    assert (await login(service, NEW)).status_code == 200
    again = await reset(service, await link_of(service), revokeKeys=True)
    assert (again.json()["keysRevoked"], again.json()["keysLeft"]) == (1, 0)
    refused(await service.http.get("/operator/agent/7", headers=key), 401, "unauthorized")


async def test_400_of_two_resets_at_once_with_one_link_one_succeeds(service: TestService) -> None:
    await service.operator()
    link = await link_of(service)
    async with asyncio.TaskGroup() as group:
        tried = [
            group.create_task(reset(service, link, newPassword=f"battery number {n}"))
            for n in range(5)
        ]
    statuses = [task.result().status_code for task in tried]
    assert sorted(statuses) == [200, 400, 400, 400, 400]
    won = statuses.index(200)
    assert (await login(service, f"battery number {won}")).status_code == 200


async def test_400_a_link_ends_after_half_an_hour_and_with_the_use_of_another(
    service: TestService,
) -> None:
    await service.operator()
    first = await link_of(service)
    service.clock.move(30 * 60)
    refused(await reset(service, first), 400, "token_invalid")
    second, third = await link_of(service), await link_of(service)
    service.clock.move(30 * 60 - 1)
    assert (await reset(service, second)).status_code == 200
    refused(await reset(service, third, newPassword="a third battery"), 400, "token_invalid")


async def test_an_account_has_three_links_in_half_an_hour(service: TestService) -> None:
    await service.operator()
    operator = await service.app.operators.find_for_admin(EMAIL)
    made = [await service.app.passwords.reset_link_for_admin(operator) for _ in range(4)]
    assert [link is not None for link in made] == [True, True, True, False]


async def test_no_token_of_a_link_is_stored_or_shown(service: TestService) -> None:
    await service.operator()
    link = await link_of(service)
    await reset(service, link)
    await service.app.flush()
    folder = service.app.settings.data_dir
    stored = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert EMAIL.encode() in stored
    assert link.encode() not in stored


async def test_a_login_under_way_with_the_old_password_begins_no_session(
    service: TestService,
) -> None:
    """A log-in that has checked the old password, and a reset that is committed meanwhile."""
    await service.operator()
    logins: Any = service.app.logins
    begun, go_on = asyncio.Event(), asyncio.Event()
    begin = logins._begin

    async def held(*given: Any) -> Any:
        begun.set()
        await go_on.wait()
        return await begin(*given)

    logins._begin = held
    under_way = asyncio.ensure_future(login(service, PASSWORD))
    await begun.wait()
    assert (await reset(service, await link_of(service))).status_code == 200
    go_on.set()
    refused(await under_way, 401, "unauthorized")


# -- by mail -------------------------------------------------------------------------------------


@pytest.fixture
def inbox() -> Any:
    with mail_server() as opened:
        yield opened


@pytest.fixture
async def posting(tmp_path: Path, inbox: tuple[Inbox, int]) -> AsyncGenerator[TestService]:
    """A service that sends mail."""
    async with start_test_service(
        tmp_path / "data",
        smtp_url=f"smtp+plain://127.0.0.1:{inbox[1]}",
        smtp_from="Assay <no-reply@assay.example>",
        account_url="https://assay.example/account",
    ) as opened:
        yield opened


async def sent(service: TestService) -> None:
    assert service.app.outbox is not None
    await service.app.outbox.idle()


async def ask(service: TestService, email: str = EMAIL) -> httpx2.Response:
    return await service.http.post("/operator/password/reset-request", json={"email": email})


def token_in(inbox: Inbox, name: str) -> str:
    found = re.search(
        rf"https://assay\.example/account#{name}=([0-9A-Za-z]{{43}})\s", inbox.newest()
    )
    assert found is not None, inbox.newest()
    return found[1]


async def verified(service: TestService, inbox: Inbox) -> None:
    """A new account whose address is confirmed."""
    await service.operator()
    await sent(service)
    body = {"token": token_in(inbox, "verify")}
    answer = await service.http.post("/operator/email/verify", json=body)
    assert answer.status_code == 200, answer.text


async def test_200_a_verified_address_gets_a_link_that_works(
    posting: TestService, inbox: tuple[Inbox, int]
) -> None:
    await verified(posting, inbox[0])
    me = await posting.http.get("/operator/me", headers=await posting.token())
    assert me.json()["security"]["emailVerified"] is True
    assert (await ask(posting, EMAIL.upper())).json() == {"ok": True}
    await sent(posting)
    mail = inbox[0].mails[-1]
    assert (mail["To"], mail["From"]) == (EMAIL, "Assay <no-reply@assay.example>")
    assert (await reset(posting, token_in(inbox[0], "reset"))).status_code == 200
    assert (await login(posting, NEW)).status_code == 200


async def test_200_an_unverified_or_unknown_or_suspended_account_gets_no_mail_and_the_same_answer(
    posting: TestService, inbox: tuple[Inbox, int]
) -> None:
    await verified(posting, inbox[0])
    await posting.operator("unverified@example.com")
    await posting.operator("suspended@example.com")
    await posting.app.operators.suspend_for_admin("suspended@example.com", suspended=True)
    await sent(posting)
    before = len(inbox[0].mails)
    strangers = (
        "unverified@example.com",
        "suspended@example.com",
        "nobody@example.com",
        "nonsense",
    )
    answers = [await ask(posting, email) for email in strangers]
    await sent(posting)
    assert len(inbox[0].mails) == before
    answers.append(await ask(posting))
    assert {(a.status_code, json.dumps(a.json())) for a in answers} == {(200, '{"ok": true}')}
    assert [sorted(a.headers) for a in answers] == [sorted(answers[0].headers)] * len(answers)


async def test_429_mails_are_bounded_by_network_and_silently_by_account(
    posting: TestService, inbox: tuple[Inbox, int]
) -> None:
    await verified(posting, inbox[0])
    before = len(inbox[0].mails)
    statuses = [(await ask(posting)).status_code for _ in range(25)]
    await sent(posting)
    assert statuses == [200] * 20 + [429] * 5  # a verification with a good token is none
    assert len(inbox[0].mails) == before + 2  # from a network the account is known from


async def test_400_a_verification_of_another_kind_or_a_second_time_is_not_good(
    posting: TestService, inbox: tuple[Inbox, int]
) -> None:
    await verified(posting, inbox[0])
    token = token_in(inbox[0], "verify")
    body = {"token": token}
    again = await posting.http.post("/operator/email/verify", json=body)
    refused(again, 400, "token_invalid")
    refused(await reset(posting, token), 400, "token_invalid")


async def test_a_server_that_is_gone_is_no_fault_of_the_caller(tmp_path: Path) -> None:
    gone = {"smtp_url": "smtp+plain://127.0.0.1:9", "smtp_from": "a@b.cc"}
    async with start_test_service(tmp_path / "data", **gone) as service:
        await service.operator()
        assert (await ask(service)).status_code == 200
        await sent(service)


async def test_403_without_a_mail_server_it_is_said_to_everybody_alike(
    service: TestService,
) -> None:
    await service.operator()
    for email in (EMAIL, "nobody@example.com"):
        refused(await ask(service, email), 403, "mail_disabled")
    token = await service.token()
    answer = await service.http.post("/operator/email/verify-request", headers=token)
    refused(answer, 403, "mail_disabled")
