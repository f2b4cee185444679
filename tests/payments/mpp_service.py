"""A service that takes payments over MPP, by the protocol's own library, over a node in memory."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from assay.app.payments import payment_chains
from assay.common.clock import SystemClock
from assay.common.ids import new_id
from assay.common.keyring import MacKeys
from assay.common.shared_state import MemorySharedState
from assay.payments.finality import View, Witness
from assay.payments.model import ClaimedPayment, LedgerEntry, Quote, Replay, StoredResponse
from assay.payments.mpp.charges import TempoCharges
from assay.payments.mpp.library import LibraryLoader
from assay.payments.mpp.protocol import PROTOCOL
from assay.payments.payout_wallet import ChainReceipts
from assay.payments.ports import PaidRequest, ProtocolDependencies
from assay.payments.service import PaymentService
from assay.payments.settlement import Settlement
from tests.payments.boundary import Boundary, Fault, open_database
from tests.payments.outside import PAYEE, PRICE
from tests.payments.tempo import NETWORK, PAYER, FakeTempo, TempoClient
from tests.support.databases import migrated_sqlite
from tests.support.fakes.calls import counted_ledger

STORED = StoredResponse(200, (), b"what is sold")
QUOTE = Quote(
    wrapper_id="w",
    operator_id="op",
    url="https://assay.test/wrap/op/quote",
    method="GET",
    path="/wrap/op/quote",
    query="",
    description="",
    network=NETWORK,
    amount=PRICE,
    pay_to=PAYEE,
    work_s=1.0,
    settles_first=False,
)


class MovedClock:
    """The machine's time, as the library has it, and what it was moved by."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> Any:
        return SystemClock.now() + self.ahead

    def monotonic_s(self) -> float:
        return SystemClock.monotonic_s() + self.ahead.total_seconds()


class Service:
    """One life of a service that takes payments over MPP."""

    def __init__(self, tempo: FakeTempo, clock: MovedClock, database: Any) -> None:
        self.boundary: Boundary = database.boundary
        self.database = database
        networks, chains = {NETWORK.id: NETWORK}, payment_chains({NETWORK.id: NETWORK})
        rpc: Any = TempoClient(tempo, self.boundary)
        self.loader = LibraryLoader(
            networks,
            MemorySharedState(clock),
            (rpc, chains),
            secrets=("1" * 32, "2" * 32),
            realm="assay.test",
            timeout_s=2.0,
        )
        ttl = timedelta(minutes=5)
        charges = TempoCharges(self.loader, chains, rpc, clock, challenge_ttl=ttl)
        nobody: Any = None
        self.needs = ProtocolDependencies(nobody, nobody, charges, clock)
        view = View(self.needs, ChainReceipts(rpc, chains))
        protocols = {"mpp": PROTOCOL}
        witness = Witness(networks, protocols, view, {}, clock, 2.0)
        self.ledger = counted_ledger(database, clock)
        lease = timedelta(seconds=5)
        self.settlement = Settlement(protocols, self.needs, self.ledger, clock, lease, witness)
        self.payment_service = PaymentService(
            self.settlement, MacKeys(b"assay.idempotency|", ("0" * 32,))
        )

    async def demanded(self, quote: Quote = QUOTE) -> Any:
        """The headers of the 402."""
        return (await self.payment_service.demand(quote)).demand.headers

    async def buy(self, header: str, quote: Quote = QUOTE) -> StoredResponse:
        """As the pipeline: what the payment has bought. Raises its refusals."""
        headers = ((b"authorization", header.encode()),)
        target = "/wrap/op/quote"
        request = PaidRequest("GET", quote.url, headers, b"", "192.0.2.7", target=target)
        (presented,) = await self.payment_service.presented(headers)
        request = replace(request, presented=presented)
        spent = await self.payment_service.find_spent(
            presented.network, presented.digest, presented.token
        )
        held: ClaimedPayment | Replay
        if spent is not None:
            replay = await self.payment_service.find_bought(spent, request)
            held = replay or await self.payment_service.resume(spent, quote, request)
        else:
            payment = await self.payment_service.read(quote, request)
            held = await self.payment_service.hold(payment, request)
        if isinstance(held, Replay):
            return held.stored
        if held.entry.has_paid:
            entry = await self.payment_service.keep(held.entry, STORED)
        else:
            entry = await self.payment_service.settle(held, STORED)
        await self.payment_service.delivered(entry)
        return STORED

    async def row(self) -> LedgerEntry:
        (found,) = await self.ledger.list(None, (), 10)
        return found

    async def aclose(self) -> None:
        self.boundary.is_dead = True
        await self.loader.aclose()
        await self.database.close()


class World:
    """What outlives its processes."""

    def __init__(self, folder: Path) -> None:
        self.clock = MovedClock()
        self.tempo = FakeTempo(lambda: self.clock.now().timestamp())
        self.tempo.balances[PAYER] = 10 * PRICE
        self.url = migrated_sqlite(folder / f"{new_id()}.db")
        self.lives: list[Service] = []

    async def start(self, fault: Fault | None = None) -> Service:
        made = Service(self.tempo, self.clock, await open_database(self.url, Boundary(fault)))
        self.lives.append(made)
        return made

    async def aclose(self) -> None:
        for one in self.lives:
            await one.aclose()

    def taken(self) -> int:
        return self.tempo.balances.get(PAYEE, 0)
