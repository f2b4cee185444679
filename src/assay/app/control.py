"""Proofs of control and what follows them, put together."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from assay.common.clock import Clock
from assay.control.identity import Control
from assay.control.ports import FOLLOWS_DAYS
from assay.control.store import SqlControlStore
from assay.control.txt_records import DnsTxtRecords
from assay.db.engine import Database
from assay.evaluation.behaviour import critical_findings
from assay.evaluation.model import Evaluation, SignalName
from assay.evaluation.store_evaluations import ControlRecords
from assay.probing.ports import Probe

ROWS_AT_ONCE: Final = 500


def control(database: Database, clock: Clock) -> Control:
    """Collects who controls the services of an agent."""
    return Control(SqlControlStore(database, clock), DnsTxtRecords())


def control_records(probes: Mapping[str, Probe]) -> ControlRecords:
    """Writes what each evaluation leaves about control."""

    def critical(evaluation: Evaluation) -> Sequence[str]:
        return [
            name
            for one in evaluation.collected
            if one.signal is SignalName.SANDBOX
            for name in critical_findings(one.evidence, probes)
        ]

    return ControlRecords(critical)


def control_retention(database: Database, clock: Clock) -> Callable[[], Awaitable[bool]]:
    """Removes what has not been seen for longer than it counts."""
    store = SqlControlStore(database, clock)

    async def remove() -> bool:
        before = clock.now() - timedelta(days=FOLLOWS_DAYS)
        return await store.remove(before, ROWS_AT_ONCE) >= ROWS_AT_ONCE

    return remove
