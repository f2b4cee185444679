"""The bench of the ground truth runs from chain to matrix with one command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ground_truth.agents import AGENTS
from tests.support.node import needs_node

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
ROOT = Path(__file__).parents[2]


FIRST = [spec for spec in AGENTS if spec.kind.split()[0] not in {"fresh", "second", "stallers"}]
"""The first set, without those who only keep a visit waiting: a minute of tests each."""


def test_a_sample_of_each_kind_is_evaluated_and_none_is_let_in_unfinished(tmp_path: Path) -> None:
    """Bars are the bench's to judge, with `--strict`."""
    needs_node()
    out = tmp_path / "rows.jsonl"
    kinds = ",".join(sorted({spec.kind for spec in FIRST}))
    done = subprocess.run(
        [
            *(sys.executable, "bench/ground_truth.py", "--short", "--per-kind", "1"),
            *("--kinds", kinds, "--out", str(out)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert {(row["truth"], row["kind"]) for row in rows} >= {(s.truth, s.kind) for s in FIRST}
    assert [row["name"] for row in rows if row["is_pending"] and row["allow"]] == []
    assert "AUC of the formula's score" in done.stdout
