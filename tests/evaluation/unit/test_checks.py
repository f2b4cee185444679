"""Which checks are evidence, and what they are worth together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.json import JsonObject, JsonValue
from assay.evaluation.behaviour import summary
from assay.evaluation.checks import (
    CRITICAL_CAP,
    CheckTally,
    critical_failures,
    function_checks,
    supposed,
    worth,
)
from assay.evaluation.model import Evidence
from assay.evaluation.signals.sandbox import SIGNAL
from assay.probing.ports import Severity
from assay.probing.probes import PROBES
from tests.support.fakes.ladder import proven

REFUSED: JsonObject = {"answer": "refused", "page": False, "documented": False}
NOTHING_THERE: dict[str, JsonValue] = {
    "deep_json_survived": {"http": "refused"},
    "honest_status": REFUSED,
    "http_malformed_json": REFUSED,
    "http_oversized_body": {**REFUSED, "alive": True},
    "http_wrong_method": REFUSED,
    "http_wrong_type": REFUSED,
    "no_bombs": {"bombs": 0},
    "no_leaked_internals": {"leaked": []},
    "no_leaked_secrets": {"leaked": []},
    "no_poisoning": {"registration": []},
    "odd_json_survived": {"answers": ["refused", "refused"]},
    "reachable": {"services": [{"kind": "http", "answers": True}]},
    "registration_complete": {"wrong": []},
    "registration_names_agent": {"claims": True, "names_this": True},
    "registration_readable": {"readable": True},
    "steady_answers": {"http": {"steady": True, "latency": "fast"}},
}
"""What a service that answers 404 to everything shows: sixteen passes, all of them of nothing."""

SERVICES: JsonValue = [
    {"kind": "http", "name": "web", "endpoint": "https://a.test/", "state": "visited"}
]


def seen(probes: JsonObject, **more: JsonValue) -> Evidence:
    base: JsonObject = {"status": "tested", "why": None, "services": SERVICES, "probes": probes}
    return Evidence({**base, **more})


def test_404_to_everything_gives_no_confidence() -> None:
    weighed = SIGNAL.weigh(seen(NOTHING_THERE), PROBES)
    assert (weighed.value, weighed.confidence) == (50.0, 0.0)
    assert set(weighed.checks.values()) == {"not_made"}
    told = summary(seen(NOTHING_THERE), PROBES)
    assert (told["passed"], told["notTested"]) == (0, 16)


def test_the_same_answers_of_a_service_that_works_are_evidence() -> None:
    weighed = SIGNAL.weigh(seen(NOTHING_THERE, **proven("https://a.test/", kind="http")), PROBES)
    assert weighed.value == 100.0
    assert weighed.confidence > 0.5


@pytest.mark.parametrize("state", ["not_functional", "refuses", "unreachable", "not_callable"])
def test_what_was_not_shown_to_work_passes_nothing(state: str) -> None:
    row: JsonObject = {"service": "https://a.test/", "kind": "http", "state": state}
    weighed = SIGNAL.weigh(seen(NOTHING_THERE, function=[row]), PROBES)
    assert weighed.value <= 50
    assert "passed" not in weighed.checks.values()


def test_a_failure_counts_whether_or_not_anything_works() -> None:
    broken = {**NOTHING_THERE, "honest_status": {"answer": "broken", "page": False}}
    weighed = SIGNAL.weigh(seen(broken), PROBES)
    assert (weighed.value, weighed.checks["honest_status"]) == (0.0, "failed")


def test_checks_of_one_kind_say_nothing_of_a_service_of_another_kind() -> None:
    probes: JsonObject = {**NOTHING_THERE, "a2a_card_valid": {"card": "read", "wrong": []}}
    weighed = SIGNAL.weigh(seen(probes, **proven("https://a.test/", kind="http")), PROBES)
    assert weighed.checks["a2a_card_valid"] == "not_made"


def test_a_check_that_nobody_can_fail_is_no_check() -> None:
    for name, what in (("strict_transport", {"promised": True}), ("x402_payee_own", {"own": True})):
        weighed = SIGNAL.weigh(seen({name: what}, **proven(kind="http")), PROBES)
        assert dict(weighed.checks) == {"function_http": "passed"}


def test_checks_that_apply_and_saw_nothing_are_counted_as_not_made() -> None:
    probes: JsonObject = {
        "mcp_initialize": {"answer": "ok", "version": "2025-06-18"},
        "mcp_bad_arguments_refused": None,
        "x402_challenge_valid": None,
    }
    listed: JsonValue = [{"kind": "mcp", "endpoint": "https://a.test/mcp", "state": "visited"}]
    evidence = seen(probes, services=listed, **proven("https://a.test/mcp", kind="mcp"))
    assert dict(SIGNAL.weigh(evidence, PROBES).checks) == {
        "function_mcp": "passed",
        "mcp_bad_arguments_refused": "not_made",
        "mcp_initialize": "passed",
    }


def test_low_and_high_bound_the_value() -> None:
    probes: JsonObject = {"reachable": NOTHING_THERE["reachable"], "no_cross_talk": "unfinished"}
    weighed = SIGNAL.weigh(seen(probes, **proven(kind="http")), PROBES)
    assert weighed.low is not None
    assert weighed.high is not None
    assert weighed.low.value < weighed.value <= weighed.high.value
    assert weighed.low.cap is not None
    assert weighed.cap is None


def test_what_all_visits_say_of_a_check_replaces_what_the_newest_says() -> None:
    counted: JsonObject = {"passed": 3, "failed": 2, "outcome": "fail"}
    history: JsonObject = {"pooled": {"reachable": counted}}
    probes: JsonObject = {"reachable": NOTHING_THERE["reachable"]}
    weighed = SIGNAL.weigh(seen(probes, history=history, **proven(kind="http")), PROBES)
    assert weighed.checks == {"function_http": "passed", "reachable": "failed"}
    better: JsonObject = {"pooled": {"no_bombs": {**counted, "outcome": "pass"}}}
    weighed = SIGNAL.weigh(seen(probes, history=better, **proven(kind="http")), PROBES)
    both = {"no_bombs": "passed", "reachable": "passed"}
    assert weighed.checks == {**both, "function_http": "passed"}


def test_a_critical_failure_caps_only_once_it_is_corroborated() -> None:
    failed = CheckTally("no_cross_talk", Severity.CRITICAL, False, True, "It repeats.")  # noqa: FBT003
    assert critical_failures([failed], {}) == ["It repeats."]
    row: JsonObject = {"check": "no_cross_talk", "severity": "critical", "open": True}
    once: JsonObject = {"findings": [{**row, "sightings": 1}]}
    twice: JsonObject = {"findings": [{**row, "sightings": 2}]}
    assert critical_failures([failed], once) == []
    assert critical_failures([failed], twice) == ["It repeats."]
    older: JsonObject = {"history": {"openCritical": ["no_poisoning"]}, "findings": []}
    assert critical_failures([], older) == ["A critical finding is open: no_poisoning."]
    probes: JsonObject = {"no_cross_talk": {"repeated": True}}
    cap = SIGNAL.weigh(seen(probes, **proven(kind="a2a")), PROBES).cap
    assert cap is not None
    assert cap.score == CRITICAL_CAP


_tested = st.builds(
    CheckTally,
    st.text(max_size=3),
    st.sampled_from([Severity.MINOR, Severity.MAJOR, Severity.CRITICAL]),
    st.booleans(),
    st.booleans(),
    st.just("note"),
)


@given(st.lists(_tested, max_size=8))
def test_what_was_not_asked_lies_between_failed_and_passed(tested: list[CheckTally]) -> None:
    low, now, high = (
        worth(t) for t in (supposed(tested, passes=False), tested, supposed(tested, passes=True))
    )
    assert 0 <= low[0] <= 100
    assert low[1] == high[1] >= now[1]
    assert low[0] <= high[0]


def test_a_proof_of_function_counts_and_lack_of_one_counts_against() -> None:
    rows: list[JsonValue] = [
        {"service": "https://a.example", "kind": "http", "state": "functional"},
        {"service": "https://b.example", "kind": "http", "state": "not_functional"},
        {"service": "https://c.example", "kind": "a2a", "state": "not_functional"},
        {"service": "https://d.example", "kind": "mcp", "state": "unfinished"},
        {"service": "d.eth", "kind": "none", "state": "not_callable"},
    ]
    tested: JsonObject = {"status": "tested"}
    found = {t.name: t.outcome for t in function_checks({**tested, "function": [*rows]})}
    assert found == {
        "function_a2a": "failed",
        "function_http": "passed",
        "function_mcp": "not_made",
    }
    works = function_checks({**tested, "function": rows[:1]})
    fails = function_checks({**tested, "function": rows[2:3]})
    unconfirmed: JsonObject = {"history": {"unconfirmed": True}, "function": rows[2:3]}
    assert worth(works) == (100.0, 0.375)
    assert worth(fails) == (0.0, 0.375)
    assert worth(function_checks({**tested, **unconfirmed})) == (50.0, 0.0)
    assert function_checks({"function": rows[:1], "status": "inconclusive"}) == []
