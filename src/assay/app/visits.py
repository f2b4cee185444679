"""Visits, put together from the settings: their history, the scheduler, and unannounced ones."""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from secrets import SystemRandom
from typing import Final
from urllib.parse import unquote, urlsplit

from assay.app.log import Log
from assay.chains.networks import Networks
from assay.common.clock import Clock
from assay.common.json import is_array, is_object
from assay.common.keyring import SecretBox
from assay.common.shared_state import SharedState
from assay.control.host_files import HostFiles
from assay.control.store import SqlControlStore
from assay.db.engine import Database
from assay.evaluation.accumulation import VisitHistory
from assay.evaluation.behaviour import raw_findings
from assay.evaluation.credentials import KEPT_UNUSED, ServiceCredentials
from assay.evaluation.model import SignalName
from assay.evaluation.ports import EvaluationStore
from assay.evaluation.schedule import GATE_ASKS_COUNT, Enrolments, GateAsks, NamedFirst
from assay.evaluation.scheduler import Scheduler, SchedulerDependencies, SiblingVisits
from assay.evaluation.service import EVER, Evaluator
from assay.evaluation.store_credentials import SqlServiceCredentials
from assay.evaluation.store_evaluations import SqlEvaluationStore
from assay.evaluation.store_visits import (
    SqlSeeds,
    SqlVisitRequests,
    SqlVisitSchedule,
    SqlVisitStore,
)
from assay.evaluation.visits import WINDOW
from assay.http1.model import Target
from assay.net.egress.budget_client import EgressBudget
from assay.net.egress.client import GuardedHttp
from assay.net.egress.dial import HttpProxy
from assay.net.egress.ports import EgressClient
from assay.net.egress.url import EgressPolicy, parse_target
from assay.probing.clients.dialers import StockDialers
from assay.probing.ports import Probe, Severity
from assay.probing.unannounced import UnannouncedVisits
from assay.registries.subjects import Subjects
from assay.settings import Settings

PROMPTS_MAX = 10_000
PROMPT_CHARS_MAX = 1_000
PROXY_PORT = 8080


def unannounced_visits(  # noqa: PLR0913, PLR0917 - what they are put together from
    settings: Settings,
    state: SharedState,
    budget: EgressBudget,
    direct: EgressClient,
    policy: EgressPolicy,
    stack: AsyncExitStack,
    database: Database,
    clock: Clock,
) -> UnannouncedVisits:
    """Their ways out share the one egress budget. Raises `ValueError` for what is set wrong."""
    ways = [
        GuardedHttp(policy, budget=budget, proxy=http_proxy(url)) for url in settings.visit_proxies
    ]
    for way in ways:
        stack.push_async_callback(way.aclose)
    return UnannouncedVisits(
        state,
        EvaluatedControl(SqlEvaluationStore(database)),
        policy,
        ways,
        direct,
        StockDialers(client_name=None),
        private_prompts(settings.prompts),
        seeds=SqlSeeds(database, clock),
        pause_s=settings.visit_pause_s,
    )


def callback_addresses(
    settings: Settings, policy: EgressPolicy
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where agents deliver results: in announced visits, and in the others.

    Those never name this service: they use canary hosts, and announced ones do so only without an
    address of ours. One that no agent can reach is none.
    """
    is_known = settings.public_url is not None or policy.allow_private
    own = (settings.address,) if is_known else ()
    canary = settings.canary_hosts
    return _reachable(own, policy) or _reachable(canary, policy), _reachable(canary, policy)


def _reachable(addresses: Sequence[str], policy: EgressPolicy) -> tuple[str, ...]:
    return tuple(one for one in addresses if isinstance(parse_target(one, policy), Target))


class EvaluatedControl:
    """Implements `probing.unannounced.ProvenControl`: what the newest evaluation found."""

    def __init__(self, store: EvaluationStore) -> None:
        self._store = store

    async def services(self, subject_key: str) -> frozenset[str]:
        """As the port says."""
        newest = await self._store.newest(subject_key, EVER)
        listed = [
            one.evidence.data.get("control")
            for one in (newest.collected if newest is not None else ())
            if one.signal is SignalName.SANDBOX
        ]
        rows = [row for found in listed if is_array(found) for row in found if is_object(row)]
        return frozenset(
            str(row.get("service")) for row in rows if row.get("proof") and not row.get("conflict")
        )


def http_proxy(url: str) -> HttpProxy:
    """The proxy that a URL names; raises `ValueError` for anything else, without its password."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
        raise ValueError("ASSAY_VISIT_PROXIES: each is http://user:password@host:port")
    proof = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        proof = "Basic " + base64.b64encode(pair.encode()).decode()
    return HttpProxy(parts.hostname, parts.port or PROXY_PORT, proof)


def private_prompts(path: Path | None) -> tuple[str, ...]:
    """The operator's own requests, one a line; raises `ValueError` where they cannot be read."""
    if path is None:
        return ()
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"ASSAY_PROMPTS: {path} cannot be read") from error
    kept = [line.strip()[:PROMPT_CHARS_MAX] for line in lines if line.strip()]
    return tuple(kept[:PROMPTS_MAX])


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
