"""The desync campaign as a table: every way to the service, every class of request.

    ./.venv/bin/python bench/desync.py [--way NAME]... [--group NAME]... [--faults]

A cell reads tried/refused/differing/leaked. `--faults` prints the bytes of every request that
differs, leaks or breaks a promise. Ends with status 1 where something leaked.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from tests.support.desync.campaign import WAYS, Campaign, Result, table  # noqa: E402
from tests.support.desync.cases import Case, all_cases  # noqa: E402
from tests.support.desync.tenants import tenants  # noqa: E402


async def _run(ways: Sequence[str], cases: Sequence[Case]) -> Campaign:
    with tempfile.TemporaryDirectory() as folder:
        async with tenants(Path(folder)) as both:
            campaign = Campaign(both)
            await campaign.run(ways, cases)
            return campaign


def _at_fault(result: Result) -> bool:
    return bool(result.differing or result.leaked or result.broken())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--group", action="append")
    parser.add_argument("--faults", action="store_true")
    asked = parser.parse_args()
    cases = [case for case in all_cases() if not asked.group or case.group in asked.group]
    campaign = asyncio.run(_run(asked.way or WAYS, cases))
    print(table(campaign.results))
    if asked.faults:
        print(*filter(_at_fault, campaign.results), *campaign.leaks_of_nobody, sep="\n")
    leaked = [result for result in campaign.results if result.leaked]
    print(f"{len(cases)} requests, {len(campaign.results)} sendings, {len(leaked)} leaked")
    return int(bool(leaked or campaign.leaks_of_nobody))


if __name__ == "__main__":
    sys.exit(main())
