"""Visits' history and the scheduler, from the settings."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from secrets import SystemRandom
from typing import Final

from assay.app.log import Log
from assay.chains.networks import Networks
from assay.common.clock import Clock
from assay.common.secretbox import SecretBox
from assay.control.host_files import HostFiles
from assay.control.store import SqlControlStore
from assay.db.engine import Database
from assay.evaluation.accumulation import VisitHistory
from assay.evaluation.behaviour import raw_findings
from assay.evaluation.credentials import KEPT_UNUSED, ServiceCredentials
from assay.evaluation.enrolment import GATE_ASKS_COUNT, Enrolments, GateAsks
from assay.evaluation.first_turns import NamedFirst
from assay.evaluation.ports import EvaluationStore
from assay.evaluation.scheduler import Scheduler, SchedulerDependencies
from assay.evaluation.service import Evaluator
from assay.evaluation.sibling_agents import SiblingVisits
from assay.evaluation.store_credentials import SqlServiceCredentials
from assay.evaluation.store_visit_requests import SqlVisitRequests
from assay.evaluation.store_visit_schedule import SqlVisitSchedule
from assay.evaluation.store_visit_seeds import SqlSeeds
from assay.evaluation.store_visits import SqlVisitStore
from assay.evaluation.visits import WINDOW
from assay.net.egress.ports import EgressClient
from assay.probing.ports import Probe, Severity
from assay.probing.unannounced import UnannouncedVisits
from assay.registries.subjects import Subjects
from assay.settings import Settings

LOOKED_EVERY_S: Final = 10.0
"""How often a process looks for visits that are due."""

ROWS_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Visits:
    """What remembers visits and plans the next ones."""

    store: SqlVisitStore
    schedule: SqlVisitSchedule
    history: VisitHistory
    enrolments: Enrolments
    seeds: SqlSeeds
    requests: SqlVisitRequests
    gate_asks: GateAsks
    credential_rows: SqlServiceCredentials
    credentials: ServiceCredentials


def visits(
    database: Database, clock: Clock, box: SecretBox, is_ours: Callable[[str], bool]
) -> Visits:
    """Over the database all processes share.

    `box` seals what owners deposit; `is_ours` knows a credential for this service itself.
    """
    store, chance = SqlVisitStore(database), SystemRandom().random
    requests, deposits = SqlVisitRequests(database), SqlServiceCredentials(database)
    enrolments = Enrolments(requests, clock, chance)
    return Visits(
        store,
        SqlVisitSchedule(database, clock, chance),
        VisitHistory(store, clock, raw_findings),
        enrolments,
        SqlSeeds(database, clock),
        requests,
        GateAsks(enrolments, clock),
        deposits,
        ServiceCredentials(deposits, box, SqlControlStore(database, clock), clock, is_ours),
    )


def sibling_visits(
    parts: Visits, evaluations: EvaluationStore, probes: Mapping[str, Probe], clock: Clock
) -> SiblingVisits:
    """Finds visits of siblings that stand for an agent's own."""
    critical = frozenset(n for n, p in probes.items() if p.severity is Severity.CRITICAL)
    return SiblingVisits(evaluations, parts.store, clock, critical)


def first_turns(parts: Visits, http: EgressClient, clock: Clock) -> NamedFirst:
    """Plans visits, those first whom their host's own file names."""
    return NamedFirst(parts.schedule, HostFiles(http, clock))


def scheduler(  # noqa: PLR0913, PLR0917 - what visits are made with
    settings: Settings,
    parts: Visits,
    subjects: Subjects,
    networks: Networks,
    evaluator: Evaluator,
    clock: Clock,
    unannounced: UnannouncedVisits | None,
    siblings: SiblingVisits,
    log: Log,
) -> Scheduler:
    """Makes the visits that are due."""

    def failed(subject_key: str, error: Exception) -> None:
        log.warning("a visit could not be made", subject=subject_key, error=repr(error))

    return Scheduler(
        SchedulerDependencies(
            *(parts.schedule, subjects, networks, evaluator, clock),
            *(settings.visits_per_host_day, failed, unannounced, siblings),
        )
    )


async def visit_forever(made: Scheduler, log: Log) -> None:
    """Make what is due; at once again while more is."""
    while True:
        try:
            if await made.run():
                continue
        except Exception as error:  # noqa: BLE001 - a store that is down now is tried again
            log.warning("visits could not be looked for, again soon", error=repr(error))
        await asyncio.sleep(LOOKED_EVERY_S)


def visit_retention(parts: Visits, clock: Clock) -> tuple[str, Callable[[], Awaitable[bool]]]:
    """Removes visits, and agents of the schedule nobody asks about, with the window.

    Seeds are kept for twice as long: evidence that stood for another visit's can be checked.
    Deposited credentials go when no visit had them for as long.
    """

    async def remove() -> bool:
        before = clock.now() - WINDOW
        removed = [
            await parts.store.remove(before, ROWS_AT_ONCE),
            await parts.schedule.remove_idle(before, ROWS_AT_ONCE),
            await parts.seeds.remove(before - WINDOW, ROWS_AT_ONCE),
            await parts.requests.remove_gates(clock.now() - GATE_ASKS_COUNT, ROWS_AT_ONCE),
            await parts.credential_rows.remove_unused(clock.now() - KEPT_UNUSED, ROWS_AT_ONCE),
        ]
        return max(removed) == ROWS_AT_ONCE

    return "visits", remove
