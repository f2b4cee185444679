"""A process of the service: the real parts, put together as `app.wrappers` does, and its calls.

`Process._answer` is the paid part of `wrappers.pipeline`, step for step;
the rest of a call moves no money.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from assay.app.background import purge_forever, reconcile_forever, watch_forever
from assay.chains.model import Network
from assay.common.errors import Conflict, ServiceError, Unavailable
from assay.common.keyring import MacKeys
from assay.payments.finality import View, Witness
from assay.payments.gas import GasBudget
from assay.payments.model import (
    ClaimedPayment,
    PaymentRefused,
    PaymentRequired,
    Quote,
    Replay,
    StoredResponse,
)
from assay.payments.payout_wallet import ChainReceipts
from assay.payments.ports import Facilitator, PaidRequest, ProtocolDependencies
from assay.payments.service import PaymentService, PaymentSpent
from assay.payments.settlement import LATE_S, Settlement
from assay.payments.watcher import Watcher
from assay.payments.x402.engine import X402Engine
from assay.payments.x402.facilitator import RemoteFacilitator
from assay.payments.x402.facilitator_access import FacilitatorEndpoint
from assay.payments.x402.protocol import PROTOCOL
from tests.simulation.chain import NETWORK, SettlementKey, Signers
from tests.simulation.facilitator import FacilitatorService
from tests.simulation.loop import SimulatedLoop
from tests.simulation.node import Node
from tests.simulation.wire import LedgerClient, NodeClient, Wire
from tests.support.fakes.gas import ample_gas
from tests.support.fakes.ledger import MemoryLedgerStore

EPOCH = datetime(2026, 3, 1, 12, tzinfo=UTC)
EPOCH_S = EPOCH.timestamp()
KEEP = timedelta(hours=24)
FREE = 2
"""Settlements that an operator has free, in worlds with gas accounts."""
CHAIN = Network(
    slug=NETWORK.id,
    name=NETWORK.id,
    chain_id=NETWORK.chain_id,
    testnet=True,
    identity_registry="0x" + "00" * 20,
    reputation_registry="0x" + "00" * 20,
    rpc_urls=NETWORK.rpc_urls,
    source="",
)


_ORDINARY = ("Unavailable(", "ChainUnavailable(", "RpcRefused(", "PaymentPending(")
"""What the background loops may have to try again for."""
_GROUP = re.compile(r"^(ExceptionGroup\('[^']*', \[)+")


class UpstreamBroken(ServiceError):
    """The upstream has failed; nobody is charged for it."""

    code = "upstream_failed"


_STATUSES = {PaymentRequired: 402, Conflict: 409, UpstreamBroken: 502, Unavailable: 503}


class ConnectionLost(Exception):
    """The process is gone, or has hung up."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a caller was told; `code` is that of the error, empty for an answer."""

    status: int
    code: str = ""
    body: bytes = b""
    reason: str = ""


@dataclass(slots=True)
class SimulatedClock:
    """Implements `common.clock.Clock` over the loop's time, a little wrong if need be."""

    loop: SimulatedLoop
    skew_s: float = 0.0

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.loop.time() + self.skew_s)

    def monotonic_s(self) -> float:
        return 1000.0 + self.loop.time()


@dataclass(frozen=True, slots=True)
class Outside:
    """What processes have in common, and what outlives them."""

    loop: SimulatedLoop
    wire: Wire
    disk: MemoryLedgerStore
    node: Node
    key: SettlementKey
    facilitator: FacilitatorService | None
    lease_s: float
    settlement_s: float
    crashed: Callable[[], None]
    broken: Callable[[str], None]
    """Told of what should not be."""


Ask = Callable[["Process", str, str], Awaitable[StoredResponse]]
"""Asks the upstream for what is sold at an address, for the payment of that digest."""


