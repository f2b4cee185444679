"""Waits between looks: they grow, they end with the payment, and an hour is a handful of them."""

from datetime import timedelta

from assay.payments.outcomes import FIRST_S, LATE_S, MISSED_MOST_S, MOST_S, Look
from tests.support.fakes.clock import FrozenClock

NOW = FrozenClock().now()
HOUR = timedelta(hours=1)
PAST = NOW - HOUR


def seconds(look: Look, since: object = NOW) -> float:
    assert look.at is not None
    return (look.at - since).total_seconds()  # type: ignore[operator]


def test_the_first_look_is_due_at_once() -> None:
    assert Look().is_due(NOW)


def test_waits_grow_and_stay_at_their_longest() -> None:
    look, waits = Look(), []
    for _ in range(40):
        look = look.answered(NOW, PAST)
        waits.append(seconds(look))
    assert waits[:5] == [2, 14, 98, MOST_S, MOST_S]
    assert waits[-1] == MOST_S
    assert look.questions == 40


def test_a_payment_is_looked_at_soon_after_its_end() -> None:
    look = Look(questions=3).answered(NOW, NOW + timedelta(seconds=60))
    assert seconds(look) == 60 + LATE_S
    assert look.is_due(NOW + timedelta(seconds=60 + LATE_S))
    assert not look.is_due(NOW + timedelta(seconds=60))


def test_a_payment_without_a_near_end_is_looked_at_a_dozen_times_an_hour() -> None:
    now, look, looks = NOW, Look(), 0
    while now < NOW + HOUR:
        look, looks = look.answered(now, PAST), looks + 1
        assert look.at is not None
        now = look.at
    assert looks <= 10


def test_a_node_that_does_not_answer_is_asked_ever_less_up_to_a_minute() -> None:
    look, waits = Look(questions=2), []
    for _ in range(40):
        look = look.missed(NOW)
        waits.append(seconds(look))
    assert waits[:5] == [5, 10, 20, 40, MISSED_MOST_S]
    assert waits[-1] == MISSED_MOST_S
    assert (look.questions, look.misses) == (2, 40)
    assert look.answered(NOW, PAST).misses == 0


def test_what_was_sent_anew_is_looked_at_soon() -> None:
    look = Look(questions=9).answered(NOW, PAST).sent(NOW)
    assert seconds(look) == FIRST_S
    assert look.questions == 10
