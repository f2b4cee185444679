"""Fuzz every parser of outside bytes for as long as you like.

.venv/bin/python bench/fuzz.py --minutes 60               all targets, one after the other
.venv/bin/python bench/fuzz.py --minutes 5 --only url     one of them
.venv/bin/python bench/fuzz.py --minutes 60 --keep        and keep some of what was found

What is found stays in `--folder` (default .fuzz), so the next run begins where this one ended.
Status 1 when a parser broke; the input is printed, to be put into tests/fuzz/crashes.
"""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.fuzz.campaign import Outcome, fuzz  # noqa: E402 - the checkout's own code
from tests.fuzz.corpus import CORPUS, save  # noqa: E402
from tests.fuzz.targets import TARGETS  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz every parser of outside bytes.")
    parser.add_argument("--minutes", type=float, default=10.0, help="Of all targets together.")
    parser.add_argument("--only", nargs="*", choices=sorted(TARGETS), default=sorted(TARGETS))
    parser.add_argument("--jobs", type=int, default=1, help="Targets at a time.")
    parser.add_argument("--folder", type=Path, default=ROOT / ".fuzz")
    parser.add_argument("--keep", action="store_true", help="Add to tests/fuzz/corpus.")
    asked = parser.parse_args()
    each_s = max(1, int(asked.minutes * 60 * asked.jobs / len(asked.only)))
    parts = [asked.only[part :: asked.jobs] for part in range(asked.jobs)]
    print(f"{'target':24} {'executions':>12} {'inputs':>7}  finding", flush=True)
    with ThreadPoolExecutor(asked.jobs) as pool:
        parted = pool.map(lambda names: fuzz(names, each_s, asked.folder.absolute()), parts)
        outcomes = [told(outcome) for part in parted for outcome in part]
    if asked.keep:
        for outcome in outcomes:
            save(CORPUS, outcome.name, outcome.found)
    broken = [outcome for outcome in outcomes if outcome.crash is not None]
    print(f"{'all':24} {sum(one.executions for one in outcomes):12,} {len(broken):>7} broken")
    return 1 if broken else 0


def told(outcome: Outcome) -> Outcome:
    """Print what came of one target."""
    crash = "" if outcome.crash is None else json.dumps(outcome.crash.decode("latin-1"))
    print(f"{outcome.name:24} {outcome.executions:12,} {len(outcome.found):7}  {crash}", flush=True)
    if outcome.crash is not None:
        print(outcome.log)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
