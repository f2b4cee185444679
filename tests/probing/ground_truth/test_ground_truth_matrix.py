"""The report says what the rows say."""

from typing import Any

import pytest
from bench.ground_truth_matrix import Row, auc, caught, critical_of, exposure_h, print_matrix


def row(round_h: int, *, allow: bool, **more: Any) -> Row:
    filled = {"name": "one", "kind": "patient", "truth": "patient", "harm_h": 24.0} | more
    return Row(
        round_h=round_h, allow=allow, score=70.0, formula=70.0, tier="BA", seconds=1.0, **filled
    )


def test_exposure_counts_hours_let_in_after_the_first_harm_only() -> None:
    rows = [row(0, allow=True), row(20, allow=True), row(30, allow=True), row(50, allow=False)]
    assert exposure_h(rows, 100.0) == (30 - 24) + 20


def test_exposure_of_an_agent_that_is_never_denied_lasts_until_the_end() -> None:
    assert exposure_h([row(0, allow=True)], 100.0) == 76.0


def test_a_patient_agent_is_caught_by_the_second_visit_after_its_harm_or_not_at_all() -> None:
    before, first, second = row(0, allow=True), row(30, allow=True), row(50, allow=False)
    assert caught([before]) is None
    assert caught([before, first, second]) is True
    assert caught([before, first, row(40, allow=True), second]) is False


def test_auc_is_the_share_of_pairs_in_the_right_order() -> None:
    assert auc([3.0, 2.0], [1.0, 2.0]) == 0.875
    assert auc([1.0], [2.0]) == 0.0


def test_critical_findings_are_seen_wherever_an_answer_has_them() -> None:
    probes = [{"name": "first", "severity": "critical", "outcome": "fail"}]
    findings = [
        {"check": "second", "severity": "critical", "open": True},
        {"check": "third", "severity": "critical", "open": False},
    ]
    answer = {"testSummary": {"probes": probes}, "signals": [{"evidence": {"findings": findings}}]}
    assert critical_of({}, answer) == ["first", "second"]


@pytest.mark.parametrize(("honest", "is_held"), [(True, True), (False, False)])
def test_bars_are_held_only_by_a_grade_that_tells_good_from_bad(
    *, honest: bool, is_held: bool
) -> None:
    good = row(0, allow=honest, name="good", kind="a2a", truth="honest", harm_h=0.0)
    bad = Row("bad", "templates", "immediate", 0, allow=False, score=40.0, formula=40.0, tier="C",
              seconds=1.0)  # fmt: skip
    said: list[str] = []
    assert print_matrix([good, bad], 0, said.append) is is_held
    assert any("templates" in line for line in said)
