"""Proofs of control and what follows them, put together."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from assay.control.identity import Control
from assay.control.ports import FOLLOWS_DAYS
from assay.infra.http.txt_records import DnsTxtRecords
from assay.infra.sql.control import SqlControlStore
from assay.infra.sql.control_records import ControlRecords
from assay.infra.sql.engine import Database
from assay.kit.clock import Clock
from assay.probing.ports import Probe
from assay.trust.behaviour import critical_findings
from assay.trust.model import Evaluation, SignalName

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
