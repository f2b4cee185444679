"""Same evidence, same score, same snapshot hash: here and in another process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.same_everywhere import digest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_a_thousand_evaluations_are_the_same_in_every_process() -> None:
    run = [sys.executable, "-m", "tests.support.same_everywhere"]
    told = {
        subprocess.run(
            run,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT}/src:{ROOT}"},  # noqa: TID251 - handed on
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert told == {digest()}
