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

from tests.support.house import PASSWORD, House, open_house, refused
from tests.support.mail import Inbox, mail_server

NEW = "another horse battery"
EMAIL = "op@example.com"


async def login(house: House, password: str, email: str = EMAIL) -> httpx2.Response:
    return await house.http.post("/operator/login", json={"email": email, "password": password})


async def change(house: House, token: dict[str, str], **body: Any) -> httpx2.Response:
    asked = {"password": PASSWORD, "newPassword": NEW, **body}
    return await house.http.post("/operator/password", headers=token, json=asked)


async def reset(house: House, token: str, **more: Any) -> httpx2.Response:
    body = {"token": token, "newPassword": NEW, **more}
    return await house.http.post("/operator/password/reset", json=body)


async def link_of(house: House) -> str:
    """The token of a link made for the terminal."""
    operator = await house.app.operators.find_for_admin(EMAIL)
    made = await house.app.passwords.reset_link_for_admin(operator)
    assert made is not None
    base, _, token = made[0].partition("#reset=")
    assert base == f"{house.app.settings.address}/account"
    return token


async def test_200_a_new_password_ends_every_other_session_and_no_key(house: House) -> None:
    key = await house.operator()
    token, other = await house.token(), await house.token()
    answer = await change(house, token)
    assert answer.json() == {"ok": True, "sessionsEnded": 1, "keysRevoked": 0, "keysLeft": 1}
    assert (await house.http.get("/operator/me", headers=token)).status_code == 200
    refused(await house.http.get("/operator/me", headers=other), 401, "unauthorized")
    assert (await house.http.get("/operator/agent/7", headers=key)).status_code == 200
    refused(await login(house, PASSWORD), 401, "unauthorized")
    assert (await login(house, NEW)).status_code == 200


async def test_200_keys_are_revoked_with_it_when_that_is_asked_for(house: House) -> None:
    key = await house.operator()
    await house.http.get("/operator/agent/7", headers=key)
    answer = await change(house, await house.token(), revokeKeys=True)
    assert (answer.json()["keysRevoked"], answer.json()["keysLeft"]) == (1, 0)
    refused(await house.http.get("/operator/agent/7", headers=key), 401, "unauthorized")


async def test_403_a_stolen_token_cannot_change_the_password_nor_guess_it(house: House) -> None:
    await house.operator()
    token = await house.token()
    for _ in range(5):
        refused(await change(house, token, password="x" * 12), 403, "password_wrong")
    refused(await change(house, token), 429, "rate_limited")
    house.clock.move(2)
    assert (await change(house, token)).status_code == 200


async def test_400_a_new_password_keeps_to_the_rules(house: House) -> None:
    await house.operator()
    refused(await change(house, await house.token(), newPassword="short"), 400, "invalid_request")
    refused(await reset(house, await link_of(house), newPassword="x" * 257), 400, "invalid_request")


async def test_200_a_reset_link_is_good_once_ends_all_sessions_and_offers_to_revoke_keys(
    house: House,
) -> None:
    key = await house.operator()
    token = await house.token()
    link = await link_of(house)
    assert (await reset(house, link)).json() == {
        "ok": True, "sessionsEnded": 1, "keysRevoked": 0, "keysLeft": 1,
    }  # fmt: skip
    refused(await house.http.get("/operator/me", headers=token), 401, "unauthorized")
    refused(await reset(house, link, newPassword="a third battery"), 400, "token_invalid")
    assert (await login(house, NEW)).status_code == 200
    again = await reset(house, await link_of(house), revokeKeys=True)
    assert (again.json()["keysRevoked"], again.json()["keysLeft"]) == (1, 0)
    refused(await house.http.get("/operator/agent/7", headers=key), 401, "unauthorized")


async def test_400_of_two_resets_at_once_with_one_link_one_succeeds(house: House) -> None:
    await house.operator()
    link = await link_of(house)
    async with asyncio.TaskGroup() as group:
        tried = [
            group.create_task(reset(house, link, newPassword=f"battery number {n}"))
            for n in range(5)
        ]
    statuses = [task.result().status_code for task in tried]
    assert sorted(statuses) == [200, 400, 400, 400, 400]
    won = statuses.index(200)
    assert (await login(house, f"battery number {won}")).status_code == 200


async def test_400_a_link_ends_after_half_an_hour_and_with_the_use_of_another(
    house: House,
) -> None:
    await house.operator()
    first = await link_of(house)
    house.clock.move(30 * 60)
    refused(await reset(house, first), 400, "token_invalid")
    second, third = await link_of(house), await link_of(house)
    house.clock.move(30 * 60 - 1)
    assert (await reset(house, second)).status_code == 200
    refused(await reset(house, third, newPassword="a third battery"), 400, "token_invalid")


