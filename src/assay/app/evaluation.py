"""Builds evaluation from the settings: control, sources of signals, and visits."""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from secrets import SystemRandom
from typing import Final
from urllib.parse import unquote, urlsplit

from assay.app.log import Log, naming, write_back_note
from assay.chains.networks import Networks
from assay.chains.rpc import Rpc
from assay.common.clock import Clock
from assay.common.json import is_array, is_object
from assay.common.keyring import SecretBox
from assay.common.shared_state import SharedState
from assay.control.identity import Control
from assay.control.ports import FOLLOWS_DAYS
from assay.control.proofs import HostFiles
from assay.control.store import SqlControlStore
from assay.control.txt_records import DnsTxtRecords
from assay.db.engine import Database
from assay.db.store_costs import DailyBudgets
from assay.evaluation.accumulation import VisitHistory
from assay.evaluation.attestations import EasAttestations, eas_source
from assay.evaluation.behaviour import critical_findings, raw_findings
from assay.evaluation.credentials import KEPT_UNUSED, ServiceCredentials
from assay.evaluation.judge import OpenAiModel
from assay.evaluation.model import Evaluation, SignalName
from assay.evaluation.ports import EvaluationStore, Sources
from assay.evaluation.schedule import GATE_ASKS_COUNT, Enrolments, GateAsks, NamedFirst
from assay.evaluation.scheduler import Scheduler, SchedulerDependencies, SiblingVisits
from assay.evaluation.service import EVER, Evaluator
from assay.evaluation.store_credentials import SqlServiceCredentials
from assay.evaluation.store_evaluations import ControlRecords, SqlEvaluationStore
from assay.evaluation.store_visits import (
    SqlSeeds,
    SqlVisitRequests,
    SqlVisitSchedule,
    SqlVisitStore,
)
from assay.evaluation.visits import WINDOW
from assay.http1.model import Target
from assay.identity.web_bot_auth import ControlsHost
from assay.key_agents.store import SqlAttestedPeople
from assay.net.egress.budget_client import EgressBudget
from assay.net.egress.client import GuardedHttp
from assay.net.egress.dial import HttpProxy
from assay.net.egress.ports import EgressClient
from assay.net.egress.url import EgressPolicy, parse_target
from assay.personhood.human_registry import SelfHumans, contract_of
from assay.personhood.model import PersonhoodVerifier
from assay.personhood.store import SqlPersonhoodStore
from assay.personhood.verifier import CloudVerifier, RouterVerifier
from assay.probing.clients.dialers import StockDialers
from assay.probing.ports import Probe, Severity
from assay.probing.unannounced import UnannouncedVisits
from assay.registries.subjects import Subjects
from assay.reputation.write_back import FeedbackPublisher, SolanaFees
from assay.settings import Settings

CONTROL_ROWS_AT_ONCE: Final = 500


def control(database: Database, clock: Clock) -> Control:
    """Return what collects the controllers of an agent's services."""
    return Control(SqlControlStore(database, clock), DnsTxtRecords())


def controls_host(database: Database, clock: Clock) -> ControlsHost:
    """Return what says whether an agent has proven control of a whole origin, undisputed."""
    store = SqlControlStore(database, clock)

    async def controls(subject_key: str, origin: str) -> bool:
        since = clock.now() - timedelta(days=FOLLOWS_DAYS)
        found = await store.proven_paths(subject_key, since)
        return any(s.origin == origin and s == s.host_scope for s in found)

    return controls


def control_records(probes: Mapping[str, Probe]) -> ControlRecords:
    """Return what stores the findings of each evaluation about control."""

    def critical(evaluation: Evaluation) -> Sequence[str]:
        return [
            name
            for one in evaluation.collected
            if one.signal is SignalName.SANDBOX
            for name in critical_findings(one.evidence, probes)
        ]

    return ControlRecords(critical)


def control_retention(database: Database, clock: Clock) -> Callable[[], Awaitable[bool]]:
    """Return what removes records that no longer count."""
    store = SqlControlStore(database, clock)

    async def remove() -> bool:
        before = clock.now() - timedelta(days=FOLLOWS_DAYS)
        return await store.remove(before, CONTROL_ROWS_AT_ONCE) >= CONTROL_ROWS_AT_ONCE

    return remove


def sources(
    settings: Settings, networks: Networks, rpc: Rpc, database: Database, clock: Clock
) -> Sources:
    """Return the configured sources.

    Raises `ValueError` with a plain sentence for an invalid one.
    """
    with naming("ASSAY_ATTESTATION_SOURCES"):
        listed = [eas_source(row, networks) for row in settings.attestation_sources]
    humans = None
    if settings.self_registry:
        where = contract_of(settings.self_registry, networks, "ASSAY_SELF_REGISTRY")
        humans = SelfHumans(rpc, *where, clock)
    return Sources(
        attestations=EasAttestations(rpc, listed, clock) if listed else None,
        attested=SqlAttestedPeople(database, clock) if listed else None,
        humans=humans,
        personhoods=None if settings.world_id_app is None else SqlPersonhoodStore(database),
        judge=_judge(settings),
    )


def _judge(settings: Settings) -> OpenAiModel | None:
    if settings.judge_url is None:
        return None
    key = None if settings.judge_key is None else settings.judge_key.get_secret_value()
    return OpenAiModel(settings.judge_url, settings.judge_model, key, settings.judge_timeout_s)


