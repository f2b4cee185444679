"""Random kill -9 of the service under load of paid calls, and what became of the money.

.venv/bin/python bench/kills.py                   160 kills over each store, MPP 40
.venv/bin/python bench/kills.py --only postgresql --kills 300 --seed 7
.venv/bin/python bench/kills.py --only mpp-postgresql --mpp-kills 300

Over SQLite one process is killed, over PostgreSQL two in turn, each 0.05 to 5 seconds (MPP: 10)
after it began to serve; it starts again at once (a fork of a loaded interpreter) on the same data.
Payers sign one payment a call and send it until it is served or refused. The chain is a local one,
MPP is paid on anvil (needs Node.js). Status 1 when anything was free, lost or doubled, or books
differ: chain, ledger and revenue, and what the seller sees in call log, funnel and revenue once
the service has recovered the calls that the kills lost, payment by payment.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.support.kills import HEAD, Table, mpp_kills, x402_kills  # noqa: E402
from tests.support.tempo import MODERATO, running  # noqa: E402

KINDS = ("sqlite", "postgresql", "mpp-sqlite", "mpp-postgresql")


def main() -> int:
    parser = argparse.ArgumentParser(description="Random kills under load of paid calls.")
    parser.add_argument("--only", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--kills", type=int, default=160, help="Of each store.")
    parser.add_argument("--mpp-kills", type=int, default=40, help="Of each store, over MPP.")
    parser.add_argument("--payers", type=int, default=8, help="At once.")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print(HEAD, flush=True)
    wrong = False
    for table, took_s in campaigns(asked):
        print(f"{table.row()} <!-- {took_s:.0f} s -->", flush=True)
        differ = not table.on_chain == table.ledger == table.revenue
        wrong |= differ or any((table.free, table.lost, table.doubled))
        if table.books.differences:
            wrong = True
            print(f"the seller sees something else: {table.books.differences}", flush=True)
        refused = [call.refused for call in table.calls if not call.served]
        if refused:
            print(f"not served: {len(refused)}, {sorted(set(refused))}", flush=True)
    return 1 if wrong else 0


def campaigns(asked: argparse.Namespace) -> Iterator[tuple[Table, float]]:
    for kind in asked.only:
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            protocol, _, store = kind.rpartition("-")
            if protocol:
                with running(MODERATO) as tempo:
                    table = mpp_kills(tempo, store, asked.mpp_kills, Path(folder), seed=asked.seed)
            else:
                table = x402_kills(kind, asked.kills, asked.payers, Path(folder), seed=asked.seed)
        yield table, time.monotonic() - began_s


if __name__ == "__main__":
    sys.exit(main())
