"""How long an MPP transaction must be good, and how long its upstream may take for it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import rlp

from assay.payments.model import PaymentRefused, Quote
from assay.payments.mpp.tempo import (
    MARGIN_S,
    STOCK_S,
    Validity,
    bounded_validity,
    challenge_life,
    least_work_s,
    require_challenge_time,
    require_transaction_time,
    validity_of,
)
from tests.payments.unit.test_x402_vectors import quote
from tests.support.fakes.clock import FrozenClock

NOW = FrozenClock().now()
NOW_S = int(NOW.timestamp())
TTL = timedelta(minutes=5)
WORK: Quote = replace(quote("eip155:8453"), work_s=30.0)


def left(valid_s: int | None, asked: Quote = WORK, ttl: timedelta = TTL) -> float:
    before = None if valid_s is None else NOW_S + valid_s
    return require_transaction_time(Validity(None, before), asked, NOW, ttl, "digest")


def test_a_transaction_without_an_end_leaves_the_upstream_its_whole_time() -> None:
    assert left(None) == left(3600) == 30


@pytest.mark.parametrize("valid_s", [-5, 0, 3, 19])
def test_one_that_ends_before_the_upstreams_time_is_refused_before_forwarding(
    valid_s: int,
) -> None:
    with pytest.raises(PaymentRefused) as refused:
        left(valid_s)
    assert (refused.value.reason, refused.value.digest) == ("payment-expired", "digest")


def test_the_upstream_gets_no_longer_than_a_stock_clients_transaction_lasts() -> None:
    """mppx signs for 25 s whatever the wrapper's `timeoutMs`, which is 30 s by default."""
    assert STOCK_S < 25
    assert left(25) == 25 - MARGIN_S
    assert left(20) == 20 - MARGIN_S


def test_a_quick_wrapper_needs_its_own_time_and_the_margin() -> None:
    quick = replace(WORK, work_s=2.0)
    assert left(10, quick) == 2
    with pytest.raises(PaymentRefused):
        left(9, quick)


def test_one_that_settles_first_needs_the_margin_alone() -> None:
    first = replace(WORK, settles_first=True)
    assert left(8, first) == 30
    with pytest.raises(PaymentRefused):
        left(7, first)


def test_brief_challenges_ask_for_half_their_time() -> None:
    """A client cannot sign for longer than its challenge holds."""
    assert left(13, ttl=timedelta(seconds=25)) == 13 - MARGIN_S
    with pytest.raises(PaymentRefused):
        left(12, ttl=timedelta(seconds=25))


def test_one_that_is_not_valid_yet_is_refused() -> None:
    with pytest.raises(PaymentRefused) as refused:
        require_transaction_time(Validity(NOW_S + 1, None), WORK, NOW, TTL, "digest")
    assert refused.value.reason == "verification-failed"


def of_challenge(left_s: float, asked: Quote = WORK, ttl: timedelta = TTL) -> float:
    return require_challenge_time(NOW + timedelta(seconds=left_s), asked, NOW, ttl, "digest")


def test_a_challenge_must_outlive_the_upstream_and_the_margin() -> None:
    assert of_challenge(30 + MARGIN_S) == 30
    with pytest.raises(PaymentRefused) as refused:
        of_challenge(29 + MARGIN_S)
    assert (refused.value.reason, refused.value.digest) == ("payment-expired", "digest")


def test_a_long_upstream_is_refused_before_forwarding_where_its_challenge_ends_first() -> None:
    long = replace(WORK, work_s=400.0)
    with pytest.raises(PaymentRefused):
        of_challenge(151, long)
    assert of_challenge(408, long) == 400


def test_a_challenge_is_made_to_last_for_the_time_to_sign_it_and_the_work() -> None:
    long = replace(WORK, work_s=400.0)
    assert challenge_life(WORK, TTL) == TTL
    assert challenge_life(long, TTL) == timedelta(seconds=150 + 400 + MARGIN_S)
    assert challenge_life(replace(long, settles_first=True), TTL) == TTL


def test_brief_challenges_stay_brief_and_give_the_upstream_up_before_they_end() -> None:
    """Some chains take no transaction that is valid for longer."""
    brief = timedelta(seconds=25)
    assert challenge_life(WORK, brief) == brief
    assert of_challenge(20, ttl=brief) == 20 - MARGIN_S
    with pytest.raises(PaymentRefused):
        of_challenge(12, ttl=brief)


def test_one_that_settles_first_asks_nothing_of_its_challenge() -> None:
    assert of_challenge(1, replace(WORK, settles_first=True)) == 30


def test_the_least_that_a_payment_may_leave_the_upstream() -> None:
    assert least_work_s(TTL) == STOCK_S - MARGIN_S
    assert left(int(STOCK_S)) == least_work_s(TTL)


def raw(before: Any, after: Any = b"") -> dict[str, Any]:
    fields = [42431, 1, 1, 9, [], [], 1, 0, before, after, b"", b"", [], b"s" * 65]
    return {"payload": {"signature": "0x76" + rlp.encode(fields).hex()}}


@pytest.mark.parametrize("before", [b"", NOW_S + 601, 2**70])
def test_one_that_could_be_mined_after_its_payment_has_failed_is_refused(before: Any) -> None:
    with pytest.raises(PaymentRefused) as refused:
        bounded_validity(raw(before), NOW + timedelta(seconds=600))
    assert refused.value.reason == "verification-failed"


def test_one_that_ends_in_time_is_taken() -> None:
    found = bounded_validity(raw(NOW_S + 600), NOW + timedelta(seconds=600))
    assert found == Validity(None, NOW_S + 600)


def test_validity_is_read_from_the_transaction() -> None:
    assert validity_of(raw(9, 7)) == Validity(7, 9)
    assert validity_of(raw(b"")) == Validity()
    assert left(None) == 30


def test_a_number_of_any_size_is_a_time() -> None:
    found = validity_of(raw(b"\xff" * 4000))
    assert require_transaction_time(found, WORK, NOW, TTL, "digest") == 30


@pytest.mark.parametrize(
    "signature", ["", "0x", "no hex", "0x76", raw([1])["payload"]["signature"]]
)
def test_a_transaction_without_form_is_refused(signature: str) -> None:
    with pytest.raises(PaymentRefused):
        validity_of({"payload": {"signature": signature}})