def write_back(  # noqa: PLR0913, PLR0917 - all that a write needs
    settings: Settings,
    networks: Networks,
    subjects: Subjects,
    rpc: Rpc,
    log: Log,
    database: Database,
    clock: Clock,
) -> FeedbackPublisher | None:
    """Return the write-back of scores if a keypair is configured.

    Raises `ValueError` for a bad one.
    """
    if settings.solana_keypair is None:
        return None
    # Loads Solana's signing library, which no other service needs.
    from assay.reputation.solana_writer import SolanaWriter, keypair_of  # noqa: PLC0415

    keypair = keypair_of(settings.solana_keypair.get_secret_value())
    writer = SolanaWriter(rpc, keypair, settings.solana_priority_microlamports)
    fees = SolanaFees(writer, DailyBudgets(database), settings.solana_feedback_per_day, clock)
    return FeedbackPublisher(subjects, networks, writer, write_back_note(log), fees)


def absent(found: Sources) -> frozenset[SignalName]:
    """Return the signals that are not offered, because they have no source."""
    by_signal = {
        SignalName.ATTESTATION: found.attestations,
        SignalName.SELF: found.humans,
        SignalName.PERSONHOOD: found.personhoods,
    }
    return frozenset(name for name, source in by_signal.items() if source is None)


def verifier(
    settings: Settings, networks: Networks, rpc: Rpc, stack: AsyncExitStack
) -> PersonhoodVerifier | None:
    """Return what verifies proofs of personhood, or None. Raises `ValueError`."""
    app, action = settings.world_id_app, settings.world_id_action
    if app is None:
        return None
    if settings.world_id_verifier == "cloud":
        cloud = CloudVerifier(settings.world_id_api, app, action)
        stack.push_async_callback(cloud.aclose)
        return cloud
    where = contract_of(settings.world_id_router, networks, "ASSAY_WORLD_ID_ROUTER")
    return RouterVerifier(rpc, *where, app, action)


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
    """Return unannounced visits over the configured proxies. Raises `ValueError`.

    All of their requests share the one egress budget.
    """
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
        _private_prompts(settings.prompts),
        seeds=SqlSeeds(database, clock),
        pause_s=settings.visit_pause_s,
    )


def callback_addresses(
    settings: Settings, policy: EgressPolicy
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return where agents deliver results: for announced visits, and for unannounced ones.

    Unannounced visits never name this service: they use canary hosts. Announced visits use a canary
    host only if the service has no address of its own that agents can reach.
    """
    is_known = settings.public_url is not None or policy.allow_private
    own = (settings.address,) if is_known else ()
    canary = settings.canary_hosts
    return _reachable(own, policy) or _reachable(canary, policy), _reachable(canary, policy)


def _reachable(addresses: Sequence[str], policy: EgressPolicy) -> tuple[str, ...]:
    return tuple(one for one in addresses if isinstance(parse_target(one, policy), Target))


class EvaluatedControl:
    """Implements `probing.unannounced.ProvenControl` by the newest evaluation."""

    def __init__(self, store: EvaluationStore) -> None:
        self._store = store

    async def services(self, subject_key: str) -> frozenset[str]:
        """Implement `ProvenControl.services`."""
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
    """Return the proxy of a URL; raises `ValueError` for any other URL, without its password."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
        raise ValueError("ASSAY_VISIT_PROXIES: each is http://user:password@host:port")
    proof = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        proof = "Basic " + base64.b64encode(pair.encode()).decode()
    return HttpProxy(parts.hostname, parts.port or PROXY_PORT, proof)


def _private_prompts(path: Path | None) -> tuple[str, ...]:
    """Return the operator's own requests, one a line; raises `ValueError` if it is unreadable."""
    if path is None:
        return ()
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"ASSAY_PROMPTS: {path} cannot be read") from error
    kept = [line.strip()[:PROMPT_CHARS_MAX] for line in lines if line.strip()]
    return tuple(kept[:PROMPTS_MAX])


LOOKED_EVERY_S: Final = 10.0
"""Seconds between two looks of a process for visits that are due."""

ROWS_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Visits:
    """What stores visits and plans the next ones."""

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
    """Build visits over the database that all processes share.

    `box` seals what owners deposit; `is_ours` recognises a credential for this service itself.
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
    """Return what finds visits of siblings that replace an agent's own."""
    critical = frozenset(n for n, p in probes.items() if p.severity is Severity.CRITICAL)
    return SiblingVisits(evaluations, parts.store, clock, critical)


def first_turns(parts: Visits, http: EgressClient, clock: Clock) -> NamedFirst:
    """Return what plans first visits; agents that their host's file names come first."""
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
    """Return what makes the visits that are due."""

    def failed(subject_key: str, error: Exception) -> None:
        log.warning("a visit could not be made", subject=subject_key, error=repr(error))

    return Scheduler(
        SchedulerDependencies(
            *(parts.schedule, subjects, networks, evaluator, clock),
            *(settings.visits_per_host_day, failed, unannounced, siblings),
        )
    )


async def visit_forever(made: Scheduler, log: Log) -> None:
    """Make visits that are due; continue at once while more are due."""
    while True:
        try:
            if await made.run():
                continue
        except Exception as error:  # noqa: BLE001 - a store that is down now is tried again
            log.warning("visits could not be looked for, again soon", error=repr(error))
        await asyncio.sleep(LOOKED_EVERY_S)


def visit_retention(parts: Visits, clock: Clock) -> tuple[str, Callable[[], Awaitable[bool]]]:
    """Return the removal of visits, and of scheduled agents that nobody asks about.

    Seeds are kept for twice as long, so that evidence which replaces another visit's can be
    checked. Deposited credentials are removed if no visit used them for as long.
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
