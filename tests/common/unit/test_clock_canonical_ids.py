from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.clock import SystemClock, from_iso, iso
from assay.common.ids import new_id
from assay.common.json import canonical_bytes, sha256_hex


def test_times_are_written_in_utc_with_milliseconds_and_z() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 6789, timezone(timedelta(hours=2)))
    assert iso(moment) == "2026-01-02T01:04:05.006Z"


@given(st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_a_written_time_is_read_back_to_the_millisecond(moment: datetime) -> None:
    assert abs(from_iso(iso(moment)) - moment) < timedelta(milliseconds=1)


def test_a_time_without_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="offset"):
        from_iso("2026-01-02T01:04:05")


def test_the_system_clock_is_aware_and_its_monotonic_side_never_falls() -> None:
    clock = SystemClock()
    assert clock.now().utcoffset() == timedelta(0)
    assert clock.monotonic_s() <= clock.monotonic_s()


def test_canonical_json_is_that_of_rfc_8785() -> None:
    """The number and key-order rules of RFC 8785, sections 3.2.2 and 3.2.3."""
    value = {"\u20ac": 1e21, "b": [True, None, 4.50], "a": 2e-3, "1": 333333333.33333329}
    expected = '{"1":333333333.3333333,"a":0.002,"b":[true,null,4.5],"\u20ac":1e+21}'
    assert canonical_bytes(value).decode() == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53 + 1])
def test_what_has_no_canonical_form_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical_bytes({"value": value})


def test_sha256_is_written_with_0x() -> None:
    assert sha256_hex(b"") == ("0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")


def test_ids_sort_by_the_time_they_were_made_and_never_repeat() -> None:
    ids = [new_id() for _ in range(2000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert {i[14] for i in ids} == {"7"}
