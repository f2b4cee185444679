"""The composition root: builds an `App` from `Settings`. Only this module names every part."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from importlib import import_module

from assay.accounts.allowance import Allowance
from assay.accounts.api_keys import ApiKeys, KeyTags
from assay.accounts.logins import Logins
from assay.accounts.mail import MailOutbox
from assay.accounts.operators import Operators, SignUps
from assay.accounts.passwords import Passwords
from assay.accounts.ports import Origins
from assay.accounts.second_factor import SecondFactors
from assay.accounts.store_operators import SqlAllowanceStore, SqlApiKeyStore, SqlOperatorStore
from assay.admin.account_data import AccountData, AccountDataDependencies
from assay.admin.overview import Admin, AdminDependencies
from assay.admin.store import SqlAccountEnd, SqlAdminStore
from assay.admin.store_retention import SqlRetention
from assay.analytics.log import CallLog
from assay.analytics.queries import Analytics
from assay.analytics.store_calls import SqlCallStore, SqlMissingCalls
from assay.analytics.store_rollups import SqlRollupProof
from assay.app import evaluation as evidence
from assay.app.accounts import AccountDependencies, account_services
from assay.app.background import (
    CrowdNotice,
    deliver_forever,
    flush_forever,
    purge_forever,
    reconcile_forever,
    recover_calls_forever,
    send_transfers_forever,
    tell_forever,
    watch_forever,
)
from assay.app.evaluation import (
    Visits,
    callback_addresses,
    control,
    control_records,
    control_retention,
    controls_host,
    first_turns,
    scheduler,
    sibling_visits,
    unannounced_visits,
    visit_forever,
    visit_retention,
    visits,
)
from assay.app.limits import (
    PlacedWindow,
    egress_budget,
    gate_quota,
    message_quota,
    quotas,
    shared_limits,
    visit_turns,
)
from assay.app.log import EvaluationLog, Log, RequestLog, naming, open_log
from assay.app.payments import (
    GasParts,
    GasRetention,
    PaidCallParts,
    paid_call_retention,
    paid_calls,
    payment_rows,
    payouts,
    take_up_key,
    tier_retention,
    watch_settling_forever,
)
from assay.app.readiness import ReadinessCheck
from assay.app.reputation import (
    ReputationParts,
    index_forever,
    purchases,
    read_files_forever,
    reputation_parts,
)
from assay.app.retention import Retention, retain_forever
from assay.app.secrets import secret_rings
from assay.app.wrappers import WrapperDependencies, build_wrappers
from assay.audit.store import SqlAuditStore
from assay.caller_behaviour.observations import ConductRecord, ObservationLog
from assay.caller_behaviour.scenario_run import ScenarioRuns
from assay.caller_behaviour.scenarios import SCENARIOS
from assay.caller_behaviour.store import SqlConductStore, SqlCourseStore
from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.evm.signing import Eip191Signatures, address_of_key, sign_message
from assay.chains.model import Family
from assay.chains.networks import Networks
from assay.chains.solana.clusters import cluster_row
from assay.common.cache import SingleFlight
from assay.common.clock import Clock, SystemClock
from assay.common.costs import CostLedger
from assay.common.keyring import SecretBox, SecretRing
from assay.common.plugins import load_plugins
from assay.common.quota_lease import QuotaLease
from assay.common.tasks import Tasks
from assay.db.change_feed import ChangeFeed
from assay.db.engine import Database
from assay.db.state import SqlSharedState
from assay.db.store_costs import SqlCostStore
from assay.evaluation.blobs import IpfsSnapshotBlobs, LocalSnapshotBlobs, NoSnapshotBlobs
from assay.evaluation.causes import Explainer
from assay.evaluation.demands import ladder_from
from assay.evaluation.model import EvaluationCompleted, SignalName
from assay.evaluation.ports import Listener, Signal, SnapshotBlobs
from assay.evaluation.profile import Profiles
from assay.evaluation.recompute import Audit
from assay.evaluation.scheduler import Scheduler
from assay.evaluation.scoring import MIN_SCORE_DEFAULT, ScoringPolicy, tiers_from, weights_from
from assay.evaluation.service import Evaluator, EvaluatorDependencies
from assay.evaluation.store_evaluations import SqlEvaluationStore
from assay.evaluation.unregistered import UnregisteredAgents, UnregisteredDependencies
from assay.gate.decision_token import TOKEN_TTL, DecisionTokens, Es256DecisionSigner, ed25519_kids
from assay.gate.service import Gate, GateDependencies
from assay.gate.store_earlier_keys import SqlEarlierKeys
from assay.identity.challenge import Challenges
from assay.identity.ports import Verifiers
from assay.identity.service import AgentIdentity, Sessions
from assay.identity.signatures import OnchainWallets, SolanaSignatures
from assay.identity.tokens import HmacSessionTokens, JwtLoginTokens
from assay.identity.web_bot_auth import WebBotAuth
from assay.key_agents.profile import KeyProfiles
from assay.key_agents.store import SqlKeyAgentStore
from assay.liveness.service import Liveness
from assay.net.egress.budget_client import EgressBudget
from assay.net.egress.client import GuardedHttp
from assay.net.egress.credentials import OwnCredentials
from assay.net.egress.url import EgressPolicy
from assay.payments.service import PaymentService
from assay.payments.settlement import Settlement
from assay.payments.settling_watch import SettlingWatch
from assay.payments.statement import Statements
from assay.payments.store import SqlLedgerStore
from assay.payments.transfers import TransferPages, Transfers
from assay.payments.watcher import Watcher
from assay.payments.x402.eip3009 import sign_authorization
from assay.payments.x402.engine import X402Engine
from assay.personhood.service import Personhoods
from assay.personhood.store import SqlPersonhoodStore
from assay.playground.service import Playground, PlaygroundDependencies, Proxy, ProxyCaller
from assay.probing.clients.dialers import StockDialers
from assay.probing.consent import HostConsents
from assay.probing.out_of_band_url import OutOfBandCalls
from assay.probing.ports import Probe
from assay.probing.probes import PROBES
from assay.probing.result_callbacks import Callbacks
from assay.registries.documents import GuardedDocuments, RegistrationFiles
from assay.registries.ports import ChainFamily, ChainReader, ReaderDependencies
from assay.registries.solana_index import HttpAgentIndex
from assay.registries.subjects import Subjects, WalletResolver
from assay.reputation.write_back import FeedbackPublisher, WalletWatch
from assay.settings import Settings
from assay.webhooks.delivery import Deliverer
from assay.webhooks.ports import WebhookStore
from assay.webhooks.receiver_proof import ReceiverProofs
from assay.webhooks.service import Webhooks
from assay.webhooks.store import SqlWebhookStore
from assay.webhooks.store_outbox import WebhookOutbox
from assay.wrappers.fast_calls import FastCalls
from assay.wrappers.origin import WrapperOrigin
from assay.wrappers.pipeline import Pipeline
from assay.wrappers.route_table import Routes
from assay.wrappers.service import Endpoints
from assay.wrappers.stages.trust import TrustStage

__all__ = [
    "App",
    "address_of_key",
    "assemble",
    "networks_from",
    "sign_authorization",
    "sign_message",
]

WRITE_BACK_GRACE_S = 2.0
"""Longest time that unsent scores for the registry delay the end of the service."""


@dataclass(frozen=True, slots=True)
class App:
    """Every use case, ready to be called."""

    settings: Settings
    clock: Clock
    log: Log
    request_log: RequestLog
    on_crowd: Callable[[str, int, int], None]
    """Called with an untrusted address that holds most connections, its count, and the total."""
    database: Database
    readiness: ReadinessCheck
    quota_lease: QuotaLease | None
    networks: Networks
    operators: Operators
    api_keys: ApiKeys
    logins: Logins
    passwords: Passwords
    second_factors: SecondFactors
    sign_ups: SignUps
    account_data: AccountData
    outbox: MailOutbox | None
    allowance: Allowance
    challenges: Challenges
    sessions: Sessions
    identity: AgentIdentity
    web_bot_auth: WebBotAuth
    subjects: Subjects
    resolver: WalletResolver
    rpc: JsonRpc
    index: HttpAgentIndex
    costs: CostLedger
    evaluator: Evaluator
    profiles: Profiles
    key_profiles: KeyProfiles
    personhoods: Personhoods
    liveness: Liveness
    write_back: FeedbackPublisher | None
    write_wallet: WalletWatch | None
    gate: Gate
    rules: ScoringPolicy
    explainer: Explainer
    unregistered: UnregisteredAgents
    audit: Audit
    decision_tokens: DecisionTokens
    endpoints: Endpoints
    wrappers: Pipeline
    direct: FastCalls
    routes: Routes
    wrapper_origin: WrapperOrigin
    payments: PaymentService
    settlement: Settlement
    watcher: Watcher
    ledger: SqlLedgerStore
    gas: GasParts
    settling: SettlingWatch
    x402_engines: Sequence[X402Engine]
    statements: Statements
    transfers: Transfers
    transfer_pages: TransferPages
    call_log: CallLog
    call_store: SqlCallStore
    conduct_log: ObservationLog
    course: ScenarioRuns
    baits: OutOfBandCalls
    callbacks: Callbacks
    analytics: Analytics
    rollups: SqlRollupProof
    admin: Admin
    webhooks: Webhooks
    webhook_store: WebhookStore
    deliverer: Deliverer
    event_outbox: WebhookOutbox
    visits: Visits
    paid_calls: PaidCallParts | None
    scheduler: Scheduler
    proxy: Proxy
    playground: Playground
    probes: Mapping[str, Probe]
    offered_signals: frozenset[SignalName]

    async def flush(self) -> None:
        """Write everything that is held in memory for a moment."""
        await self.api_keys.flush_last_used()
        await self.logins.flush_last_used()
        await self.logins.purge()
        await self.allowance.flush()
        await self.call_log.flush()
        await self.conduct_log.flush()
        await self.costs.flush()
        await self.visits.gate_asks.flush()

    def note_change(self, said: str) -> None:
        """Ask the database again about what another process changed (`db/change_feed.py`)."""
        kind, _, what = said.partition(" ")
        match kind:
            case "operator":
                self.api_keys.forget(what)
                self.routes.forget(what)
            case "session":
                self.sessions.forget(what)
            case "evaluation":
                self.gate.evaluated_elsewhere(*what.split(" ", 1))
            case "personhood":
                self.gate.personhood_changed(what)
            case _:  # a newer version announces more
                pass

    def doubt(self) -> None:
        """Ask the database about everything before its next use: a change may not be known."""
        self.api_keys.doubt()
        self.routes.doubt()
        self.sessions.doubt()


@dataclass(frozen=True, slots=True)
class _Outside:
    """Everything that reaches beyond the process."""

    database: Database
    networks: Networks
    budget: EgressBudget
    http: GuardedHttp
    rpc: JsonRpc
    costs: CostLedger
    index: HttpAgentIndex
    readers: Mapping[Family, ChainReader]
    blobs: SnapshotBlobs
    quota_lease: QuotaLease | None
    reputation: ReputationParts | None
    documents: GuardedDocuments
    earlier_keys: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    """When the published keys of versions before ES256 expire, by key."""


def networks_from(settings: Settings) -> Networks:
    """Return the chain table with the configured rows; raises `ValueError` in plain words."""
    solana = cluster_row(
        settings.solana_cluster, settings.solana_rpc_url, settings.solana_indexer_url
    )
    networks = Networks.built_in().with_solana(solana)
    with naming("ASSAY_CHAINS, ASSAY_DEFAULT_CHAIN"):
        return networks.with_overrides(settings.chains, settings.default_chain)


@asynccontextmanager
async def assemble(
    settings: Settings,
    clock: Clock | None = None,
    readers: Mapping[Family, ChainReader] | None = None,
    *,
    serving: bool = True,
    window: PlacedWindow | None = None,
) -> AsyncGenerator[App]:
    """Open everything, migrate the database, and close everything at the end.

    `readers` replace those of the chain families, for a service that reads no chain. Without
    `serving`, unfinished payments are left to a process that serves. `window` has the counts of
    limits that this process shares with others, unless the settings name a server for them.

    Raises `ValueError`, `SecretFileError` or `PluginError` with a plain sentence for an invalid
    configuration, before anything is opened.
    """
    clock = clock or SystemClock()
    log = open_log(settings.log_format, settings.log_level)
    networks = networks_from(settings)
    rules = _rules(settings)
    async with AsyncExitStack() as stack:
        quota_lease = await shared_limits(settings, clock, log, stack, window, serving=serving)
        outside = await _open(stack, settings, networks, clock, quota_lease)
        earlier = await _earlier_keys(outside.database, settings, clock, serving=serving)
        outside = replace(outside, earlier_keys=earlier)
        if readers is not None:
            outside = replace(outside, readers=readers, reputation=None)
        tasks = Tasks(
            lambda name, error: log.error("background work failed", task=name, error=repr(error))
        )
        app = _compose(settings, clock, log, rules, outside, stack, tasks)
        tasks.spawn("flush", flush_forever(app.flush, log))
        if serving:
            tasks.spawn("loop lag", app.readiness.lag.measure_forever())
            feed = ChangeFeed(settings.database, app.database, app.note_change, app.doubt)
            tasks.spawn("change feed", feed.run())
            await _serve_beside(app, outside, tasks)
        stack.callback(app.request_log.flush)
        stack.push_async_callback(app.costs.close)
        stack.push_async_callback(app.flush)
        stack.push_async_callback(tasks.drain, 0)
        if app.write_back is not None and serving:
            tasks.spawn("write back", app.write_back.run())
            stack.push_async_callback(app.write_back.close, WRITE_BACK_GRACE_S)
        if serving and settings.allow_private_upstreams:
            log.warning(
                "private upstreams are allowed: for development only, never on the open internet"
            )
        yield app


def _rules(settings: Settings) -> ScoringPolicy:
    with naming("ASSAY_WEIGHTS"):
        weights = weights_from(settings.weights)
    with naming("ASSAY_LADDER"):
        ladder = ladder_from(settings.ladder)
    with naming("ASSAY_TIERS"):
        return ScoringPolicy(weights, tiers_from(settings.tiers), ladder)


async def _earlier_keys(
    database: Database, settings: Settings, clock: Clock, *, serving: bool
) -> Mapping[str, datetime]:
    """Return the earlier keys; their time begins with the first serving process, and only once."""
    store, now = SqlEarlierKeys(database), clock.now()
    if serving:
        await store.begin(ed25519_kids(secret_rings(settings, now)["signing"]), now + TOKEN_TTL)
    return await store.find()


async def _serve_beside(app: App, outside: _Outside, tasks: Tasks) -> None:
    """Start what only a serving process does besides answering requests."""
    settings, clock, log = app.settings, app.clock, app.log
    if outside.quota_lease is not None:
        tasks.spawn("limits", outside.quota_lease.run())
    if app.outbox is not None:
        tasks.spawn("mail", app.outbox.run())
    await app.api_keys.warm()
    await app.costs.load()
    tasks.spawn("tell", tell_forever(app.event_outbox, app.database, log))
    tasks.spawn("deliver", deliver_forever(app.deliverer, log))
    _see_payments_through(app, tasks)
    tasks.spawn("settling", watch_settling_forever(app.settling, app.write_wallet, log))
    if outside.reputation is not None:
        state = SqlSharedState(outside.database, clock)
        tasks.spawn("reputation", index_forever(outside.reputation, state, log))
        tasks.spawn("feedback files", read_files_forever(outside.reputation, state, log))
    missing = SqlMissingCalls(outside.database, clock)
    tasks.spawn("missing calls", recover_calls_forever(missing, app.call_log.flush, log))
    removed = SqlRetention(outside.database), SqlCostStore(outside.database, clock)
    gas = "gas budgets", GasRetention(app.gas.store, clock).run
    kept = "proven control", control_retention(outside.database, clock)
    retention = Retention(
        *removed,
        outside.blobs,
        settings,
        clock,
        gas,
        kept,
        visit_retention(app.visits, clock),
        paid_call_retention(outside.database, clock),
        tier_retention(outside.database, clock),
    )
    tasks.spawn("retention", retain_forever(retention, log))
    if settings.scheduled_visits:
        tasks.spawn("visits", visit_forever(app.scheduler, log))
    if not app.x402_engines[0].has_key and not settings.x402_facilitator_url:
        take_up = take_up_key(app.x402_engines, app.gas, settings, log)
        tasks.spawn("settling key", take_up)


def _see_payments_through(app: App, tasks: Tasks) -> None:
    """Start what finishes payments and transfers besides the calls that begin them."""
    settings, log = app.settings, app.log
    for network in payment_rows(settings):
        tasks.spawn(f"reconcile {network}", reconcile_forever(app.settlement, network, log))
        tasks.spawn(f"watch {network}", watch_forever(app.watcher, network, log))
    keep = timedelta(hours=settings.paid_response_hours)
    tasks.spawn("paid answers", purge_forever(app.ledger, keep, app.clock, log))
    tasks.spawn("transfers", send_transfers_forever(app.transfers, log))


async def _open(
    stack: AsyncExitStack,
    settings: Settings,
    networks: Networks,
    clock: Clock,
    quota_lease: QuotaLease | None,
) -> _Outside:
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with naming("ASSAY_DATABASE_URL"):
        database = await Database.open(settings.database)
    stack.push_async_callback(database.close)
    await database.migrate()
    budget = egress_budget(settings, database, clock)
    http = GuardedHttp(_agents_egress(settings), budget=budget)
    stack.push_async_callback(http.aclose)
    costs = CostLedger(clock, quotas(settings), store=SqlCostStore(database, clock))
    rpc = JsonRpc(clock, costs=costs)
    stack.push_async_callback(rpc.aclose)
    documents = GuardedDocuments(
        http, settings.ipfs_gateway or None, arweave_gateway=settings.arweave_gateway or None
    )
    index = HttpAgentIndex(clock)
    stack.push_async_callback(index.aclose)
    families = load_plugins(import_module("assay.registries.families"), "FAMILY", ChainFamily)
    needs = ReaderDependencies(rpc, documents, index, clock)
    readers: dict[Family, ChainReader] = {
        family.name: family.reader(needs) for family in families.values()
    }
    blobs = _blobs(settings, secret_rings(settings, clock.now())["snapshot"])
    if isinstance(blobs, IpfsSnapshotBlobs):
        stack.push_async_callback(blobs.aclose)
    reputation = reputation_parts(settings, networks, database, rpc, clock, http)
    return _Outside(
        *(database, networks, budget, http, rpc, costs, index, readers, blobs, quota_lease),
        *(reputation, documents),
    )


def _compose(  # noqa: PLR0913, PLR0915, PLR0917 - everything, in order
    settings: Settings,
    clock: Clock,
    log: Log,
    rules: ScoringPolicy,
    outside: _Outside,
    stack: AsyncExitStack,
    tasks: Tasks,
) -> App:
    """Build the use cases from their parts; open nothing and call nobody."""
    database, networks = outside.database, outside.networks
    secrets = secret_rings(settings, clock.now())
    state = SqlSharedState(database, clock)
    operator_store = SqlOperatorStore(database)
    tags, grace_s = KeyTags(secrets["jwt"]), settings.grace_s
    api_keys = ApiKeys(SqlApiKeyStore(database), operator_store, clock, tags, grace_s)
    allowance = Allowance(SqlAllowanceStore(database), clock, upgrade_url=settings.upgrade_address)
    key_agents = SqlKeyAgentStore(database)
    challenges = Challenges(
        state,
        Verifiers(Eip191Signatures(), SolanaSignatures(), _wallets(settings, outside)),
        clock,
        settings.address,
        secrets["session"],
    )
    sessions = Sessions(HmacSessionTokens(secrets["session"]), state, clock, grace_s)
    event_outbox = WebhookOutbox(MIN_SCORE_DEFAULT, outside.costs)
    subjects = Subjects(outside.readers, outside.costs)
    course_runs = SqlCourseStore(database)
    course = ScenarioRuns(
        course_runs,
        SCENARIOS,
        clock,
        secrets=secrets["session"],
        address=settings.address,
        elsewhere=settings.course_elsewhere_url,
        costs=outside.costs,
    )
    baits = OutOfBandCalls(state, secrets["session"], settings.canary_hosts or (settings.address,))
    callbacks = Callbacks(
        state, secrets["session"], *callback_addresses(settings, _agents_egress(settings))
    )
    conduct_store = SqlConductStore(database)
    conduct_log = ObservationLog(conduct_store, outside.costs)
    box = SecretBox.from_secrets(*secrets["upstream"])
    login_tokens = JwtLoginTokens(secrets["jwt"], settings.address, clock)
    credentials = OwnCredentials(login_tokens.names_us)
    visited = visits(database, clock, box, credentials.is_in)
    sources = replace(
        evidence.sources(settings, networks, outside.rpc, database, clock),
        conduct=ConductRecord(
            *(course, course_runs, conduct_store, clock), purchases(settings, database)
        ),
        lures=baits,
        callbacks=callbacks,
        messages=message_quota(outside.budget, _agents_egress(settings)),
        visits=unannounced_visits(
            *(settings, state, outside.budget, outside.http, _agents_egress(settings), stack),
            *(database, clock),
        ),
        reputation=outside.reputation and outside.reputation.facts,
        credentials=visited.credentials,
    )
    bought = paid_calls(settings, outside.rpc, database, clock, log)
    sources = replace(sources, sales=bought and bought.calls)
    signals, probes = _signals(evidence.absent(sources)), PROBES
    evaluations = SqlEvaluationStore(database, event_outbox.put, control_records(probes))
    listeners: list[Listener] = [EvaluationLog(log).evaluated]
    evaluator = Evaluator(
        EvaluatorDependencies(
            subjects=subjects,
            signals=signals,
            probes=probes,
            http=outside.http,
            dialers=StockDialers(),
            store=evaluations,
            blobs=outside.blobs,
            rules=rules,
            listeners=listeners,
            clock=clock,
            sources=sources,
            costs=outside.costs,
            consents=HostConsents(
                outside.budget.consents, _agents_egress(settings), outside.budget.rules
            ),
            turns=visit_turns(outside.budget, state, _agents_egress(settings)),
            control=control(database, clock),
            history=visited.history,
            plans=first_turns(visited, outside.http, clock),
        ),
        SingleFlight(),
    )
    explainer = Explainer(signals, probes, rules)
    gate = Gate(
        GateDependencies(
            subjects=subjects,
            evaluator=evaluator,
            store=evaluations,
            allowance=allowance,
            rules=rules,
            offered=frozenset(signals),
            upgrade_url=settings.upgrade_address,
            evaluation_s=settings.gate_evaluation_s,
            quota=gate_quota(settings, outside.budget),
            clock=clock,
            explain=explainer.explain,
            asks=visited.gate_asks,
            spawn=tasks.spawn,
            grace_s=settings.agent_grace_s,
        )
    )
    webhook_store = SqlWebhookStore(database)
    webhook_http = _webhook_http(settings, outside.budget, stack)
    proofs = ReceiverProofs(outside.budget.consents, webhook_http, secrets["session"], clock)
    deliverer = Deliverer(webhook_store, box, webhook_http, clock, tasks.spawn, proofs)
    listeners += gate.evaluated, deliverer.evaluated
    write_back = evidence.write_back(
        settings, networks, subjects, outside.rpc, log, database, clock
    )
    if write_back is not None:
        listeners.append(_offers_to(write_back))
    web_bot_auth = WebBotAuth(
        webhook_http,
        _webhook_egress(settings),
        controls_host(database, clock),
        *(state, clock, settings.wrap_address),
    )
    identity = AgentIdentity(challenges, sessions, key_agents, clock, outside.costs)
    signer = Es256DecisionSigner(secrets["signing"], outside.earlier_keys)
    wrapped = build_wrappers(
        WrapperDependencies(
            settings=settings,
            clock=clock,
            log=log,
            database=database,
            state=state,
            quota_lease=outside.quota_lease,
            networks=networks,
            rpc=outside.rpc,
            costs=outside.costs,
            trust_step=TrustStage(
                identity,
                gate,
                networks,
                settings.identity_proof,
                web_bot_auth,
                visited.enrolments,
            ),
            upstream_secrets=secrets["upstream"],
            payment_secrets=secrets["payment"],
            conduct=conduct_log,
            credentials=credentials,
            signer=signer,
        ),
        stack,
    )
    paying = payouts(settings, payment_rows(settings), database, outside.rpc, clock)
    accounts = account_services(
        AccountDependencies(
            settings=settings,
            clock=clock,
            log=log,
            database=database,
            operator_store=operator_store,
            keys=api_keys,
            box=box,
            tokens=login_tokens,
            # Stored, so made with the secrets that are kept; earlier versions used the session's.
            origins=Origins(secrets["snapshot"] + secrets["session"]),
        ),
        stack,
    )
    webhooks = Webhooks(webhook_store, box, _webhook_egress(settings), clock, proofs)
    audit_store = SqlAuditStore(database)
    profiles = Profiles(subjects, evaluator, evaluations, rules, clock)
    key_profiles = KeyProfiles(key_agents, evaluations, networks.default, rules, clock, sources)
    caller = ProxyCaller(outside.http, _agents_egress(settings), credentials, settings.address)
    return App(
        settings=settings,
        clock=clock,
        log=log,
        request_log=RequestLog(log, settings.log_format, settings.log_level),
        on_crowd=CrowdNotice(settings.data_dir, log, clock),
        database=database,
        readiness=ReadinessCheck(
            *(database, clock, outside.quota_lease, wrapped.settling, outside.rpc.endpoints),
            grace_s,
        ),
        quota_lease=outside.quota_lease,
        networks=networks,
        operators=accounts.operators,
        api_keys=api_keys,
        logins=accounts.logins,
        passwords=accounts.passwords,
        second_factors=accounts.factors,
        sign_ups=accounts.sign_ups,
        account_data=AccountData(
            AccountDataDependencies(
                end=SqlAccountEnd(database),
                operators=accounts.operators,
                proof=accounts.proof,
                factors=accounts.factors,
                logins=accounts.logins,
                keys=api_keys,
                allowance=allowance,
                endpoints=wrapped.endpoints,
                webhooks=webhooks,
                analytics=wrapped.analytics,
                audit=audit_store,
                clock=clock,
            )
        ),
        outbox=accounts.outbox,
        allowance=allowance,
        challenges=challenges,
        sessions=sessions,
        identity=identity,
        web_bot_auth=web_bot_auth,
        subjects=subjects,
        resolver=WalletResolver(outside.readers, clock, outside.costs),
        rpc=outside.rpc,
        costs=outside.costs,
        index=outside.index,
        evaluator=evaluator,
        profiles=profiles,
        key_profiles=key_profiles,
        personhoods=Personhoods(
            subjects,
            sources.personhoods or SqlPersonhoodStore(database),
            evidence.verifier(settings, networks, outside.rpc, stack),
            [gate],
            clock,
        ),
        liveness=Liveness(outside.http, clock),
        write_back=write_back,
        write_wallet=write_back and WalletWatch(write_back, networks.by_slug("solana"), clock),
        gate=gate,
        rules=rules,
        explainer=explainer,
        unregistered=UnregisteredAgents(
            UnregisteredDependencies(
                evaluator=evaluator,
                explainer=explainer,
                files=RegistrationFiles(outside.documents, clock),
                network=networks.default,
                rules=rules,
            )
        ),
        audit=Audit(evaluations, outside.blobs, signals, probes, visited.seeds, clock),
        decision_tokens=DecisionTokens(signer, settings.address),
        endpoints=wrapped.endpoints,
        wrappers=wrapped.pipeline,
        direct=wrapped.direct,
        routes=wrapped.routes,
        wrapper_origin=wrapped.origin,
        payments=wrapped.payments,
        settlement=wrapped.settlement,
        watcher=wrapped.watcher,
        ledger=wrapped.ledger,
        gas=wrapped.gas,
        settling=wrapped.settling,
        x402_engines=wrapped.x402_engines,
        statements=paying.statements,
        transfers=paying.transfers,
        transfer_pages=paying.transfer_pages,
        call_log=wrapped.call_log,
        call_store=wrapped.call_store,
        conduct_log=conduct_log,
        course=course,
        baits=baits,
        callbacks=callbacks,
        analytics=wrapped.analytics,
        rollups=wrapped.rollups,
        admin=Admin(
            AdminDependencies(
                store=SqlAdminStore(database),
                audit=audit_store,
                operators=accounts.operators,
                keys=api_keys,
                endpoints=wrapped.endpoints,
                analytics=wrapped.analytics,
                clock=clock,
            )
        ),
        webhooks=webhooks,
        webhook_store=webhook_store,
        deliverer=deliverer,
        event_outbox=event_outbox,
        visits=visited,
        paid_calls=bought,
        scheduler=scheduler(
            *(settings, visited, subjects, networks, evaluator, clock, sources.visits),
            sibling_visits(visited, evaluations, probes, clock),
            log,
        ),
        proxy=Proxy(caller, gate, settings.upgrade_address),
        playground=Playground(
            PlaygroundDependencies(caller, gate, wrapped.routes, profiles, key_profiles)
        ),
        probes=probes,
        offered_signals=frozenset(signals),
    )


def _offers_to(write_back: FeedbackPublisher) -> Listener:
    def offer(completed: EvaluationCompleted) -> None:
        evaluation = completed.evaluation
        write_back.offer(evaluation.chain, evaluation.agent_id, evaluation.score)

    return offer


def _signals(absent: frozenset[SignalName]) -> Mapping[SignalName, Signal]:
    signals = load_plugins(import_module("assay.evaluation.signals"), "SIGNAL", Signal)
    named = {SignalName(name): signal for name, signal in signals.items()}
    return {name: signal for name, signal in named.items() if name not in absent}


def _wallets(settings: Settings, outside: _Outside) -> OnchainWallets:
    networks = outside.networks
    slugs = settings.contract_wallet_chains or (networks.default.slug,)
    with naming("ASSAY_CONTRACT_WALLET_CHAINS"):
        asked = [networks.by_slug(slug) for slug in slugs]
    return OnchainWallets(outside.readers, asked, outside.costs)


def _blobs(settings: Settings, secrets: SecretRing) -> SnapshotBlobs:
    if settings.snapshot_store == "off":
        return NoSnapshotBlobs()
    if settings.snapshot_store == "ipfs":
        return IpfsSnapshotBlobs(settings.ipfs_api, SecretBox.from_secrets(*secrets))
    return LocalSnapshotBlobs(settings.data_dir / "blocks", SecretBox.from_secrets(*secrets))


def _agents_egress(settings: Settings) -> EgressPolicy:
    return EgressPolicy(allow_private=settings.allow_private_upstreams, require_https=False)


def _webhook_egress(settings: Settings) -> EgressPolicy:
    private = settings.allow_private_upstreams
    return EgressPolicy(allow_private=private, require_https=not private)


def _webhook_http(settings: Settings, budget: EgressBudget, stack: AsyncExitStack) -> GuardedHttp:
    """Return a client that keeps no connection: a stale one would cost the only attempt."""
    http = GuardedHttp(_webhook_egress(settings), keep_alive_s=0, budget=budget)
    stack.push_async_callback(http.aclose)
    return http
