"""Work beside the requests: writes counts, finishes payments, watches connections.

It also reports when one address that is not trusted holds most of the connections. That is a proxy
that the settings do not name, or somebody who tries to use up all connections. The log reports it,
and a file in the data directory tells `assay doctor`, which is another process.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from assay.analytics.store_calls import SqlMissingCalls
from assay.app.log import Log
from assay.common.clock import Clock
from assay.common.tasks import finish
from assay.db.engine import Database
from assay.payments.settlement import Settlement
from assay.payments.store import SqlLedgerStore
from assay.payments.transfers import Transfers
from assay.payments.watcher import Watcher
from assay.webhooks.delivery import Deliverer
from assay.webhooks.store_outbox import WebhookOutbox

FLUSH_EVERY_S = 1.0
"""Seconds between two writes of what is held in memory: the most that a crash loses."""

RECONCILE_EVERY_S = 5.0
"""Seconds between two looks for settlements that no process works on any more."""

PURGE_EVERY_S = 600.0

RECOVER_EVERY_S = 10.0
"""Seconds between two looks for calls that a crash of any process lost from the log."""

Flush = Callable[[], Awaitable[None]]


async def flush_forever(flush: Flush, log: Log) -> None:
    """Flush every second; if a store is down, try again."""
    while True:
        await asyncio.sleep(FLUSH_EVERY_S)
        try:
            await flush()
        except Exception as error:  # noqa: BLE001 - a store that is down now is tried again
            log.warning("counts could not be written down, again in a second", error=repr(error))


async def reconcile_forever(settlement: Settlement, network: str, log: Log) -> None:
    """Finish what a crash or an outage left unfinished on one network; networks do not wait."""
    while True:
        try:
            for entry in await settlement.reconcile(network=network):
                log.info("payment reconciled", payment=entry.id, state=entry.state.value)
        except Exception as error:  # noqa: BLE001 - a chain or store that is down is tried again
            log.warning("payments could not be reconciled, again soon", error=repr(error))
        await asyncio.sleep(RECONCILE_EVERY_S)


async def purge_forever(ledger: SqlLedgerStore, keep: timedelta, clock: Clock, log: Log) -> None:
    """Remove old paid answers."""
    while True:
        try:
            await ledger.purge_stored(clock.now() - keep)
        except Exception as error:  # noqa: BLE001 - a store that is down is tried again
            log.warning("old paid answers could not be forgotten, again soon", error=repr(error))
        await asyncio.sleep(PURGE_EVERY_S)


async def watch_forever(watcher: Watcher, network: str, log: Log) -> None:
    """Look at settled payments of one network again; if a node is down, ask again."""
    while True:
        await asyncio.sleep(RECONCILE_EVERY_S)
        try:
            for entry in await watcher.run(network):
                log.warning("a settled payment moved", payment=entry.id, state=entry.state.value)
        except Exception as error:  # noqa: BLE001 - a chain or store that is down is tried again
            log.warning("payments could not be looked at again", error=repr(error))


async def send_transfers_forever(transfers: Transfers, log: Log) -> None:
    """Finish payouts and refunds that any process has begun."""
    while True:
        try:
            for one in await transfers.resume():
                log.info("transfer moved", transfer=one.id, kind=one.kind, state=one.state.value)
        except Exception as error:  # noqa: BLE001 - a chain or store that is down is tried again
            log.warning("transfers could not be looked after, again soon", error=repr(error))
        await asyncio.sleep(RECONCILE_EVERY_S)


async def recover_calls_forever(missing: SqlMissingCalls, flush: Flush, log: Log) -> None:
    """Log the calls that other processes lost; this process writes its own first."""
    while True:
        try:
            await flush()
            if found := await missing.restore():
                log.info("calls recovered from the ledger", calls=found)
        except Exception as error:  # noqa: BLE001 - a store that is down now is tried again
            log.warning("calls could not be recovered, again soon", error=repr(error))
        await asyncio.sleep(RECOVER_EVERY_S)


async def tell_forever(outbox: WebhookOutbox, database: Database, log: Log) -> None:
    """Create the deliveries that an evaluation left for later, some accounts at a time."""
    while True:
        is_left = False
        try:
            # A write that is cut off keeps its lock on the database, so it is finished.
            is_left = await finish(outbox.go_on(database))
        except Exception as error:  # noqa: BLE001 - a store that is down now is tried again
            log.warning("webhooks could not be told, again in a second", error=repr(error))
        await asyncio.sleep(0 if is_left else FLUSH_EVERY_S)


async def deliver_forever(deliverer: Deliverer, log: Log) -> None:
    """Deliver webhooks as they become due; if a store is down, try again."""
    while True:
        try:
            await deliverer.run()
        except Exception as error:  # noqa: BLE001 - a store that is down now is tried again
            log.warning("webhooks could not be looked for, again in a second", error=repr(error))
            await asyncio.sleep(FLUSH_EVERY_S)


FILE_NAME = "connections.json"
AGAIN_S = 3600.0


class CrowdNotice:
    """Called for every connection of such an address; reports it once an hour."""

    def __init__(self, data_dir: Path, log: Log, clock: Clock) -> None:
        self._path = data_dir / FILE_NAME
        self._log = log
        self._clock = clock
        self._again_s = 0.0

    def __call__(self, address: str, count: int, total: int) -> None:
        """Report that `address` holds `count` of `total` connections."""
        now_s = self._clock.monotonic_s()
        if now_s < self._again_s:
            return
        self._again_s = now_s + AGAIN_S
        self._log.warning(
            "one address holds most connections",
            address=address,
            count=count,
            of=total,
            next="if it is a proxy of yours, name it in ASSAY_TRUSTED_PROXIES",
        )
        at = self._clock.now().isoformat().replace("+00:00", "Z")
        found = {"address": address, "held": count, "of": total, "at": at}
        try:
            self._write(json.dumps(found))
        except OSError as error:
            self._log.warning("cannot tell doctor of it", error=str(error))

    def _write(self, text: str) -> None:
        temporary = self._path.with_suffix(f".{os.getpid()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(temporary, flags, 0o600), "w") as out:
            out.write(text)
        temporary.replace(self._path)
