"""Every bench starts: what it imports is there, also where no test runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHES = [
    path.stem
    for path in sorted((ROOT / "bench").glob("*.py"))
    if "ArgumentParser(" in path.read_text("utf-8") and path.stem != "load"
]
"""`load` is a part of others, that they start with JSON on its input."""


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_says_how_it_is_used(name: str) -> None:
    command = [sys.executable, "-m", f"bench.{name}", "--help"]
    path = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}:{ROOT / 'bench'}", "COLUMNS": "100"}
    done = subprocess.run(command, cwd=ROOT, env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout
