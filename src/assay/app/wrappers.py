"""Builds wrappers and payments."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from assay.analytics.log import CallLog
from assay.analytics.model import CallLogEntry
from assay.analytics.queries import Analytics
from assay.analytics.store_analytics import SqlAnalyticsStore
from assay.analytics.store_calls import SqlCallStore
from assay.analytics.store_rollups import RollupWriter, SqlRollupProof
from assay.app.limits import opened_upstreams
from assay.app.log import Log, naming
from assay.app.payments import (
    GasDependencies,
    GasParts,
    gas_parts,
    payment_chains,
    payment_rows,
    platform_wallets,
    sale_warnings,
)
from assay.caller_behaviour.observations import ObservationLog
from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.evm.signing import TransactionSigner
from assay.chains.model import Network
from assay.chains.networks import Networks
from assay.common.clock import Clock
from assay.common.costs import CostLedger
from assay.common.keyring import MacKeys, SecretBox, SecretRing
from assay.common.quota_lease import QuotaLease
from assay.common.shared_state import SharedState
from assay.db.engine import Database
from assay.gate.decision_token import Es256DecisionSigner
from assay.http1.client import UpstreamPool, UpstreamsByOperator
from assay.http1.host import UpstreamConnections
from assay.http1.model import Upstream
from assay.net.egress.credentials import OwnCredentials
from assay.net.egress.dial import UpstreamDialer
from assay.net.egress.url import EgressPolicy
from assay.payments.finality import View, Witness
from assay.payments.model import PaymentNetwork
from assay.payments.mpp.charges import TempoCharges
from assay.payments.mpp.library import LibraryLoader
from assay.payments.mpp.protocol import PROTOCOL as MPP
from assay.payments.networks import PaymentNodes
from assay.payments.payout_wallet import ChainReceipts
from assay.payments.ports import Facilitator, PaymentProtocol, ProtocolDependencies
from assay.payments.service import PaymentService, UnpaidRows
from assay.payments.settlement import Settlement
from assay.payments.settling_watch import SettlingWatch
from assay.payments.store import SqlLedgerStore
from assay.payments.store_watches import SqlWatchStore
from assay.payments.watcher import Watcher
from assay.payments.x402.eip3009 import Eip3009Signers
from assay.payments.x402.engine import X402Engine
from assay.payments.x402.facilitator import RemoteFacilitator
from assay.payments.x402.facilitator_access import endpoints_of
from assay.payments.x402.protocol import PROTOCOL as X402
from assay.settings import Settings
from assay.wrappers.buffers import BufferBudget
from assay.wrappers.discovery import SellerDocuments
from assay.wrappers.fast_calls import FastCalls
from assay.wrappers.history import WrapperCosts
from assay.wrappers.origin import WrapperOrigin
from assay.wrappers.pipeline import Pipeline, Stages
from assay.wrappers.receipts import SignedReceipts
from assay.wrappers.route_table import Routes
from assay.wrappers.service import ConfigRules, Endpoints
from assay.wrappers.stages.forward import ForwardStage
from assay.wrappers.stages.limit import LimitStage, SharedLimitStage
from assay.wrappers.stages.pay import PayStage
from assay.wrappers.stages.record import RecordStage
from assay.wrappers.stages.trust import TrustStage
from assay.wrappers.store import SqlWrapperStore
from assay.wrappers.store_tiers import SqlTierStore

PROTOCOLS: Final[tuple[PaymentProtocol, ...]] = (MPP, X402)
"""The payment protocols, by name. A new one is a folder of `payments`, and a line here."""


@dataclass(frozen=True, slots=True)
class WrapperDependencies:
    """What wrappers are built from."""

    settings: Settings
    clock: Clock
    log: Log
    database: Database
    state: SharedState
    quota_lease: QuotaLease | None
    networks: Networks
    rpc: JsonRpc
    costs: CostLedger
    trust_step: TrustStage
    upstream_secrets: SecretRing
    payment_secrets: SecretRing
    conduct: ObservationLog
    credentials: OwnCredentials
    signer: Es256DecisionSigner


@dataclass(frozen=True, slots=True)
class WrapperServices:
    """Wrappers, ready to be called."""

    endpoints: Endpoints
    pipeline: Pipeline
    direct: FastCalls
    payments: PaymentService
    settlement: Settlement
    watcher: Watcher
    ledger: SqlLedgerStore
    gas: GasParts
    settling: SettlingWatch
    call_log: CallLog
    call_store: SqlCallStore
    analytics: Analytics
    rollups: SqlRollupProof
    routes: Routes
    origin: WrapperOrigin
    x402_engines: Sequence[X402Engine]


def build_wrappers(dependencies: WrapperDependencies, stack: AsyncExitStack) -> WrapperServices:
    """Build everything of wrappers and payments; `stack` closes what it opens."""
    settings, clock, database = dependencies.settings, dependencies.clock, dependencies.database
    origin = WrapperOrigin.of(settings.address, settings.wrap_url)
    networks = payment_rows(settings)
    ledger = SqlLedgerStore(database, clock, RollupWriter(database.kind).add_move)
    settlement, witness, gas, engines, settling = _settlement(dependencies, networks, ledger, stack)
    payments = _payments(dependencies, settlement, UnpaidRows(dependencies.costs, ledger))
    egress, platform = _egress(settings), platform_wallets(settings, networks)
    store, call_store = SqlWrapperStore(database), SqlCallStore(database)
    tiers = SqlTierStore(database)
    rules = ConfigRules(egress, networks, settings.payout_address, settings.price_max)
    box = SecretBox.from_secrets(*dependencies.upstream_secrets)
    sold = payments, networks, origin.address, platform
    warnings = sale_warnings(networks, engines[0], gas.rules, settling, platform, settings)
    endpoints = Endpoints(store, box, rules, clock, warnings, WrapperCosts(dependencies.costs))
    upstream = _upstreams(egress, clock, stack, settings.connections_max)
    log = CallLog(call_store, _refused_note(dependencies.log), dependencies.costs)

    def add(call: CallLogEntry) -> None:
        log.add(call)
        dependencies.conduct.note(call)

    routes = Routes(store, endpoints, egress, clock, settings.grace_s)
    steps = Stages(
        routes=routes,
        trust=dependencies.trust_step,
        limit=_limit(clock, dependencies.quota_lease),
        pay=PayStage(*sold, store, clock, tiers=tiers, is_listed=settings.x402_bazaar),
        forward=ForwardStage(upstream, origin, dependencies.credentials),
        record=RecordStage(add, clock),
    )
    return WrapperServices(
        endpoints,
        _pipeline(dependencies, steps, payments),
        FastCalls(steps, origin),
        payments,
        settlement,
        Watcher(settlement, witness, SqlWatchStore(database), clock),
        ledger,
        gas,
        settling,
        log,
        call_store,
        Analytics(SqlAnalyticsStore(database), log, clock, settings.call_days),
        SqlRollupProof(database),
        routes,
        origin,
        engines,
    )


def _pipeline(
    dependencies: WrapperDependencies, steps: Stages, payments: PaymentService
) -> Pipeline:
    settings = dependencies.settings
    address = WrapperOrigin.of(settings.address, settings.wrap_url).address
    documents = SellerDocuments(steps.routes, payment_rows(settings), address, settings.address)
    buffers = BufferBudget(settings.held_bodies_mib * 1024 * 1024)
    receipts = SignedReceipts(dependencies.signer, settings.address)
    return Pipeline(
        *(steps, payments, settings.paid_response_bytes_max, buffers, receipts),
        documents if settings.mpp_discovery else None,
    )


def _limit(clock: Clock, quota_lease: QuotaLease | None) -> LimitStage:
    return LimitStage(clock) if quota_lease is None else SharedLimitStage(clock, quota_lease)


def _payments(
    dependencies: WrapperDependencies, settlement: Settlement, rows: UnpaidRows
) -> PaymentService:
    return PaymentService(
        settlement, MacKeys(b"assay.idempotency|", dependencies.payment_secrets), rows
    )


def _egress(settings: Settings) -> EgressPolicy:
    """Return which upstreams are allowed."""
    private = settings.allow_private_upstreams
    return EgressPolicy(
        allow_private=private, require_https=not private, opened_for=opened_upstreams(settings)
    )


def _upstreams(
    egress: EgressPolicy, clock: Clock, stack: AsyncExitStack, connections_max: int
) -> Upstream:
    """Return one pool for everybody, and one more for operators with opened addresses."""
    connections = UpstreamConnections(connections_max)

    def pool(policy: EgressPolicy) -> UpstreamPool:
        dialer = UpstreamDialer(policy)
        stack.callback(dialer.close)
        made = UpstreamPool(dialer.connect, clock, connections)
        stack.push_async_callback(made.aclose)
        return made

    everybody, operators = pool(egress), egress.opened_for.operators
    if not operators:
        return everybody
    return UpstreamsByOperator(everybody, pool(egress.of(next(iter(operators)))), operators)


def _refused_note(log: Log) -> Callable[[CallLogEntry, str], None]:
    """Log one line for every call that the store would not take."""

    def refused(row: CallLogEntry, why: str) -> None:
        log.error(
            "a call could not be logged and is dropped",
            request_id=row.request_id,
            wrapper=row.kind.wrapper_id,
            reason=why[:300],
        )

    return refused


def _settlement(
    dependencies: WrapperDependencies,
    networks: Mapping[str, PaymentNetwork],
    ledger: SqlLedgerStore,
    stack: AsyncExitStack,
) -> tuple[Settlement, Witness, GasParts, Sequence[X402Engine], SettlingWatch]:
    settings, clock, rpc = dependencies.settings, dependencies.clock, dependencies.rpc
    chains = payment_chains(networks)
    loader = _loader(dependencies, networks, chains)
    stack.push_async_callback(loader.aclose)
    signer = _signer(settings)
    gas = gas_parts(
        GasDependencies(settings, networks, chains, dependencies.database, rpc, clock),
        signer,
    )

    engines: list[X402Engine] = []

    def view(chains: Mapping[str, Network]) -> View:
        charges = TempoCharges(
            loader,
            chains,
            rpc,
            clock,
            challenge_ttl=timedelta(seconds=settings.mpp_challenge_s),
        )
        engine = X402Engine(rpc, chains, signer, gas.prices, clock, settings.settlement_s)
        engines.append(engine)
        facilitator = _facilitator(dependencies, networks, engine, stack)
        needs = ProtocolDependencies(
            Eip3009Signers(), facilitator, charges, clock, settings.x402_clock_s, gas.budget
        )
        return View(needs, ChainReceipts(rpc, chains))

    first = view(chains)
    remote = first.needs.facilitator
    reader = remote if isinstance(remote, RemoteFacilitator) else None
    settling = SettlingWatch(gas.budget, reader, PaymentNodes(rpc, chains), clock, gas.store)
    others = {
        name: replace(chain, rpc_urls=chain.rpc_urls[1:])
        for name, chain in chains.items()
        if len(set(chain.rpc_urls)) > 1
    }
    protocols = {protocol.name: protocol for protocol in PROTOCOLS}
    second = dict.fromkeys(others, view(others))
    witness = Witness(networks, protocols, first, second, clock, settings.settlement_s)
    lease = timedelta(seconds=settings.settlement_lease_s)
    settlement = Settlement(protocols, first.needs, ledger, clock, lease, witness)
    return settlement, witness, gas, engines, settling


def _loader(
    dependencies: WrapperDependencies,
    networks: Mapping[str, PaymentNetwork],
    chains: Mapping[str, Network],
) -> LibraryLoader:
    return LibraryLoader(
        networks,
        dependencies.state,
        (dependencies.rpc, chains),
        secrets=dependencies.payment_secrets,
        realm=urlsplit(dependencies.settings.wrap_address).netloc,
        timeout_s=dependencies.settings.settlement_s,
    )


def _signer(settings: Settings) -> TransactionSigner | None:
    key = settings.x402_private_key
    with naming("ASSAY_X402_PRIVATE_KEY"):
        return TransactionSigner(key.get_secret_value()) if key is not None else None


def _facilitator(
    dependencies: WrapperDependencies,
    networks: Mapping[str, PaymentNetwork],
    engine: X402Engine,
    stack: AsyncExitStack,
) -> Facilitator:
    """Return the remote facilitators if any is set; the chain decides outcomes anyway."""
    settings, clock = dependencies.settings, dependencies.clock
    if not settings.x402_facilitators:
        return engine
    given = settings.x402_facilitator_credentials
    with naming("ASSAY_X402_FACILITATOR_CREDENTIALS"):
        text = None if given is None else given.get_secret_value()
        endpoints = endpoints_of(settings.x402_facilitators, text, clock)
    remote = RemoteFacilitator(endpoints, networks, engine, clock, settings.settlement_s)
    stack.push_async_callback(remote.aclose)
    return remote
