"""Who may open an account, and how many (conventions.md#bounds-on-strangers)."""

import asyncio
from pathlib import Path

import httpx2
import pytest

from assay.app.web import build
from tests.support.live_service import PASSWORD, TestService, refused, start_test_service


async def register(service: TestService, email: str, **more: str) -> httpx2.Response:
    body = {"email": email, "password": PASSWORD, "name": "A", **more}
    return await service.http.post("/operator/register", json=body)


async def test_403_where_sign_up_is_closed_nobody_registers_but_the_terminal(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path / "data", sign_up="closed") as service:
        token, _ = await service.app.sign_ups.invite_for_admin(None)
        refused(await register(service, "a@b.cc"), 403, "sign_up_closed")
        refused(await register(service, "a@b.cc", invite=token), 403, "sign_up_closed")


async def test_403_an_invitation_is_good_once_for_its_address_and_for_a_week(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path / "data", sign_up="invite") as service:
        refused(await register(service, "a@b.cc"), 403, "sign_up_closed")
        refused(await register(service, "a@b.cc", invite="x" * 43), 403, "invite_invalid")
        anybody, _ = await service.app.sign_ups.invite_for_admin(None)
        assert (await register(service, "a@b.cc", invite=anybody)).status_code == 200
        refused(await register(service, "b@b.cc", invite=anybody), 403, "invite_invalid")
        for_bea, _ = await service.app.sign_ups.invite_for_admin("Bea@b.cc")
        refused(await register(service, "c@b.cc", invite=for_bea), 403, "invite_invalid")
        assert (await register(service, "bea@B.cc", invite=for_bea)).status_code == 200
        old, _ = await service.app.sign_ups.invite_for_admin(None)
        service.clock.move(7 * 86_400)
        refused(await register(service, "d@b.cc", invite=old), 403, "invite_invalid")


async def test_403_of_sign_ups_at_once_with_one_invitation_one_succeeds(tmp_path: Path) -> None:
    async with start_test_service(tmp_path / "data", sign_up="invite") as service:
        token, _ = await service.app.sign_ups.invite_for_admin(None)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(register(service, f"{n}@b.cc", invite=token)) for n in range(5)
            ]
        statuses = sorted(task.result().status_code for task in tasks)
        assert statuses == [200, 403, 403, 403, 403]
        assert len(await service.app.operators.list_for_admin()) == 1


async def test_409_a_taken_address_spends_no_invitation(tmp_path: Path) -> None:
    async with start_test_service(tmp_path / "data", sign_up="invite") as service:
        first, _ = await service.app.sign_ups.invite_for_admin(None)
        second, _ = await service.app.sign_ups.invite_for_admin(None)
        assert (await register(service, "a@b.cc", invite=first)).status_code == 200
        refused(await register(service, "a@b.cc", invite=second), 409, "email_taken")
        assert (await register(service, "b@b.cc", invite=second)).status_code == 200


async def test_no_invitation_is_stored_in_the_clear(service: TestService) -> None:
    token, _ = await service.app.sign_ups.invite_for_admin(None)
    folder = service.app.settings.data_dir
    stored = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert token.encode() not in stored


@pytest.mark.parametrize("at_once", [True, False])
async def test_429_one_address_opens_a_bounded_number_of_accounts_a_day(
    tmp_path: Path,
    at_once: bool,  # noqa: FBT001
) -> None:
    async with start_test_service(tmp_path / "data", accounts_per_address=3) as service:
        emails = [f"{n}@b.cc" for n in range(6)]
        if at_once:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(register(service, email)) for email in emails]
            answers = [task.result() for task in tasks]
        else:
            answers = [await register(service, email) for email in emails]
        assert sorted(a.status_code for a in answers) == [200] * 3 + [429] * 3
        sender = httpx2.ASGITransport(build(service.app), client=("198.51.100.7", 1))
        async with httpx2.AsyncClient(transport=sender, base_url="http://a") as elsewhere:
            body = {"email": "z@b.cc", "password": PASSWORD, "name": "Z"}
            assert (await elsewhere.post("/operator/register", json=body)).status_code == 200
        service.clock.move(86_400)
        assert (await register(service, "later@b.cc")).status_code == 200


async def test_429_who_deletes_an_account_cannot_open_the_next_one_for_it(tmp_path: Path) -> None:
    async with start_test_service(tmp_path / "data", accounts_per_address=2) as service:
        for n in range(2):
            assert (await register(service, f"{n}@b.cc")).status_code == 200
            operator = await service.app.operators.find_for_admin(f"{n}@b.cc")
            await service.app.account_data.delete_for_admin(operator.id)
        refused(await register(service, "3@b.cc"), 429, "rate_limited")


@pytest.mark.parametrize(
    ("addresses", "elsewhere"),
    [
        ([f"2001:db8:1:{n:x}::1" for n in range(6)], "2001:db8:2::1"),
        ([f"198.51.100.{n}" for n in range(6)], "198.51.101.1"),
    ],
)
async def test_429_one_network_opens_a_bounded_number_of_accounts_a_day(
    tmp_path: Path, addresses: list[str], elsewhere: str
) -> None:
    quotas = {"accounts_per_address": 2, "accounts_per_network": 4}
    async with start_test_service(tmp_path / "data", **quotas) as service:

        async def register_from(address: str, email: str) -> int:
            sender = httpx2.ASGITransport(build(service.app), client=(address, 1))
            async with httpx2.AsyncClient(transport=sender, base_url="http://a") as http:
                body = {"email": email, "password": PASSWORD, "name": "N"}
                return (await http.post("/operator/register", json=body)).status_code

        made = [await register_from(one, f"{n}@b.cc") for n, one in enumerate(addresses)]
        assert made == [200] * 4 + [429] * 2
        assert await register_from(elsewhere, "z@b.cc") == 200
        service.clock.move(86_400)
        assert await register_from(addresses[0], "later@b.cc") == 200
