"""Strangers ask for reset links and verification mails; owners still get theirs."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from assay.app.web import build
from tests.support.live_service import PASSWORD, TestService, start_test_service
from tests.support.mail import Inbox, mail_server

NEW = "another horse battery"
EMAIL = "op@example.com"
HOME = "192.0.2.7"
ELSEWHERE = "203.0.113.5"
LINK_S = 30 * 60


class Mailing:
    """A service that sends mail, and callers from as many addresses as are asked for."""

    def __init__(self, service: TestService, inbox: Inbox) -> None:
        self.service = service
        self.inbox = inbox
        self._service = build(service.app)

    async def post(
        self, address: str, path: str, body: object, token: dict[str, str] | None = None
    ) -> httpx2.Response:
        sender = httpx2.ASGITransport(self._service, client=(address, 1))
        async with httpx2.AsyncClient(transport=sender, base_url="http://a") as http:
            answer = await http.post(path, json=body, headers=token)
        if self.service.app.outbox is not None:
            await self.service.app.outbox.idle()
        return answer

    async def login(self, address: str, password: str = PASSWORD, email: str = EMAIL) -> str:
        body = {"email": email, "password": password}
        answer = await self.post(address, "/operator/login", body)
        return answer.json()["token"]

    async def ask(self, address: str, email: str = EMAIL) -> httpx2.Response:
        return await self.post(address, "/operator/password/reset-request", {"email": email})

    async def mails_of(self, address: str) -> int:
        """How many mails one request for a reset link brings."""
        before = len(self.inbox.mails)
        await self.ask(address)
        return len(self.inbox.mails) - before

    def token(self, name: str = "reset", mail: int = -1) -> str:
        found = re.search(
            rf"#{name}=([0-9A-Za-z]{{43}})", str(self.inbox.mails[mail].get_content())
        )
        assert found is not None
        return found[1]

    async def reset(self, token: str) -> int:
        body = {"token": token, "newPassword": NEW}
        return (await self.post(ELSEWHERE, "/operator/password/reset", body)).status_code

    async def verified(self) -> None:
        """An account whose address is confirmed and whose owner logs in from `HOME`."""
        await self.service.operator()
        assert self.service.app.outbox is not None
        await self.service.app.outbox.idle()
        await self.post(HOME, "/operator/email/verify", {"token": self.token("verify")})
        await self.login(HOME)


@pytest.fixture
async def mailing(tmp_path: Path) -> AsyncGenerator[Mailing]:
    with mail_server() as (inbox, port):
        smtp = {"smtp_url": f"smtp+plain://127.0.0.1:{port}", "smtp_from": "a@b.cc"}
        async with start_test_service(
            tmp_path / "data", accounts_per_address=50, **smtp
        ) as service:
            yield Mailing(service, inbox)


async def test_no_number_of_strangers_keeps_the_owner_from_a_reset_mail(mailing: Mailing) -> None:
    """For a day, from as many networks as they like."""
    await mailing.verified()
    for round_ in range(48):
        for n in range(3):
            await mailing.ask(f"198.51.100.{(round_ * 3 + n) % 250}")
        mailing.service.clock.move(LINK_S + 1)
    for n in range(3):
        await mailing.ask(f"198.51.100.{n + 200}")
    assert await mailing.mails_of(HOME) == 1
    assert await mailing.reset(mailing.token()) == 200


async def test_whoever_comes_from_a_new_network_has_a_good_link_in_the_mailbox(
    mailing: Mailing,
) -> None:
    """Where strangers' requests are used up, one of theirs has just been sent there."""
    await mailing.verified()
    for n in range(60):
        await mailing.ask(f"198.51.100.{n}")
        mailing.service.clock.move(LINK_S // 4)
    await mailing.ask(ELSEWHERE)
    assert await mailing.reset(mailing.token()) == 200


async def test_a_strangers_request_does_not_end_the_owners_link(mailing: Mailing) -> None:
    await mailing.verified()
    await mailing.ask(HOME)
    owners = mailing.token()
    await mailing.ask(ELSEWHERE)
    strangers = mailing.token()
    assert owners != strangers
    assert await mailing.reset(owners) == 200
    assert await mailing.reset(strangers) == 400  # all end by the use of one


async def test_at_most_three_links_by_mail_are_good_at_once(mailing: Mailing) -> None:
    await mailing.verified()
    before = len(mailing.inbox.mails)
    for n in range(6):
        await mailing.ask(HOME)
        await mailing.ask(f"198.51.100.{n}")
    assert len(mailing.inbox.mails) - before == 3


async def test_one_strange_network_brings_three_reset_mails_a_day(mailing: Mailing) -> None:
    await mailing.verified()
    sent = 0
    for _ in range(40):
        sent += await mailing.mails_of(ELSEWHERE)
        mailing.service.clock.move(LINK_S + 1)
    assert sent == 3
    mailing.service.clock.move(86_400)
    assert await mailing.mails_of(ELSEWHERE) == 1


async def test_no_answer_tells_whether_a_mail_was_sent(mailing: Mailing) -> None:
    await mailing.verified()
    answers = [await mailing.ask(HOME) for _ in range(5)]
    answers += [await mailing.ask(ELSEWHERE) for _ in range(5)]
    answers += [await mailing.ask(ELSEWHERE, "nobody@example.com") for _ in range(2)]
    assert {(a.status_code, json.dumps(a.json())) for a in answers} == {(200, '{"ok": true}')}
    assert len({tuple(sorted(a.headers)) for a in answers}) == 1


async def test_requests_at_once_are_bounded_as_those_one_after_the_other(
    mailing: Mailing,
) -> None:
    await mailing.verified()
    before = len(mailing.inbox.mails)
    async with asyncio.TaskGroup() as group:
        for n in range(20):
            group.create_task(mailing.ask(f"198.51.100.{n}"))
            group.create_task(mailing.ask(HOME))
    assert len(mailing.inbox.mails) - before == 3


async def test_whoever_runs_the_service_has_links_of_its_own(mailing: Mailing) -> None:
    """Requests by mail use none of them up."""
    await mailing.verified()
    for n in range(6):
        await mailing.ask(HOME)
        await mailing.ask(f"198.51.100.{n}")
    operator = await mailing.service.app.operators.find_for_admin(EMAIL)
    made = [await mailing.service.app.passwords.reset_link_for_admin(operator) for _ in range(4)]
    assert [link is not None for link in made] == [True, True, True, False]


async def test_a_reset_forgives_failed_passwords_and_no_failed_code(mailing: Mailing) -> None:
    """Who reads the owner's mail has no further guesses at the second factor."""
    await mailing.verified()
    throttle = mailing.service.app.logins._proof.throttle  # pyright: ignore[reportPrivateUsage]
    for _ in range(5):
        throttle.begin_code(EMAIL)
    for n in range(50):
        throttle.begin(EMAIL, f"198.51.100.{n}")
    codes, accounts = throttle.sizes()[3], throttle.sizes()[2]
    await mailing.ask(HOME)
    assert await mailing.reset(mailing.token()) == 200
    assert (codes, accounts) == (1, 1)
    assert (throttle.sizes()[3], throttle.sizes()[2]) == (1, 0)


# -- verification --------------------------------------------------------------------------------


async def _verify_mails(mailing: Mailing, address: str, email: str, times: int) -> int:
    token = {"authorization": f"Bearer {await mailing.login(address, email=email)}"}
    before = len(mailing.inbox.mails)
    for _ in range(times):
        answer = await mailing.post(address, "/operator/email/verify-request", {}, token)
        assert answer.json() == {"ok": True}
    return len(mailing.inbox.mails) - before


async def _sign_up(mailing: Mailing, address: str, email: str) -> None:
    body = {"email": email, "password": PASSWORD, "name": "A"}
    assert (await mailing.post(address, "/operator/register", body)).status_code == 200


async def test_an_account_has_three_verification_mails_a_day(mailing: Mailing) -> None:
    await _sign_up(mailing, HOME, EMAIL)
    assert await _verify_mails(mailing, HOME, EMAIL, 5) == 2
    mailing.service.clock.move(86_401)
    assert await _verify_mails(mailing, HOME, EMAIL, 5) == 3


async def test_a_network_sends_ten_verification_mails_a_day(mailing: Mailing) -> None:
    for n in range(13):
        await _sign_up(mailing, ELSEWHERE, f"op{n}@example.com")
    assert len(mailing.inbox.mails) == 10
    await _sign_up(mailing, HOME, "else@example.com")
    assert len(mailing.inbox.mails) == 11


async def test_tagged_addresses_of_one_mailbox_count_together(mailing: Mailing) -> None:
    """Though each account comes from a network of its own, and ends after its mail."""
    for n in range(10):
        email = f"Victim+{n}@Example.com"
        await _sign_up(mailing, f"198.51.100.{n}", email)
        token = {"authorization": f"Bearer {await mailing.login(HOME, email=email)}"}
        body = {"password": PASSWORD}
        gone = await mailing.service.http.request(
            "DELETE", "/operator/me", headers=token, json=body
        )
        assert gone.status_code == 200
    assert len(mailing.inbox.mails) == 6
    await _sign_up(mailing, HOME, "victims@example.com")
    assert len(mailing.inbox.mails) == 7
