"""Wrappers and payments, put together."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import import_module
from urllib.parse import urlsplit

from assay.calls.analytics import Analytics
from assay.calls.conduct import ConductLog
from assay.calls.log import CallLog
from assay.calls.model import Call
from assay.calls.ports import RollupProof
from assay.chains.model import Network
from assay.chains.networks import Networks
from assay.egress.credentials import OwnCredentials
from assay.egress.url import EgressPolicy
from assay.infra.crypto.eip3009 import Eip3009Signers
from assay.infra.crypto.secretbox import SecretBox
from assay.infra.crypto.transactions import TransactionSigner
from assay.infra.http.rpc import JsonRpc
from assay.infra.http.upstream import UpstreamPool
from assay.infra.http.upstream_by_operator import UpstreamsByOperator
from assay.infra.http.upstream_host import UpstreamConnections
from assay.infra.log import Log
from assay.infra.payments.mpp_charges import TempoCharges
from assay.infra.payments.mpp_library import LibraryLoader
from assay.infra.payments.nodes import PaymentNodes
from assay.infra.payments.receipts import ChainReceipts
from assay.infra.payments.x402_engine import X402Engine
from assay.infra.payments.x402_facilitator import RemoteFacilitator
from assay.infra.sql.analytics import SqlAnalyticsStore
from assay.infra.sql.calls import SqlCallStore
from assay.infra.sql.engine import Database
from assay.infra.sql.payment_watches import SqlWatchStore
from assay.infra.sql.payments import SqlLedgerStore
from assay.infra.sql.rebuild import SqlRollupProof
from assay.infra.sql.wrappers import SqlWrapperStore
from assay.kit.clock import Clock
from assay.kit.costs import CostLedger
from assay.kit.keyring import MacKeys, Secrets
from assay.kit.leases import Leases
from assay.kit.plugins import load_plugins
from assay.kit.state import SharedState
from assay.payments.model import PaymentNetwork
from assay.payments.ports import Facilitator, LedgerStore, PaymentProtocol, ProtocolNeeds
from assay.payments.settlement import Settlement
from assay.payments.settling_watch import SettlingWatch
from assay.payments.till import Till
from assay.payments.unpaid_rows import UnpaidRows
from assay.payments.watcher import Watcher
from assay.payments.witness import View, Witness
from assay.settings import Settings
from assay.wiring.egress import opened_upstreams
from assay.wiring.gas import GasGround, GasParts, gas_parts
from assay.wiring.naming import naming
from assay.wiring.payment_chains import payment_chains, payment_rows
from assay.wiring.payouts import platform_wallets
from assay.wiring.settling import sale_warnings
from assay.wrapper.configs import ConfigRules, Endpoints
from assay.wrapper.direct import Direct
from assay.wrapper.held import HeldBodies
from assay.wrapper.kept import WrapperCosts
from assay.wrapper.origin import WrapperOrigin
from assay.wrapper.pipeline import Pipeline, Steps
from assay.wrapper.routes import Routes
from assay.wrapper.steps.forward import ForwardStep
from assay.wrapper.steps.limit import LimitStep, SharedLimitStep
from assay.wrapper.steps.pay import PayStep
from assay.wrapper.steps.record import RecordStep
from assay.wrapper.steps.trust import TrustStep
from assay.wrapper.upstream import Upstream


@dataclass(frozen=True, slots=True)
class Ground:
    """What wrappers stand on."""

    settings: Settings
    clock: Clock
    log: Log
    database: Database
    state: SharedState
    leases: Leases | None
    networks: Networks
    rpc: JsonRpc
    costs: CostLedger
    trust_step: TrustStep
    upstream_secrets: Secrets
    payment_secrets: Secrets
    conduct: ConductLog
    credentials: OwnCredentials


@dataclass(frozen=True, slots=True)
class Wrapping:
    """Wrappers, ready to be called."""

    endpoints: Endpoints
    pipeline: Pipeline
    direct: Direct
    till: Till
    watcher: Watcher
    ledger: LedgerStore
    gas: GasParts
    settling: SettlingWatch
    call_log: CallLog
    call_store: SqlCallStore
    analytics: Analytics
    rollups: RollupProof
    routes: Routes
    origin: WrapperOrigin
    x402_engines: Sequence[X402Engine]


def wrapping(ground: Ground, stack: AsyncExitStack) -> Wrapping:
    """Everything of wrappers and payments; what it opens, `stack` closes."""
    settings, clock, leases = ground.settings, ground.clock, ground.leases
    origin = WrapperOrigin.of(settings.address, settings.wrap_url)
    networks = payment_rows(settings)
    ledger = SqlLedgerStore(ground.database, clock)
    settlement, witness, gas, engines, settling = _settlement(ground, networks, ledger, stack)
    till = _till(ground, settlement, UnpaidRows(ground.costs, ledger))
    egress = _egress(settings)
    store = SqlWrapperStore(ground.database)
    rules = ConfigRules(egress, networks, settings.payout_address, settings.price_max)
    box = SecretBox.from_secrets(*ground.upstream_secrets)
    platform = platform_wallets(settings, networks)
    warnings = sale_warnings(networks, engines[0], gas.rules, settling, platform, settings)
    endpoints = Endpoints(store, box, rules, clock, warnings, WrapperCosts(ground.costs))
    upstream = _upstreams(egress, clock, stack, settings.connections_max)
    call_store = SqlCallStore(ground.database)
    log = CallLog(call_store, _refused_note(ground.log), ground.costs)

    def add(call: Call) -> None:
        log.add(call)
        ground.conduct.note(call)

    routes = Routes(store, endpoints, egress, clock)
    steps = Steps(
        routes=routes,
        trust=ground.trust_step,
        limit=LimitStep(clock) if leases is None else SharedLimitStep(clock, leases),
        pay=PayStep(till, networks, origin.address, platform, store, clock),
        forward=ForwardStep(upstream, origin, ground.credentials),
        record=RecordStep(add, clock),
    )
    held = HeldBodies(settings.held_bodies_mib * 1024 * 1024)
    return Wrapping(
        endpoints,
        Pipeline(steps, till, settings.paid_response_bytes_max, held),
        Direct(steps, origin),
        till,
        Watcher(settlement, witness, SqlWatchStore(ground.database), clock),
        ledger,
        gas,
        settling,
        log,
        call_store,
        Analytics(SqlAnalyticsStore(ground.database), log, clock, settings.call_days),
        SqlRollupProof(ground.database),
        routes,
        origin,
        engines,
    )


def _till(ground: Ground, settlement: Settlement, rows: UnpaidRows) -> Till:
    return Till(settlement, MacKeys(b"assay.idempotency|", ground.payment_secrets), rows)


def _egress(settings: Settings) -> EgressPolicy:
    """What upstreams may be."""
    private = settings.allow_private_upstreams
    return EgressPolicy(
        allow_private=private, require_https=not private, opened_for=opened_upstreams(settings)
    )


def _upstreams(
    egress: EgressPolicy, clock: Clock, stack: AsyncExitStack, connections_max: int
) -> Upstream:
    """One pool for everybody; where addresses are opened, another one for their operators."""
    connections = UpstreamConnections(connections_max)
    pool = UpstreamPool(egress, clock, connections=connections)
    stack.push_async_callback(pool.aclose)
    operators = egress.opened_for.operators
    if not operators:
        return pool
    named = UpstreamPool(egress.of(next(iter(operators))), clock, connections=connections)
    stack.push_async_callback(named.aclose)
    return UpstreamsByOperator(pool, named, operators)


def _refused_note(log: Log) -> Callable[[Call, str], None]:
    """One line for every call that the store would not take."""

    def refused(row: Call, why: str) -> None:
        log.error(
            "a call could not be logged and is dropped",
            request_id=row.request_id,
            wrapper=row.kind.wrapper_id,
            reason=why[:300],
        )

    return refused


def _settlement(
    ground: Ground,
    networks: Mapping[str, PaymentNetwork],
    ledger: LedgerStore,
    stack: AsyncExitStack,
) -> tuple[Settlement, Witness, GasParts, Sequence[X402Engine], SettlingWatch]:
    settings, clock = ground.settings, ground.clock
    chains = payment_chains(networks)
    loader = _loader(ground, networks, chains)
    stack.push_async_callback(loader.aclose)
    signer = _signer(settings)
    gas = gas_parts(
        GasGround(settings, networks, chains, ground.database, ground.rpc, clock), signer
    )

    engines: list[X402Engine] = []

    def view(chains: Mapping[str, Network]) -> View:
        charges = TempoCharges(
            loader,
            chains,
            ground.rpc,
            clock,
            challenge_ttl=timedelta(seconds=settings.mpp_challenge_s),
        )
        engine = X402Engine(ground.rpc, chains, signer, gas.prices, clock, settings.settlement_s)
        engines.append(engine)
        facilitator = _facilitator(ground, networks, engine, stack)
        needs = ProtocolNeeds(
            Eip3009Signers(), facilitator, charges, clock, settings.x402_clock_s, gas.budget
        )
        return View(needs, ChainReceipts(ground.rpc, chains))

    first = view(chains)
    remote = first.needs.facilitator
    reader = remote if isinstance(remote, RemoteFacilitator) else None
    settling = SettlingWatch(gas.budget, reader, PaymentNodes(ground.rpc, chains), clock, gas.store)
    others = {
        name: replace(chain, rpc_urls=chain.rpc_urls[1:])
        for name, chain in chains.items()
        if len(set(chain.rpc_urls)) > 1
    }
    protocols = load_plugins(import_module("assay.payments.protocols"), "PROTOCOL", PaymentProtocol)
    second = dict.fromkeys(others, view(others))
    witness = Witness(networks, protocols, first, second, clock, settings.settlement_s)
    lease = timedelta(seconds=settings.settlement_lease_s)
    settlement = Settlement(protocols, first.needs, ledger, clock, lease, witness)
    return settlement, witness, gas, engines, settling


def _loader(
    ground: Ground, networks: Mapping[str, PaymentNetwork], chains: Mapping[str, Network]
) -> LibraryLoader:
    return LibraryLoader(
        networks,
        ground.state,
        (ground.rpc, chains),
        secrets=ground.payment_secrets,
        realm=urlsplit(ground.settings.wrap_address).netloc,
        timeout_s=ground.settings.settlement_s,
    )


def _signer(settings: Settings) -> TransactionSigner | None:
    key = settings.x402_private_key
    with naming("ASSAY_X402_PRIVATE_KEY"):
        return TransactionSigner(key.get_secret_value()) if key is not None else None


def _facilitator(
    ground: Ground,
    networks: Mapping[str, PaymentNetwork],
    engine: X402Engine,
    stack: AsyncExitStack,
) -> Facilitator:
    """The remote one where its address is set; what became of a payment says the chain anyway."""
    settings = ground.settings
    if not settings.x402_facilitator_url:
        return engine
    url = settings.x402_facilitator_url
    remote = RemoteFacilitator(url, networks, engine, ground.clock, settings.settlement_s)
    stack.push_async_callback(remote.aclose)
    return remote
