"""A seller without a free part reaches rung 1 by calls that the operator pays for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.node import needs_node

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
SELLER = "Networks by the answer"


def test_who_only_sells_is_let_in_once_the_operator_has_bought(tmp_path: Path) -> None:
    """The real service, its scheduler and two chains; the clock alone is simulated."""
    needs_node()
    out = tmp_path / "rows.jsonl"
    done = subprocess.run(
        [
            *(sys.executable, "bench/ground_truth.py", "--kinds", "honest", "--names", SELLER),
            *("--days", "6", "--everybody", "--paid-calls", "2", "--out", str(out)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    first, last = rows[0], rows[-1]
    assert (first["name"], first["allow"], first["rung"]) == (SELLER, False, 0)
    assert "payments_only        admitted 0/1" in done.stdout
    assert (last["name"], last["allow"], last["rung"]) == (SELLER, True, 1)
