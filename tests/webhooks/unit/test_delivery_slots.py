"""How many deliveries of an account are under way, by how its receivers answer."""

from assay.webhooks.delivery import (
    AT_ONCE,
    AT_ONCE_OPERATOR,
    AT_ONCE_SLOW,
    REMEMBERED_MAX,
    DeliverySlots,
)


def _begin_all(slots: DeliverySlots, accounts: list[str]) -> list[str]:
    """Begin whatever may begin, as a store would that has work of every account."""
    begun: list[str] = []
    while (limit := slots.batch()) > 0:
        full = set(slots.full())
        batch = [one for one in accounts if one not in full and slots.left(one)][:limit]
        if not batch:
            break
        for one in batch:
            slots.begin(one)
        begun += batch
    return begun


def test_an_account_nothing_is_known_of_has_two_at_a_time() -> None:
    assert _begin_all(DeliverySlots(), ["a"]) == ["a", "a"]


def test_each_quick_answer_is_one_more_up_to_eight_and_a_slow_one_takes_half() -> None:
    slots = DeliverySlots()
    shares: list[int] = []
    for is_slow in (*[False] * 8, True, None, True, True, True):
        slots.begin("a")
        slots.end("a", is_slow=is_slow)
        shares.append(slots.left("a"))
    assert shares == [3, 4, 5, 6, 7, 8, 8, 8, 4, 4, 2, 1, 1]
    assert AT_ONCE_OPERATOR == 8


def test_slow_accounts_hold_half_of_the_slots_together_however_many_they_are() -> None:
    slots = DeliverySlots()
    slow = [f"slow{n}" for n in range(500)]
    for one in slow:
        slots.begin(one)
        slots.end(one, is_slow=True)
    assert len(_begin_all(slots, slow)) == AT_ONCE_SLOW
    others = _begin_all(slots, [*slow, *(f"other{n}" for n in range(50))])
    assert len(others) == AT_ONCE - AT_ONCE_SLOW
    assert all(one.startswith("other") for one in others)
    assert slots.batch() == 0


def test_what_is_remembered_of_accounts_is_bounded() -> None:
    slots = DeliverySlots()
    for n in range(REMEMBERED_MAX + 50):
        slots.begin(f"{n}")
        slots.end(f"{n}", is_slow=True)
    assert len(slots.full()) == 0
    assert (slots.left("0"), slots.left(f"{REMEMBERED_MAX}")) == (2, 1)
