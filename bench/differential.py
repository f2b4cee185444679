"""How the service frames generated streams, beside nginx, HAProxy and h11.

    ./.venv/bin/python bench/differential.py [--seconds 600] [--seed N] [--lanes 4]

Prints how many streams were read, how many each reader took, and every stream that breaks a law of
`tests/support/desync/differential.py`, by its number: the seed and the number give the bytes.
Ends with status 1 where one does.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from tests.support.desync.differential import Outcome, differential  # noqa: E402


async def _run(seed: int, seconds: float, lanes: int) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        async with differential(Path(folder), seed, lanes) as readers:
            return await readers.run(seconds=seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--lanes", type=int, default=4)
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    outcome = asyncio.run(_run(asked.seed, asked.seconds, asked.lanes))
    print(*outcome.findings, outcome, sep="\n")
    return int(bool(outcome.findings))


if __name__ == "__main__":
    sys.exit(main())
