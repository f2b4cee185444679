"""What a row of the call log may hold."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import String

from assay.analytics.model import NUMBERS, TEXT_CHARS, bound
from assay.db.schema.everything import calls
from tests.support.fakes.calls import CALL_FIELDS, KIND_FIELDS, call, changed

AT = datetime(2026, 3, 1, tzinfo=UTC)
ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=400)


def test_the_bounds_are_those_of_the_table() -> None:
    texts = {c.name: c.type.length for c in calls.columns if isinstance(c.type, String)}
    assert texts.pop("path") is None  # of any length there, and cut all the same
    assert {name: n for name, n in TEXT_CHARS.items() if name != "path"} == texts
    unstored = {"is_sale"}  # whether the quota of rows holds for it
    plain = {"at", "identity_proven", "score"}
    assert {*plain, *unstored, *TEXT_CHARS, *NUMBERS} == KIND_FIELDS | CALL_FIELDS


@given(st.sampled_from(sorted(TEXT_CHARS)), ANY_TEXT)
def test_every_text_ends_up_storable_and_what_was_storable_is_kept(name: str, text: str) -> None:
    made = changed(call("op", "w", AT), **{name: text})
    bound(made)
    kept: str = getattr(made.kind if name in KIND_FIELDS else made, name)
    kept.encode()
    assert "\0" not in kept
    assert len(kept) <= TEXT_CHARS[name]
    plain = "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)
    if plain:
        assert kept == text[: TEXT_CHARS[name]]


@given(st.sampled_from(sorted(NUMBERS)), st.integers())
def test_every_number_ends_up_within_its_bounds(name: str, number: int) -> None:
    made = call("op", "w", AT, **{name: number})
    bound(made)
    assert getattr(made, name) == min(max(number, 0), NUMBERS[name])


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf")])
def test_a_score_that_is_no_number_is_none(score: float) -> None:
    made = call("op", "w", AT, score=score)
    bound(made)
    assert made.kind.score is None


def test_what_calls_of_a_kind_have_in_common_is_bounded_once() -> None:
    """A kind is shared by its calls, and costs each of them nothing."""
    first = changed(call("op", "w", AT), path="/a\0")
    second = replace(first, request_id="r\0")
    bound(first)
    first.kind.path = "/b\0"
    bound(second)
    assert (first.kind.path, second.request_id) == ("/b\0", "r\ufffd")
