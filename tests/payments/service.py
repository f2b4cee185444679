"""A service that sells one call, put together as `app.wrappers` does, and its processes.

Real are the pipeline, the payment service, our own x402 engine, its key, and the SQLite database.
Fake is what no process of ours is: the chain's nodes, a facilitator, the upstream, and the time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import httpx2

from assay.app.payments import ABANDONED
from assay.chains.model import Network
from assay.common.costs import CostLedger
from assay.common.errors import ServiceError, Unavailable
from assay.common.keyring import MacKeys
from assay.gate.decision_token import Es256DecisionSigner
from assay.net.egress.credentials import OwnCredentials
from assay.net.egress.url import EgressPolicy
from assay.payments.finality import View, Witness
from assay.payments.gas import GasBudget, GasRules
from assay.payments.payout_wallet import ChainReceipts
from assay.payments.ports import Facilitator, ProtocolDependencies
from assay.payments.sale_checks import PlatformWallets
from assay.payments.service import PaymentService, UnpaidRows
from assay.payments.settlement import Settlement
from assay.payments.store_gas import SqlGasStore
from assay.payments.store_watches import SqlWatchStore
from assay.payments.watcher import Watcher
from assay.payments.x402.eip3009 import Eip3009Signers
from assay.payments.x402.engine import X402Engine
from assay.payments.x402.facilitator import RemoteFacilitator
from assay.payments.x402.facilitator_access import FacilitatorEndpoint
from assay.payments.x402.protocol import PROTOCOL
from assay.payments.x402.transaction_sender import GasPrices
from assay.server.errors import STATUS
from assay.wrappers.buffers import BufferBudget
from assay.wrappers.model import CallRecord, InboundRequest, RoutedRequest
from assay.wrappers.origin import WrapperOrigin
from assay.wrappers.pipeline import Pipeline, Stages
from assay.wrappers.receipts import SignedReceipts
from assay.wrappers.route_table import Routes
from assay.wrappers.service import ConfigRules, Endpoints
from assay.wrappers.stages.forward import ForwardStage
from assay.wrappers.stages.limit import LimitStage
from assay.wrappers.stages.pay import PayStage
from assay.wrappers.stages.record import RecordStage
from assay.wrappers.stages.trust import TrustStage
from tests.payments.boundary import (
    Boundary,
    Fault,
    FaultyDatabase,
    NodeClient,
    ProcessKilled,
    interrupted,
    open_database,
)
from tests.payments.facilitator import Transport
from tests.payments.outside import (
    OPERATOR,
    UpstreamClient,
)
from tests.payments.world import Terms, World
from tests.simulation.process import CHAIN
from tests.support.fakes.calls import counted_ledger

ADDRESS = "https://assay.test"
SIGNER = Es256DecisionSigner(("signing secret of the test service",), {})
LEASE_S = 5.0
SETTLEMENT_S = 8.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a caller was told; `code` is that of the refusal, empty for an answer."""

    status: int
    code: str = ""
    reason: str = ""
    body: bytes = b""
    headers: Mapping[bytes, bytes] = field(default_factory=dict[bytes, bytes])


def start(world: World, fault: Fault | None = None) -> "Process":
    """Another life of the service."""
    boundary = Boundary(fault)
    made = Process(world, boundary, world.run(open_database(world.url, boundary)))
    world.at_end.append(made.aclose)
    return made