class Process:
    """One life of one process: a restart is another one."""

    def __init__(self, outside: Outside, skew_s: float) -> None:
        self.is_alive = True
        self._outside = outside
        # In order, as a set is not: a seed must be one schedule.
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._callers: dict[asyncio.Future[Reply], None] = {}
        self.clock = clock = SimulatedClock(outside.loop, skew_s)
        self.ledger = LedgerClient(outside.disk, outside.wire, self)
        self.node = NodeClient(outside.node, outside.wire, self)
        networks, protocols = {NETWORK.id: NETWORK}, {"x402": PROTOCOL}
        first, second = self._view(CHAIN), self._view(replace(CHAIN, rpc_urls=CHAIN.rpc_urls[1:]))
        witness = Witness(
            networks, protocols, first, {NETWORK.id: second}, clock, outside.settlement_s
        )
        lease = timedelta(seconds=outside.lease_s)
        settlement = Settlement(protocols, first.needs, self.ledger, clock, lease, witness)
        self.payment_service = PaymentService(
            settlement, MacKeys(b"assay.idempotency|", ("0" * 32,))
        )
        log: Any = _Log(outside)
        watcher = Watcher(settlement, witness, self.ledger, clock)
        self._background = [
            outside.loop.create_task(work)
            for work in (
                reconcile_forever(settlement, NETWORK.id, log),
                purge_forever(self.ledger, KEEP, clock, log),
                watch_forever(watcher, NETWORK.id, log),
            )
        ]

    def crash(self) -> None:
        """Killed: nothing of it goes on, and whoever was waiting for it hears so."""
        if not self.is_alive:
            return
        self.is_alive = False
        for caller in self._callers:
            if not caller.done():
                caller.set_exception(ConnectionLost())
        self._outside.crashed()

    def end(self) -> None:
        """The world ends: called when nothing may be written down any more."""
        self.is_alive = False
        for task in (*self._background, *self._tasks):
            task.cancel()

    async def call(
        self, request: PaidRequest, quote: Quote, ask: Ask, patience_s: float | None
    ) -> Reply:
        """What the caller is told; raises `ConnectionLost`, also where it hangs up itself."""
        if not self.is_alive:
            raise ConnectionLost
        told: asyncio.Future[Reply] = self._outside.loop.create_future()
        task = self._outside.loop.create_task(self._answered(request, quote, ask, told))
        self._tasks[task] = self._callers[told] = None
        task.add_done_callback(self._tasks.pop)
        try:
            async with asyncio.timeout(patience_s):
                return await told
        except TimeoutError:
            task.cancel()
            raise ConnectionLost from None
        finally:
            del self._callers[told]

    async def _answered(
        self, request: PaidRequest, quote: Quote, ask: Ask, told: asyncio.Future[Reply]
    ) -> None:
        entry = None
        try:
            reply, entry = await self._answer(request, quote, ask)
        except ServiceError as error:
            reply = _refusal(error)
        except Exception as error:  # noqa: BLE001 - what a caller would see as a 500
            if self.is_alive:
                self._outside.broken(f"an unexpected {error!r}")
            reply = Reply(500)
        if not self.is_alive:
            return
        if not told.done():
            told.set_result(reply)
        if entry is not None:
            with suppress(Unavailable):
                await self.payment_service.delivered(entry)

    async def _answer(self, request: PaidRequest, quote: Quote, ask: Ask) -> tuple[Reply, Any]:
        """`Pipeline.answer`, `Pipeline._serve_paid` and `PayStep.hold`."""
        (presented,) = await self.payment_service.presented(request.headers)
        spent = await self.payment_service.find_spent(
            presented.network, presented.digest, presented.token
        )
        if spent is not None:
            try:
                return await self._serve_again(spent, request, quote, ask)
            except PaymentRefused as refusal:
                raise await self.payment_service.refused(quote, refusal) from refusal
        payment = await self.payment_service.read(quote, replace(request, presented=presented))
        held = await self.payment_service.hold(payment, request)
        if isinstance(held, Replay):
            return _replayed(held)
        if quote.settles_first and not held.entry.has_paid:
            held = ClaimedPayment(await self.payment_service.settle(held, None), held.quote)
        return await self._serve(held, request, ask)

    async def _serve_again(
        self, spent: PaymentSpent, request: PaidRequest, quote: Quote, ask: Ask
    ) -> tuple[Reply, Any]:
        """`Pipeline._serve_again`."""
        replay = await self.payment_service.find_bought(spent, request)
        if replay is not None:
            return _replayed(replay)
        held = await self.payment_service.resume(spent, quote, request)
        return (
            _replayed(held) if isinstance(held, Replay) else await self._serve(held, request, ask)
        )

    async def _serve(
        self, held: ClaimedPayment, request: PaidRequest, ask: Ask
    ) -> tuple[Reply, Any]:
        """`PaidCalls.serve`."""
        try:
            async with asyncio.timeout(held.quote.work_s + LATE_S):
                stored = await ask(self, request.url, held.entry.digest)
        except TimeoutError:
            await self.payment_service.release(held, UpstreamBroken.code)
            raise UpstreamBroken("The upstream's answer was not whole in time.") from None
        except BaseException as error:
            await self.payment_service.release(held, getattr(error, "code", type(error).__name__))
            raise
        if stored.status >= 400:
            await self.payment_service.release(held, f"upstream {stored.status}")
            return Reply(stored.status, "upstream_refused"), None
        stored = replace(stored, caller=request.caller)
        if held.entry.has_paid:
            entry = await self.payment_service.keep(held.entry, stored)
        else:
            entry = await self.payment_service.settle(held, stored)
        return Reply(stored.status, body=stored.body), entry

    def _view(self, chain: Network) -> View:
        """As `app.wrappers` makes them."""
        outside, chains = self._outside, {NETWORK.id: chain}
        signer: Any = outside.key
        prices = ample_gas(self.node, {NETWORK.id: CHAIN}, signer.address, self.clock)
        has_gas = outside.disk.gas is not None and outside.facilitator is None
        store: Any = self.ledger
        rules = replace(prices.rules, free_per_account=FREE)
        budget = GasBudget(rules, prices, store, self.clock) if has_gas else None
        engine = X402Engine(self.node, chains, signer, prices, self.clock, outside.settlement_s)
        charges: Any = None  # MPP is another protocol
        needs = ProtocolDependencies(
            Signers(), self._facilitator(engine), charges, self.clock, gas=budget
        )
        return View(needs, ChainReceipts(self.node, chains))

    def _facilitator(self, engine: X402Engine) -> Facilitator:
        outside = self._outside
        if outside.facilitator is None:
            return engine
        remote = RemoteFacilitator(
            [FacilitatorEndpoint("https://facilitator.test")],
            {NETWORK.id: NETWORK},
            engine,
            self.clock,
            outside.settlement_s,
        )
        remote._client = outside.facilitator.client(self)
        return remote


def _replayed(replay: Replay) -> tuple[Reply, Any]:
    return Reply(replay.stored.status, body=replay.stored.body), replay.entry


def _refusal(error: ServiceError) -> Reply:
    """As `server.errors` has it."""
    status = next(status for kind, status in _STATUSES.items() if isinstance(error, kind))
    return Reply(status, error.code, reason=str(error.extras.get("reason", "")))


@dataclass(frozen=True, slots=True)
class _Log:
    """Takes what the background tells: an outage is ordinary, anything else is not."""

    outside: Outside

    def info(self, _event: str, **_fields: object) -> None:
        """The ledger tells it too."""

    def warning(self, event: str, error: str = "", **_fields: object) -> None:
        inner = _GROUP.sub("", error)  # what the watcher's tasks raised
        if error and not inner.startswith(_ORDINARY):
            self.outside.broken(f"{event}: {error}")


def answer_of(url: str) -> StoredResponse:
    """What the upstream sells at an address: no two addresses sell the same."""
    return StoredResponse(200, (), url.encode())
