from assay.common.circuit_breaker import FAILURES_MAX, OPEN_S, OPEN_S_MAX, Breaker
from tests.support.fakes.clock import FrozenClock


def opened() -> tuple[Breaker, FrozenClock]:
    clock = FrozenClock()
    breaker = Breaker(clock)
    for _ in range(FAILURES_MAX):
        assert breaker.lets_through()
        breaker.failed()
    return breaker, clock


def test_it_opens_at_the_third_failure_in_a_row() -> None:
    breaker, _ = opened()
    assert not breaker.lets_through()


def test_a_success_between_keeps_it_closed() -> None:
    breaker = Breaker(FrozenClock())
    for _ in range(10):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert breaker.lets_through()


def test_after_the_pause_one_trial_is_let_through() -> None:
    breaker, clock = opened()
    clock.move(OPEN_S)
    assert breaker.lets_through()
    assert not breaker.lets_through()


def test_a_trial_that_never_ends_does_not_shut_it_for_good() -> None:
    breaker, clock = opened()
    clock.move(OPEN_S)
    assert breaker.lets_through()
    clock.move(OPEN_S)
    assert breaker.lets_through()


def test_a_trial_that_succeeds_closes_it() -> None:
    breaker, clock = opened()
    clock.move(OPEN_S)
    assert breaker.lets_through()
    breaker.succeeded()
    assert breaker.lets_through()
    assert breaker.lets_through()


def test_the_pause_doubles_up_to_its_bound() -> None:
    breaker, clock = opened()
    pauses = []
    for _ in range(8):
        waited = 0.0
        while not breaker.lets_through():
            clock.move(0.5)
            waited += 0.5
        pauses.append(waited)
        breaker.failed()
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_it_can_be_opened_at_once_for_the_longest_pause() -> None:
    clock = FrozenClock()
    breaker = Breaker(clock)
    breaker.trip()
    clock.move(OPEN_S_MAX - 0.1)
    assert not breaker.lets_through()
    clock.move(0.1)
    assert breaker.lets_through()
