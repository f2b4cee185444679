"""What must hold of every obstacle, whatever a caller does."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.caller_behaviour.scenario import (
    Links,
    Scenario,
    ScenarioCall,
    ScenarioRequest,
    SeededRandom,
)
from assay.caller_behaviour.scenarios import SCENARIOS
from assay.common.json import canonical_bytes
from assay.evaluation.checks import judged_conduct

LINKS = Links("http://a/here", "http://a/next", "http://b/here")
texts = st.text(max_size=30)
values = st.none() | st.booleans() | st.integers() | texts | st.lists(st.integers())
requests = st.builds(
    ScenarioRequest,
    method=st.sampled_from(["GET", "POST", "PUT"]),
    headers=st.dictionaries(
        st.sampled_from(["idempotency-key", "x-payment", "authorization", "accept"]), texts
    ),
    body=st.binary(max_size=200),
    trail=texts,
    carries_session=st.booleans(),
    is_elsewhere=st.booleans(),
)
times = st.lists(
    st.tuples(st.integers(0, 900_000), st.none() | st.integers(0, 900_000)), max_size=12
)


@pytest.mark.parametrize("name", SCENARIOS)
@given(seed=texts, asked=st.lists(requests, max_size=12), at=times)
def test_whatever_a_caller_does_is_answered_observed_and_judged(
    name: str, seed: str, asked: list[ScenarioRequest], at: list[tuple[int, int | None]]
) -> None:
    obstacle, rng = SCENARIOS[name], SeededRandom(seed)
    calls: list[ScenarioCall] = []
    for request, (begun, ended) in zip(asked, sorted(at, key=lambda t: t[0]), strict=False):
        reply = obstacle.reply(rng, calls, LINKS)
        assert 200 <= reply.status < 600
        assert reply.delay_s <= 5
        calls.append(ScenarioCall(begun, ended, "", obstacle.note(rng, request)))
    seen = obstacle.observe(rng, calls)
    assert canonical_bytes(seen)
    assert obstacle.weigh(seen) == obstacle.weigh(obstacle.observe(SeededRandom(seed), list(calls)))
    assert obstacle.weigh(seen).note


@pytest.mark.parametrize("obstacle", SCENARIOS.values(), ids=lambda one: one.name)
@given(
    seen=st.dictionaries(
        texts,
        st.none() | st.booleans() | st.integers() | texts | st.lists(st.integers()),
        max_size=5,
    )
)
def test_evidence_of_any_shape_is_judged(obstacle: Scenario, seen: dict[str, Any]) -> None:
    assert obstacle.weigh(seen).outcome in {"pass", "fail", "not_tested"}
    judged_conduct({"course": {obstacle.name: seen}, "wrappers": seen})


@given(texts, texts, st.integers(0, 50), st.integers(0, 50))
def test_dice_stay_in_range_and_differ_by_seed(one: str, other: str, low: int, more: int) -> None:
    assert low <= SeededRandom(one).number("n", low, low + more) <= low + more
    assert (SeededRandom(one).word("w") == SeededRandom(other).word("w")) == (one == other)
