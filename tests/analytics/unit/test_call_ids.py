"""Ids of calls hold their time to the microsecond, and of their number nothing."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from assay.analytics.store_calls import CallIds, time_of

TIMES = st.integers(0, 2**53)
NUMBERS = st.integers(1, 2**63 - 1)


def ids(key: bytes = b"k" * 32) -> CallIds:
    made = CallIds(None)  # type: ignore[arg-type] - the key is given
    made._key = key
    return made


@given(TIMES, NUMBERS)
def test_the_time_is_read_back_from_an_id_of_version_7(at_us: int, number: int) -> None:
    made = ids().of(at_us, number)
    assert (UUID(made).version, str(UUID(made))) == (7, made)
    assert UUID(made).int >> 80 == at_us // 1000
    assert time_of(made) == at_us


@given(TIMES, NUMBERS, NUMBERS)
def test_rows_are_told_apart_and_without_the_key_nothing_is_known_of_them(
    at_us: int, one: int, other: int
) -> None:
    assert (ids().of(at_us, one) == ids().of(at_us, other)) == (one == other)
    assert ids().of(at_us, one) != ids(b"l" * 32).of(at_us, one)


@given(TIMES, TIMES, NUMBERS)
def test_ids_sort_by_time(earlier: int, later: int, number: int) -> None:
    if earlier < later:
        assert ids().of(earlier, number) < ids().of(later, 1)


@given(st.text(max_size=50))
def test_any_text_has_a_time_or_none(text: str) -> None:
    assert isinstance(time_of(text), int | None)
