"""Guessing passwords adds few rows to the trail, and what administrators do is all there."""

from pathlib import Path

from assay.accounts.logins import RECORDED_EACH, RECORDED_OF_ACCOUNT, LoginNotes
from assay.common.costs import DAY_S
from tests.support.fakes.clock import FrozenClock
from tests.support.live_service import TestService, start_test_service


def noted(notes: LoginNotes, times: int, address: str = "192.0.2.1") -> list[int]:
    found = (notes.count("login.failed", "one", address) for _ in range(times))
    return [one for one in found if one is not None]


def test_after_the_first_only_doublings_are_noted() -> None:
    notes = LoginNotes(FrozenClock())
    assert noted(notes, 100_000) == [1, 2, 3, 4, 5, *(2**n for n in range(3, 17))]


def test_guessing_from_many_networks_is_noted_as_one() -> None:
    notes = LoginNotes(FrozenClock())
    total = sum(
        len(noted(notes, 1, f"2001:db8:{n >> 16:x}:{n & 65535:x}::1")) for n in range(50_000)
    )
    assert total <= RECORDED_OF_ACCOUNT + 20


def test_every_day_begins_anew_and_other_accounts_have_their_own_count() -> None:
    clock = FrozenClock()
    notes = LoginNotes(clock)
    noted(notes, 1000)
    assert notes.count("login.failed", "other", "192.0.2.1") == 1
    clock.move(DAY_S)
    assert noted(notes, RECORDED_EACH) == [1, 2, 3, 4, 5]


async def test_what_an_administrator_does_is_all_noted_beside_a_flood_of_guesses(
    service: TestService,
) -> None:
    await service.operator()
    operators = service.app.operators
    (operator,) = await operators.list_for_admin()
    failed = 0
    for _ in range(12):
        service.clock.move(1000)  # beyond the throttle's longest delay
        body = {"email": "op@example.com", "password": "wrong password!"}
        failed += (await service.http.post("/operator/login", json=body)).status_code == 401
        await operators.rename(operator.id, "New name")
    trail, _ = await service.app.admin.audit(operator.id, None, 200)
    guesses = [note for note in trail if note.action == "login.failed"]
    assert failed == 12
    assert len(guesses) == RECORDED_EACH + 1
    assert guesses[0].details == {"reason": "wrong password", "attempts": 8}
    assert sum(note.action == "account.renamed" for note in trail) == 12


async def test_whatever_a_free_account_and_a_stranger_do_leaves_a_bounded_number_of_lines(
    tmp_path: Path,
) -> None:
    async with start_test_service(
        tmp_path, quota_account_changes=6, accounts_per_address=1
    ) as service:
        http = service.http
        await service.operator()
        token = await service.token()
        hook = {"url": "https://hooks.example/assay", "agentIds": ["*"]}
        for number in range(20):
            made = await http.post("/operator/keys", json={"label": "k"}, headers=token)
            if made.is_success:
                path = f"/operator/keys/{made.json()['id']}"
                await http.delete(path, headers=token)
            await http.post("/operator/webhooks/register", json=hook, headers=token)
            await http.patch("/operator/me", json={"name": f"N {number}"}, headers=token)
            again = await service.token()  # a log-in that succeeds
            await http.post("/operator/logout", headers=again)
            body = {"email": f"x{number}@example.com", "password": "long enough here", "name": "X"}
            assert (await http.post("/operator/register", json=body)).status_code == 429
            await http.post("/operator/email/verify", json={"token": f"guess {number}"})
            reset = {"token": f"guess {number}", "newPassword": "long enough here"}
            await http.post("/operator/password/reset", json=reset)
            service.clock.move(60)
        trail, _ = await service.app.admin.audit(None, None, 200)
        log_ins = [line for line in trail if line.action == "login.succeeded"]
        assert len(log_ins) == RECORDED_EACH + 2  # at 8 and at 16
        assert 6 <= len(trail) - len(log_ins) <= 6 + 1  # the sign-up itself
