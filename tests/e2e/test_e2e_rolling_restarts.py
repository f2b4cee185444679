"""Processes behind a balancer are restarted one after the other, and no call fails."""

from pathlib import Path

import pytest

from tests.support.rolling_restarts import rolling_restarts

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_no_call_fails_while_processes_are_restarted_behind_haproxy(tmp_path: Path) -> None:
    """`bench/restarts.py` runs fifty of them."""
    made = rolling_restarts(tmp_path / "data", restarts=4, calls_s=50)
    assert made.restarts == 4
    assert made.failed == 0, made.answers
    assert made.answers["200"] >= 100
