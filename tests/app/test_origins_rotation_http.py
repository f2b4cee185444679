"""A rotation makes no network unknown and starts no count anew."""

import re
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from assay.app.secrets import SecretName, rotate_secret
from assay.app.web import build
from assay.settings import load
from tests.accounts.test_accounts_login_bounds_http import RIGHT, WRONG, Crowd
from tests.accounts.test_accounts_reset_bounds_http import EMAIL, LINK_S, Mailing
from tests.support.fakes.clock import FrozenClock
from tests.support.live_service import PASSWORD, TestService, start_test_service
from tests.support.mail import mail_server

HOME = "192.0.2.7"


def rotated(folder: Path, *names: SecretName, days_ago: int = 0, compromised: bool = False) -> None:
    clock = FrozenClock(FrozenClock().now() - timedelta(days=days_ago))
    for name in names:
        rotate_secret(load(data_dir=folder), name, compromised=compromised, clock=clock)


async def register(service: TestService, address: str, email: str) -> int:
    sender = httpx2.ASGITransport(build(service.app), client=(address, 1))
    async with httpx2.AsyncClient(transport=sender, base_url="http://a") as http:
        body = {"email": email, "password": PASSWORD, "name": "N"}
        return (await http.post("/operator/register", json=body)).status_code


@pytest.mark.parametrize("days_ago", [0, 30])
async def test_the_owner_gets_in_from_where_it_has_been_before_after_a_rotation(
    tmp_path: Path, days_ago: int
) -> None:
    """However long after it, whatever strangers do."""
    folder = tmp_path / "data"
    async with start_test_service(folder) as service:
        await service.operator()
        assert await Crowd(service).login(HOME, RIGHT) == 200
    for _ in range(2):
        rotated(folder, "session", "snapshot", days_ago=days_ago)
    rotated(folder, "session", compromised=True)
    async with start_test_service(folder) as service:
        crowd = Crowd(service)
        await crowd.at_once([(f"198.51.100.{n}", WRONG) for n in range(120)])
        assert await crowd.login("203.0.113.5", RIGHT) == 429  # elsewhere it waits
        assert await crowd.login(HOME, RIGHT) == 200


async def test_what_was_known_under_the_session_secret_of_an_earlier_version_is_known(
    tmp_path: Path,
) -> None:
    """Its hashes are made with the first session secret."""
    folder = tmp_path / "data"
    session, snapshot = "s" * 40, "n" * 40
    async with start_test_service(folder, snapshot_secret=session) as service:
        await service.operator()
        assert await Crowd(service).login(HOME, RIGHT) == 200
    async with start_test_service(
        folder, session_secret=session, snapshot_secret=snapshot
    ) as service:
        crowd = Crowd(service)
        await crowd.at_once([(f"198.51.100.{n}", WRONG) for n in range(120)])
        assert await crowd.login(HOME, RIGHT) == 200


async def test_429_sign_ups_of_address_and_network_are_counted_over_a_rotation(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    quotas = {"accounts_per_address": 2, "accounts_per_network": 3}
    made: list[int] = []
    for round_ in range(2):
        async with start_test_service(folder, **quotas) as service:
            made += [await register(service, HOME, f"{round_}a@b.cc")]
        rotated(folder, "session", "snapshot")
    async with start_test_service(folder, **quotas) as service:
        made += [await register(service, HOME, "c@b.cc")]
        made += [await register(service, f"192.0.2.{n}", f"d{n}@b.cc") for n in (8, 9)]
        made += [await register(service, "192.0.3.1", "e@b.cc")]
    assert made == [200, 200, 429, 200, 429, 200]


async def test_mails_are_counted_over_a_rotation(tmp_path: Path) -> None:
    """Three reset links of one account to one stranger's network a day, and ten verifications."""
    folder = tmp_path / "data"
    with mail_server() as (inbox, port):
        smtp = {"smtp_url": f"smtp+plain://127.0.0.1:{port}", "smtp_from": "a@b.cc"}
        async with start_test_service(folder, **smtp) as service:
            mailing = Mailing(service, inbox)
            await mailing.verified()
            for n in range(12):
                await mailing.login(HOME, email=EMAIL)
                assert await register(service, HOME, f"{n}@b.cc") == 200
            for _ in range(3):
                assert await mailing.mails_of("198.51.100.1") == 1
                service.clock.move(LINK_S + 1)
        rotated(folder, "session", "snapshot")
        async with start_test_service(folder, **smtp) as service:
            service.clock.move(4 * LINK_S)
            mailing = Mailing(service, inbox)
            assert await mailing.mails_of("198.51.100.1") == 0
            assert await mailing.mails_of("198.51.100.2") == 1
            before = len(inbox.mails)
            await register(service, HOME, "last@b.cc")
            assert service.app.outbox is not None
            await service.app.outbox.idle()
            assert len(inbox.mails) == before
    verifications = [m for m in inbox.mails if re.search("#verify=", str(m.get_content()))]
    assert len(verifications) == 11  # one of them from elsewhere
