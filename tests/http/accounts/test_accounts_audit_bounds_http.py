"""Guessing passwords adds few rows to the trail, and what administrators do is all there."""

from assay.accounts.login_notes import NOTED_EACH, NOTED_OF_ACCOUNT, LoginNotes
from assay.kit.cost_windows import DAY_S
from tests.fakes.clock import FrozenClock
from tests.http.house import House


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
    assert total <= NOTED_OF_ACCOUNT + 20


def test_every_day_begins_anew_and_other_accounts_have_their_own_count() -> None:
    clock = FrozenClock()
    notes = LoginNotes(clock)
    noted(notes, 1000)
    assert notes.count("login.failed", "other", "192.0.2.1") == 1
    clock.move(DAY_S)
    assert noted(notes, NOTED_EACH) == [1, 2, 3, 4, 5]


async def test_what_an_administrator_does_is_all_noted_beside_a_flood_of_guesses(
    house: House,
) -> None:
    await house.operator()
    operators = house.app.operators
    (operator,) = await operators.list_for_admin()
    failed = 0
    for _ in range(12):
        house.clock.move(1000)  # beyond the throttle's longest delay
        body = {"email": "op@example.com", "password": "wrong password!"}
        failed += (await house.http.post("/operator/login", json=body)).status_code == 401
        await operators.rename(operator.id, "New name")
    trail, _ = await house.app.admin.audit(operator.id, None, 200)
    guesses = [note for note in trail if note.action == "login.failed"]
    assert failed == 12
    assert len(guesses) == NOTED_EACH + 1
    assert guesses[0].details == {"reason": "wrong password", "attempts": 8}
    assert sum(note.action == "account.renamed" for note in trail) == 12
