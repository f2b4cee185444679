"""The law of the stored form: whatever an evaluation holds comes back as it was, floats exactly."""

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from assay.db.engine import from_us, to_us
from assay.evaluation.model import (
    Cap,
    Evaluation,
    Evidence,
    Grade,
    SignalName,
    SignalResult,
    SignalScore,
)
from assay.evaluation.store_evaluations import _evaluation, _evaluation_row

floats = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters())  # halves of surrogate pairs and NUL included: agents send them
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | floats | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
moments = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone
collected = st.builds(
    SignalResult,
    st.sampled_from(SignalName),
    st.builds(Evidence, st.dictionaries(texts, json_values, max_size=4), st.integers(0, 1000)),
    st.builds(
        SignalScore,
        floats,
        floats,
        st.lists(texts, max_size=3).map(tuple),
        st.none() | st.builds(Cap, floats, texts),
    ),
)
evaluations = st.builds(
    Evaluation,
    id=st.just("e"),
    subject_key=st.just("eip155:1/7"),
    chain=st.just("ethereum"),
    agent_id=st.just("7"),
    wallet=st.just("0x"),
    collected=st.lists(collected, max_size=3).map(tuple),
    unavailable=st.dictionaries(st.sampled_from(SignalName), texts),
    score=floats,
    grade=st.just(Grade("B", "RED", "sandbox")),
    evaluated_at=moments,
)


@given(evaluations)
def test_what_is_stored_of_an_evaluation_is_the_evaluation(one: Evaluation) -> None:
    row = _evaluation_row(one)
    again = _evaluation(row)  # type: ignore[arg-type] - a row is read like a dict
    assert again == one
    assert json.dumps(_evaluation_row(again)) == json.dumps(row)


@given(evaluations)
def test_the_stored_text_is_ascii_without_nul_whatever_agents_say(one: Evaluation) -> None:
    row = _evaluation_row(one)
    for column in ("collected", "unavailable"):
        assert row[column].isascii()
        assert "\0" not in row[column]


@given(moments)
def test_a_time_is_kept_to_the_microsecond(moment: datetime) -> None:
    assert from_us(to_us(moment)) == moment
