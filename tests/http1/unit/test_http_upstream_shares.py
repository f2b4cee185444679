"""Nobody has so many calls under way at one upstream that others find nothing left."""

from collections.abc import Callable, Iterable

import pytest

from assay.common.errors import Unavailable
from assay.http1.host import CALLS_MAX, UNPAID_CALLS_MAX, UpstreamShares
from assay.http1.model import Caller, UpstreamBusy, UpstreamFailed, agent_at, anonymous_at, payer_at

FROM = "203.0.113.7"


def taken(shares: UpstreamShares, callers: Iterable[Caller | None], operator: str = "a") -> int:
    """How many calls are under way when each of them is refused."""
    before = shares.calls
    for caller in callers:
        while shares.take(caller, operator):
            pass
    return shares.calls - before


def test_one_caller_has_a_part_and_others_find_theirs() -> None:
    shares = UpstreamShares()
    assert taken(shares, [anonymous_at(FROM)]) == UNPAID_CALLS_MAX // 3
    with_credential = [agent_at("0xa", FROM), payer_at("0xb", FROM), payer_at("0xc", FROM)]
    for caller in (*with_credential, anonymous_at("198.51.100.1"), anonymous_at("2001:db8::1")):
        assert shares.take(caller, "a")
    assert not shares.take(anonymous_at(FROM), "b")
    assert isinstance(shares.refusal(anonymous_at(FROM), "b"), UpstreamBusy)


@pytest.mark.parametrize(
    ("name", "callers"),
    [
        (lambda n: anonymous_at(f"203.0.113.{n}"), 256),
        (lambda n: anonymous_at(f"2001:db8:7:{n:x}::1"), 5000),
        (lambda n: agent_at(f"0x{n}", FROM), 5000),
    ],
)
def test_all_callers_of_one_network_have_a_part_together(
    name: Callable[[int], Caller], callers: int
) -> None:
    names = [name(n) for n in range(callers)]
    shares = UpstreamShares()
    assert taken(shares, names) == UNPAID_CALLS_MAX // 2
    assert isinstance(shares.refusal(names[-1], "a"), UpstreamBusy)
    assert shares.take(anonymous_at("198.51.100.1"), "a")


def test_one_operator_has_a_part_whoever_calls_and_payers_find_more() -> None:
    shares = UpstreamShares()
    strangers = [anonymous_at(f"10.{n}.0.1") for n in range(250)]
    assert taken(shares, strangers) == UNPAID_CALLS_MAX * 2 // 3
    told = shares.refusal(strangers[0], "a")
    assert isinstance(told, UpstreamBusy)  # which has its own part as well
    newcomer = anonymous_at("198.51.100.1")
    assert not shares.take(newcomer, "a")
    told = shares.refusal(newcomer, "a")
    assert isinstance(told, Unavailable)
    assert told.retry_after_s
    assert shares.take(newcomer, "b")
    assert shares.take(payer_at("0xb", FROM), "a")


def test_many_strangers_over_many_operators_leave_a_quarter_to_payers() -> None:
    shares = UpstreamShares()
    for number in range(300):
        taken(shares, [anonymous_at(f"10.{n}.{number}.1") for n in range(20)], f"{number}")
    assert shares.calls == UNPAID_CALLS_MAX
    assert isinstance(shares.refusal(anonymous_at(FROM), "new"), Unavailable)
    assert taken(shares, [payer_at("0xb", FROM)], "new") >= (CALLS_MAX - UNPAID_CALLS_MAX) // 3


def test_calls_of_the_service_itself_are_bounded_by_the_whole_alone() -> None:
    shares = UpstreamShares()
    assert taken(shares, [None], "") == CALLS_MAX
    assert isinstance(shares.refusal(None, ""), UpstreamFailed)


def test_what_is_over_is_counted_for_nobody() -> None:
    shares = UpstreamShares()
    callers = [anonymous_at(FROM), agent_at("0xa", FROM), payer_at("0xb", FROM), None]
    for caller in callers:
        for _ in range(3):
            assert shares.take(caller, "a")
    for caller in callers:
        for _ in range(3):
            shares.give_back(caller, "a")
    assert (shares.calls, shares._open_calls) == (0, {})