class Process:
    """One life of the service; nothing of it but what is on the disk is there in the next."""

    def __init__(self, world: World, boundary: Boundary, database: FaultyDatabase) -> None:
        self.boundary = boundary
        self._world = world
        self._database = database
        self.rpc = NodeClient(world.nodes.__getitem__, boundary, world.down)
        self.ledger = counted_ledger(database, world.clock)
        network, clock = world.network, world.clock
        self.networks = {network.id: network}
        protocols = {"x402": PROTOCOL}
        self.gas_store = SqlGasStore(database)
        urls = CHAIN.rpc_urls[: world.terms.endpoints]
        first = self._view(replace(CHAIN, rpc_urls=urls))
        others: dict[str, View] = {}
        if len(urls) > 1:
            others[network.id] = self._view(replace(CHAIN, rpc_urls=urls[1:]))
        witness = Witness(self.networks, protocols, first, others, clock, SETTLEMENT_S)
        lease = timedelta(seconds=LEASE_S)
        self.facilitator: Any = first.needs.facilitator
        self.settlement = Settlement(protocols, first.needs, self.ledger, clock, lease, witness)
        self.costs = CostLedger(clock)
        rows = UnpaidRows(self.costs, self.ledger)
        self.payment_service = PaymentService(
            self.settlement, MacKeys(b"assay.idempotency|", ("0" * 32,)), rows
        )
        self.watcher = Watcher(self.settlement, witness, SqlWatchStore(database), clock)
        self.recorded: list[Any] = []
        self.identity = _Unasked()
        self.pipeline = self._pipeline()

    def kill(self) -> None:
        """It goes on with nothing."""
        self.boundary.is_dead = True

    async def aclose(self) -> None:
        """Give back its files."""
        self.kill()
        await self._database.close()

    def call(self, asked: InboundRequest) -> Reply | None:
        """What the caller is told; None where the process died, or the caller hung up."""
        return self._world.run(self._called(asked))

    def match(self, asked: InboundRequest) -> RoutedRequest:
        """The wrapper that answers a request."""
        found = self._world.run(self.routes.find(OPERATOR, asked.method, asked.path))
        return RoutedRequest(asked, found.route)

    def work(self) -> None:
        """What the background does once: reconcile, and look at what is watched."""
        self._world.run(self._worked())

    async def _called(self, asked: InboundRequest) -> Reply | None:
        call = asyncio.get_running_loop().create_task(self._answered(asked))
        self.boundary.caller = call
        try:
            return await call
        except (ProcessKilled, asyncio.CancelledError):
            return None

    async def _answered(self, asked: InboundRequest) -> Reply:
        call_record = CallRecord(asked, OPERATOR, self._world.clock.monotonic_s())
        try:
            answer = await self.pipeline.answer(call_record)
        except ServiceError as error:
            self.pipeline.record(call_record, STATUS[error.code], 0)
            headers = [*call_record.answer_headers, *_demanded(error)]
            reason = str(error.extras.get("reason", ""))
            return Reply(STATUS[error.code], error.code, reason, b"", dict(headers))
        body = answer.body if isinstance(answer.body, bytes) else b""
        self.pipeline.record(call_record, answer.status, len(body))
        if answer.delivered is not None:
            with suppress(Unavailable):
                await answer.delivered()
        return Reply(answer.status, body=body, headers=dict(answer.headers))

    async def _worked(self) -> None:
        """As the background's loops: what failed for now is due again."""
        network, now = self._world.network.id, self._world.clock.now()
        works: list[Callable[[], Awaitable[object]]] = [
            self.settlement.reconcile,
            lambda: self.watcher.run(network),
        ]
        if self._world.terms.is_gas_charged:
            works.append(lambda: self.gas_store.release_abandoned(now - ABANDONED, 100))
        for work in works:
            with interrupted():
                await work()

    def _pipeline(self) -> Pipeline:
        world = self._world
        nobody: Any = self.identity
        origin = WrapperOrigin.of(ADDRESS, None)
        egress = EgressPolicy()
        rules = ConfigRules(egress, self.networks, None, Decimal(1000))
        endpoints = Endpoints(world.wrappers, nobody, rules, world.clock)
        platform = PlatformWallets(None)
        store, clock = world.wrappers, world.clock
        self.routes = Routes(store, endpoints, egress, clock)
        self.pay = PayStage(
            *(self.payment_service, self.networks, ADDRESS, platform, store, clock),
            tiers=nobody,
            is_listed=True,
        )
        steps = Stages(
            routes=self.routes,
            trust=TrustStage(nobody, nobody, nobody, "required", nobody),
            limit=LimitStage(clock),
            pay=self.pay,
            forward=ForwardStage(
                UpstreamClient(world.upstream, self.boundary),
                origin,
                OwnCredentials(lambda _: False),
            ),
            record=RecordStage(self.recorded.append, clock),
        )
        return Pipeline(
            steps, self.payment_service, 2**20, BufferBudget(2**24), SignedReceipts(SIGNER, ADDRESS)
        )

    def _view(self, chain: Network) -> View:
        world = self._world
        chains, clock, signer = {world.network.id: chain}, world.clock, world.signer
        caps = {world.network.id: Decimal("0.01")}
        rules = GasRules(world.terms.free_settlements, 100, {}, Decimal(0), caps)
        prices = GasPrices(self.rpc, chains, signer.address, rules, clock)
        engine = X402Engine(self.rpc, chains, signer, prices, clock, SETTLEMENT_S)
        facilitator: Facilitator = engine
        budget = None
        if world.terms.has_facilitator:
            remote = RemoteFacilitator(
                _endpoints(world.terms),
                self.networks,
                engine,
                clock,
                SETTLEMENT_S,
            )
            remote._client = httpx2.AsyncClient(
                transport=Transport(world.facilitator, self.boundary)
            )
            facilitator = remote
        elif world.terms.is_gas_charged:
            budget = GasBudget(rules, prices, self.gas_store, clock)
        charges: Any = None  # MPP is another protocol
        needs = ProtocolDependencies(Eip3009Signers(), facilitator, charges, clock, gas=budget)
        return View(needs, ChainReceipts(self.rpc, chains))


def _endpoints(terms: Terms) -> list[FacilitatorEndpoint]:
    hosts = ["facilitator.test", *["second.test"] * terms.has_second_facilitator]
    return [FacilitatorEndpoint(f"https://{host}") for host in hosts]


def _demanded(error: ServiceError) -> Any:
    demand = getattr(error, "demand", None)
    return getattr(error, "headers", ()) if demand is None else demand.headers


class _Unasked:
    """Parts that no call without an agent asks, but for its session."""

    speaker: str | None = None
    """Whose session the next requests show."""

    async def session_of(self, _headers: object) -> str | None:
        return self.speaker
