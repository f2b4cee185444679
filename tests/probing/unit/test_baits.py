"""An address that an agent was given counts for 30 days, once."""

from assay.common.shared_state import MemorySharedState
from assay.probing.out_of_band_url import KEPT_S, PREFIX, OutOfBandCall, OutOfBandCalls
from tests.support.fakes.clock import FrozenClock

ADDRESS = "http://assay.example"


def made() -> tuple[FrozenClock, OutOfBandCalls]:
    clock = FrozenClock()
    state = MemorySharedState(clock)  # type: ignore[arg-type]
    return clock, OutOfBandCalls(state, ("s" * 32,), [ADDRESS])


def word_of(bait: OutOfBandCall) -> str:
    return bait.url.removeprefix(f"{ADDRESS}{PREFIX}/")


async def test_an_address_called_days_later_counts_at_the_next_visit_and_once() -> None:
    clock, baits = made()
    first = baits.new("agent 1")
    assert not await first.was_taken()
    clock.move(20 * 86_400)
    await baits.taken(word_of(first))
    clock.move(5 * 86_400)
    assert not await baits.new("agent 2").was_taken()
    assert await baits.new("agent 1").was_taken()
    assert not await baits.new("agent 1").was_taken()


async def test_a_call_is_forgotten_after_thirty_days() -> None:
    clock, baits = made()
    first = baits.new("agent 1")
    await baits.taken(word_of(first))
    clock.move(KEPT_S + 1)
    assert not await first.was_taken()


async def test_a_word_that_is_not_ours_is_not_noted() -> None:
    _, baits = made()
    word = word_of(baits.new("agent 1"))
    for wrong in (word[:-1] + ("0" if word[-1] != "0" else "1"), word.replace(".", "-"), ""):
        await baits.taken(wrong)
    assert not await baits.new("agent 1").was_taken()