async def test_an_account_has_three_links_in_half_an_hour(house: House) -> None:
    await house.operator()
    operator = await house.app.operators.find_for_admin(EMAIL)
    made = [await house.app.passwords.reset_link_for_admin(operator) for _ in range(4)]
    assert [link is not None for link in made] == [True, True, True, False]


async def test_no_token_of_a_link_is_stored_or_shown(house: House) -> None:
    await house.operator()
    link = await link_of(house)
    await reset(house, link)
    await house.app.flush()
    folder = house.app.settings.data_dir
    stored = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert EMAIL.encode() in stored
    assert link.encode() not in stored


async def test_a_login_under_way_with_the_old_password_begins_no_session(house: House) -> None:
    """A log-in that has checked the old password, and a reset that is committed meanwhile."""
    await house.operator()
    logins: Any = house.app.logins
    begun, go_on = asyncio.Event(), asyncio.Event()
    begin = logins._begin

    async def held(*given: Any) -> Any:
        begun.set()
        await go_on.wait()
        return await begin(*given)

    logins._begin = held
    under_way = asyncio.ensure_future(login(house, PASSWORD))
    await begun.wait()
    assert (await reset(house, await link_of(house))).status_code == 200
    go_on.set()
    refused(await under_way, 401, "unauthorized")


# -- by mail -------------------------------------------------------------------------------------


@pytest.fixture
def inbox() -> Any:
    with mail_server() as opened:
        yield opened


@pytest.fixture
async def posting(tmp_path: Path, inbox: tuple[Inbox, int]) -> AsyncGenerator[House]:
    """A house that sends mail."""
    async with open_house(
        tmp_path / "data",
        smtp_url=f"smtp+plain://127.0.0.1:{inbox[1]}",
        smtp_from="Assay <no-reply@assay.example>",
        account_url="https://assay.example/account",
    ) as opened:
        yield opened


async def sent(house: House) -> None:
    assert house.app.outbox is not None
    await house.app.outbox.idle()


async def ask(house: House, email: str = EMAIL) -> httpx2.Response:
    return await house.http.post("/operator/password/reset-request", json={"email": email})


def token_in(inbox: Inbox, name: str) -> str:
    found = re.search(
        rf"https://assay\.example/account#{name}=([0-9A-Za-z]{{43}})\s", inbox.newest()
    )
    assert found is not None, inbox.newest()
    return found[1]


async def verified(house: House, inbox: Inbox) -> None:
    """A new account whose address is confirmed."""
    await house.operator()
    await sent(house)
    body = {"token": token_in(inbox, "verify")}
    answer = await house.http.post("/operator/email/verify", json=body)
    assert answer.status_code == 200, answer.text


async def test_200_a_verified_address_gets_a_link_that_works(
    posting: House, inbox: tuple[Inbox, int]
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
    posting: House, inbox: tuple[Inbox, int]
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
    posting: House, inbox: tuple[Inbox, int]
) -> None:
    await verified(posting, inbox[0])
    before = len(inbox[0].mails)
    statuses = [(await ask(posting)).status_code for _ in range(25)]
    await sent(posting)
    assert statuses == [200] * 20 + [429] * 5  # a verification with a good token is none
    assert len(inbox[0].mails) == before + 2  # from a network the account is known from


async def test_400_a_verification_of_another_kind_or_a_second_time_is_not_good(
    posting: House, inbox: tuple[Inbox, int]
) -> None:
    await verified(posting, inbox[0])
    token = token_in(inbox[0], "verify")
    body = {"token": token}
    again = await posting.http.post("/operator/email/verify", json=body)
    refused(again, 400, "token_invalid")
    refused(await reset(posting, token), 400, "token_invalid")


async def test_a_server_that_is_gone_is_no_fault_of_the_caller(tmp_path: Path) -> None:
    gone = {"smtp_url": "smtp+plain://127.0.0.1:9", "smtp_from": "a@b.cc"}
    async with open_house(tmp_path / "data", **gone) as house:
        await house.operator()
        assert (await ask(house)).status_code == 200
        await sent(house)


async def test_403_without_a_mail_server_it_is_said_to_everybody_alike(house: House) -> None:
    await house.operator()
    for email in (EMAIL, "nobody@example.com"):
        refused(await ask(house, email), 403, "mail_disabled")
    token = await house.token()
    answer = await house.http.post("/operator/email/verify-request", headers=token)
    refused(answer, 403, "mail_disabled")
