"""Options of `assay wrappers` that are refused before anything is read or changed."""

import pytest

from assay.cli.wrappers import add, edit


@pytest.mark.parametrize(
    "tier", ["D=0.001", "A", "A=x", "A=1/x", "A=.", "A=1e9", "a=1", "A=-1", "A=1/", "A=1\n", ""]
)
def test_a_tier_without_a_price_of_its_own_is_refused(
    tier: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert edit("some-id", tier=("AAA=0.001", tier)) == 1
    assert add("op@example.com", "/a", "https://a.example", tier=(tier,)) == 1
    said = capsys.readouterr().err
    assert said.count("assay: ") == 2
    assert "such as A=0.002/600" in said or "is not a number" in said


@pytest.mark.parametrize(
    "quota", ["5", "5/week", "/day", "-5/day", "5.5/day", "1e3/day", "5/day ", ""]
)
def test_a_quota_that_names_no_calls_in_a_day_or_month_is_refused(
    quota: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert edit("some-id", free_quota=quota) == 1
    assert add("op@example.com", "/a", "https://a.example", free_quota=quota) == 1
    assert capsys.readouterr().err.count("such as 100/day") == 2
