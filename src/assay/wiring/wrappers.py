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
from assay.gate.check import Gate
from assay.identity.prove import AgentIdentity
from assay.infra.crypto.eip3009 import Eip3009Signers
from assay.infra.crypto.secretbox import SecretBox
from assay.infra.crypto.transactions import TransactionSigner
from assay.infra.http.rpc import JsonRpc
from assay.infra.http.upstream import UpstreamPool
from assay.infra.http.upstream_by_operator import UpstreamsByOperator
from assay.infra.log import Log
from assay.infra.payments.mpp_charges import TempoCharges
from assay.infra.payments.mpp_library import LibraryLoader
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
from assay.payments.sale_checks import fee_check, payee_check, settling_check
from assay.payments.settlement import Settlement
from assay.payments.till import Till
from assay.payments.warnings import SaleWarnings
from assay.payments.watcher import Watcher
from assay.payments.witness import View, Witness
from assay.settings import Settings
from assay.wiring.egress import opened_upstreams
from assay.wiring.gas import GasGround, GasParts, gas_parts
from assay.wiring.naming import naming
from assay.wiring.payment_chains import payment_chains, payment_rows
from assay.wrapper.configs import ConfigRules, Endpoints
from assay.wrapper.direct import Direct
from assay.wrapper.held import HeldBodies
from assay.wrapper.origin import WrapperOrigin
from assay.wrapper.pipeline import Pipeline, Steps
from assay.wrapper.ports import Upstream
from assay.wrapper.routes import Routes
from assay.wrapper.steps.forward import ForwardStep
from assay.wrapper.steps.limit import LimitStep, SharedLimitStep
from assay.wrapper.steps.pay import PayStep, PlatformWallets
from assay.wrapper.steps.record import RecordStep
from assay.wrapper.steps.trust import TrustStep


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
    gate: Gate
    identity: AgentIdentity
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
    settlement, witness, gas, engines = _settlement(ground, networks, ledger, stack)
    till = Till(settlement, MacKeys(b"assay.idempotency|", ground.payment_secrets))
    egress = _egress(settings)
    store = SqlWrapperStore(ground.database)
    rules = ConfigRules(egress, networks, settings.payout_address, settings.price_max)
    box = SecretBox.from_secrets(*ground.upstream_secrets)
    warnings = _warnings(settings, networks, engines[0], gas)
    endpoints = Endpoints(store, box, rules, clock, warnings)
    upstream = _upstreams(egress, clock, stack)
    call_store = SqlCallStore(ground.database)
    log = CallLog(call_store, _refused_note(ground.log), ground.costs)

    def add(call: Call) -> None:
        log.add(call)
        ground.conduct.note(call)

    routes = Routes(store, endpoints, egress, clock)
    platform = PlatformWallets(settings.payout_address, settings.payees)
    steps = Steps(
        routes=routes,
        trust=TrustStep(ground.identity, ground.gate, ground.networks, settings.identity_proof),
        limit=LimitStep(clock) if leases is None else SharedLimitStep(clock, leases),
        pay=PayStep(till, networks, origin.address, platform, store, clock),
        forward=ForwardStep(upstream, origin, ground.credentials),
        record=RecordStep(add, clock),
    )
    held = HeldBodies(settings.held_bodies_mib * 1024 * 1024)
    pipeline = Pipeline(steps, till, settings.paid_response_bytes_max, held)
    return Wrapping(
        endpoints,
        pipeline,
        Direct(steps, origin),
        till,
        Watcher(settlement, witness, SqlWatchStore(ground.database), clock),
        ledger,
        gas,
        log,
        call_store,
        Analytics(SqlAnalyticsStore(ground.database), log, clock),
        SqlRollupProof(ground.database),
        routes,
        origin,
        engines,
    )


def _egress(settings: Settings) -> EgressPolicy:
    """What upstreams may be."""
    private = settings.allow_private_upstreams
    return EgressPolicy(
        allow_private=private, require_https=not private, opened_for=opened_upstreams(settings)
    )


def _upstreams(egress: EgressPolicy, clock: Clock, stack: AsyncExitStack) -> Upstream:
    """One pool for everybody; where addresses are opened, another one for their operators."""
    pool = UpstreamPool(egress, clock)
    stack.push_async_callback(pool.aclose)
    operators = egress.opened_for.operators
    if not operators:
        return pool
    named = UpstreamPool(egress.of(next(iter(operators))), clock)
    stack.push_async_callback(named.aclose)
    return UpstreamsByOperator(pool, named, operators)


def _warnings(
    settings: Settings,
    networks: Mapping[str, PaymentNetwork],
    engine: X402Engine,
    gas: GasParts,
) -> SaleWarnings:
    """What sellers are warned of."""
    payees = settings.payees
    x402 = frozenset(one.id for one in networks.values() if one.protocol == "x402")

    def unsettled() -> frozenset[str]:
        settles = engine.has_key or settings.x402_facilitator_url
        return frozenset() if settles else x402

    checks = [settling_check(unsettled), payee_check(payees), fee_check(payees)]
    if gas.budget is not None:
        checks.append(gas.budget.price_warning)
    return SaleWarnings(checks)


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
) -> tuple[Settlement, Witness, GasParts, Sequence[X402Engine]]:
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
    return settlement, witness, gas, engines


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
