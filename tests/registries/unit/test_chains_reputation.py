from decimal import Decimal, getcontext

import pytest

from assay.registries.model import Feedback, summarise


def entry(value: str, tag1: str = "starred", client: str = "0xa", index: int = 1) -> Feedback:
    return Feedback(client, index, Decimal(value), 0, tag1, "")


def test_nobody_said_anything() -> None:
    found = summarise([])
    assert (found.feedback_count, found.counted, found.discarded, found.reviewers) == (0, 0, 0, 0)
    assert found.average_score is None


def test_the_average_is_over_the_scale_of_the_eip_alone() -> None:
    """getSummary mixes "uptime 99.77" with "starred 90"."""
    found = summarise(
        [entry("90"), entry("80", ""), entry("99.77", "uptime"), entry("5", "STARRED ")]
    )
    assert found.average_score == 58.33
    assert (found.feedback_count, found.counted, found.discarded) == (4, 3, 1)


@pytest.mark.parametrize("value", ["100.000000000000000001", "-0.000000000000000001", "1E+38"])
def test_a_value_off_the_scale_does_not_count(value: str) -> None:
    found = summarise([entry(value), entry("60")])
    assert found.average_score == 60.0
    assert found.entries[0].score is None
    assert found.entries[1].score == 60


@pytest.mark.parametrize("value", ["0", "100"])
def test_the_ends_of_the_scale_count(value: str) -> None:
    assert summarise([entry(value)]).average_score == float(value)


def test_reviewers_are_counted_once() -> None:
    assert summarise([entry("1", client="0xa"), entry("2", client="0xa", index=2)]).reviewers == 1


def test_nobodys_precision_changes_the_average() -> None:
    values = [entry("33.333333333333333333"), entry("66.666666666666666667")]
    before = getcontext().prec
    getcontext().prec = 2
    try:
        assert summarise(values).average_score == 50.0
    finally:
        getcontext().prec = before


def test_halves_are_rounded_by_their_decimal_value() -> None:
    """As binary floats 2.675 is a little less; as it was written it is half way, to even."""
    assert summarise([entry("2.675")]).average_score == 2.68
