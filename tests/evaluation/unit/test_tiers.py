import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.evaluation.scoring import DEFAULT_ROWS, tiers_from


@pytest.mark.parametrize(
    ("score", "tier", "risk", "route"),
    [
        (100, "AAA", "GREEN", "prod"),
        (95, "AAA", "GREEN", "prod"),
        (94.99, "AA", "GREEN", "prod"),
        (85, "A", "GREEN", "prod"),
        (84.99, "BAA", "YELLOW", "prod_throttled"),
        (65, "BA", "YELLOW", "prod_throttled"),
        (64.99, "B", "RED", "sandbox"),
        (50, "B", "RED", "sandbox"),
        (49.99, "CAA", "RED", "sandbox_only"),
        (34.99, "CA", "RED", "sandbox_only"),
        (19.99, "C", "RED", "sandbox_only"),
        (0, "C", "RED", "sandbox_only"),
    ],
)
def test_the_default_table_is_that_of_the_decisions(
    score: float, tier: str, risk: str, route: str
) -> None:
    grade = tiers_from().grade(score)
    assert (grade.tier, grade.risk_level, grade.route) == (tier, risk, route)


@given(st.floats(0, 100), st.floats(0, 100))
def test_a_higher_score_never_has_a_worse_grade(one: float, other: float) -> None:
    order = [row[1] for row in DEFAULT_ROWS]
    low, high = sorted((one, other))
    table = tiers_from()
    assert order.index(table.grade(high).tier) <= order.index(table.grade(low).tier)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "begin at score 0"),
        ([(10, "C", "RED", "sandbox_only")], "begin at score 0"),
        (
            [(50, "A", "GREEN", "prod"), (60, "C", "RED", "sandbox"), (0, "C", "RED", "sandbox")],
            "fall",
        ),
        ([(101, "A", "GREEN", "prod"), (0, "C", "RED", "sandbox")], "fall"),
        ([(50, "D", "GREEN", "prod"), (0, "C", "RED", "sandbox")], "unknown tier"),
        ([(50, "A", "BLUE", "prod"), (0, "C", "RED", "sandbox")], "unknown risk level"),
        ([(50, "C", "GREEN", "prod"), (0, "A", "RED", "sandbox")], "tier"),
        ([(50, "A", "RED", "prod"), (0, "C", "GREEN", "sandbox")], "risk level"),
        ([(50, "A", "GREEN", "sandbox"), (0, "C", "RED", "prod")], "route"),
    ],
)
def test_a_table_that_is_not_monotone_or_not_whole_is_refused(
    rows: list[tuple[float, str, str, str]], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        tiers_from(rows)
