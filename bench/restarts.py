"""Rolling restarts of two processes behind HAProxy under steady calls; counts failed calls.

.venv/bin/python bench/restarts.py --restarts 50 --calls 200

Both processes share a PostgreSQL. HAProxy asks `/readyz` every 200 ms and never retries a call.
Every caller keeps one connection. Status 1 if a call failed.
"""

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.support.rolling_restarts import rolling_restarts  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description="Rolling restarts behind HAProxy.")
    parser.add_argument("--restarts", type=int, default=50)
    parser.add_argument("--calls", type=float, default=200, help="A second, of all callers.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = rolling_restarts(Path(folder) / "data", asked.restarts, asked.calls)
    calls, calling_s = made.answers.total(), made.calling_s
    print(
        f"{made.restarts} restarts, {calls} calls in {calling_s:.0f} s ({calls / calling_s:.0f}/s)"
    )
    print(f"{made.failed} failed: {dict(made.answers)}")
    return 1 if made.failed else 0


if __name__ == "__main__":
    sys.exit(main())
