"""Claims payments in a database, one after the other; prints each id once it is committed.

`python -m tests.support.claiming URL` runs until it is killed.
"""

import asyncio
import sys
from dataclasses import replace
from datetime import timedelta

from assay.common.clock import SystemClock
from assay.common.ids import new_id
from assay.db.engine import Database
from assay.payments.store import SqlLedgerStore
from tests.payments.ledger.test_ledger_store import entry


async def claim_for_ever(url: str) -> None:
    """Claim one payment after the other."""
    database, clock = await Database.open(url), SystemClock()
    ledger = SqlLedgerStore(database, clock)
    while True:
        made = replace(entry(nonce=new_id()), id=new_id(), created_at=clock.now())
        await ledger.claim(made, clock.now() - timedelta(hours=1))
        sys.stdout.write(made.id + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(claim_for_ever(sys.argv[1]))
