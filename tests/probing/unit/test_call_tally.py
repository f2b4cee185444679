"""Which calls count as left without an answer."""

import pytest

from assay.probing.session import CallTally, odd_requests

URL = "https://agent.example/rpc"


def tally(*statuses: int | None, url: str = URL) -> dict[str, object]:
    calls = CallTally()
    for status in statuses:
        calls.note("POST", url, status)
    return dict(calls.as_json())


@pytest.mark.parametrize("status", [None, 502, 503, 504, 500])
def test_a_call_without_an_answer_counts_after_the_first_that_had_one(status: int | None) -> None:
    assert tally(200, status, 200) == {"made": 3, "failed": 1}
    assert tally(status, status, 200) == {"made": 1, "failed": 0}  # it was starting


def test_an_error_that_is_always_the_same_is_no_lost_call() -> None:
    calls = CallTally()
    calls.note("POST", URL, 200)
    for _ in range(3):
        calls.note("GET", URL, 500)
    assert calls.as_json() == {"made": 1, "failed": 0}


def test_refusals_and_limits_are_no_lost_calls() -> None:
    assert tally(200, 401, 402, 404, 429, 429) == {"made": 4, "failed": 0}


def test_what_no_customer_sends_does_not_count() -> None:
    calls = CallTally()
    calls.note("POST", URL, 200)
    with odd_requests():
        calls.note("POST", URL, 503)
    calls.note("POST", "http://[", None)
    assert calls.as_json() == {"made": 1, "failed": 0}
