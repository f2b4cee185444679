"""Ledger, engine, witness and watcher over real endpoints, with a clock that can be moved."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.evm.signing import TransactionSigner
from assay.chains.model import Network
from assay.common.clock import SystemClock
from assay.common.ids import new_id
from assay.db.engine import Database
from assay.payments.finality import View, Witness
from assay.payments.model import (
    LedgerEntry,
    Payment,
    PaymentNetwork,
    PaymentRefused,
    PaymentSighting,
    PaymentState,
    Quote,
)
from assay.payments.networks import payment_networks
from assay.payments.outcomes import SettlementAttempt
from assay.payments.payout_wallet import ChainReceipts
from assay.payments.ports import Authorization, Facilitator, ProtocolDependencies
from assay.payments.settlement import PaymentPending, Settlement
from assay.payments.store import SqlLedgerStore
from assay.payments.store_watches import SqlWatchStore
from assay.payments.watcher import Watcher
from assay.payments.x402.codec import credential_of
from assay.payments.x402.eip3009 import Eip3009Signers
from assay.payments.x402.engine import X402Engine
from assay.payments.x402.facilitator import RemoteFacilitator
from assay.payments.x402.facilitator_access import FacilitatorEndpoint
from assay.payments.x402.protocol import X402
from assay_demo.chain import dollars
from assay_demo.chain.accounts import LocalAccount
from tests.support.fakes.calls import counted_ledger
from tests.support.fakes.gas import ample_gas
from tests.support.shop import ENGINE, NETWORK, SELLER, USDC

CENT = 10_000


class MovedClock:
    """The machine's time, and what it was moved by."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return SystemClock.now() + self.ahead

    def monotonic_s(self) -> float:
        return SystemClock.monotonic_s() + self.ahead.total_seconds()

    def move(self, seconds: float) -> None:
        self.ahead += timedelta(seconds=seconds)


@dataclass
class Room:
    """What a serving process has of payments."""

    clock: MovedClock
    ledger: SqlLedgerStore
    settlement: Settlement
    watcher: Watcher
    network: PaymentNetwork
    rpc: JsonRpc
    remotes: list[RemoteFacilitator] = field(default_factory=list)

    async def claimed(self, payer: LocalAccount, *, valid_s: int = 3600) -> LedgerEntry:
        """A payment of a cent, as it is when its upstream has answered."""
        entry = entry_of(payer, self.clock.now(), valid_s)
        found = await self.ledger.claim(entry, self.clock.now() - timedelta(hours=1))
        assert found.is_ours
        moved = await self.ledger.move(
            found.entry, PaymentState.SETTLING, lease_until=self.settlement.lease()
        )
        assert moved is not None
        return moved

    async def verified(self, entry: LedgerEntry) -> None:
        """Let the facilitators verify it, as they do before this process settles a payment."""
        quote = Quote(
            wrapper_id=entry.wrapper_id,
            operator_id=entry.operator_id,
            url="https://api.example/w",
            method="GET",
            path="/w",
            query="",
            description="",
            network=self.network,
            amount=entry.amount,
            pay_to=entry.pay_to,
            work_s=1.0,
            settles_first=False,
        )
        payment = Payment(
            quote, entry.payer, entry.nonce, entry.digest, entry.expires_at, entry.credential
        )
        for remote in self.remotes:
            await remote.verify(payment, PaymentSighting())

    async def settled(self, payer: LocalAccount, *, valid_s: int = 3600) -> LedgerEntry:
        entry = await self.claimed(payer, valid_s=valid_s)
        return await self.settlement.settle(entry)

    async def tried(self, entry: LedgerEntry) -> str:
        """Settle; the state it is left in."""
        try:
            return (await self.settlement.settle(entry)).state
        except (PaymentPending, PaymentRefused):
            return (await self.read(entry)).state

    async def read(self, entry: LedgerEntry) -> LedgerEntry:
        found = await self.ledger.find(entry.network, entry.digest)
        assert found is not None
        return found

    async def look(self, seconds: float = 11) -> list[LedgerEntry]:
        """Let time pass, and take the looks that are due."""
        self.clock.move(seconds)
        return await self.watcher.run(self.network.id)

    async def reconcile(self) -> Sequence[LedgerEntry]:
        self.clock.move(10)
        return await self.settlement.reconcile(is_due_only=False)

    async def aclose(self) -> None:
        await self.rpc.aclose()
        for remote in self.remotes:
            await remote.aclose()


def room(
    database: Database,
    urls: Sequence[str],
    *,
    settlement_s: float = 2.0,
    confirmations: int = 1,
    facilitator_url: str = "",
) -> Room:
    """Over these endpoints, in their order."""
    clock = MovedClock()
    networks = payment_networks({NETWORK: tuple(urls)}, {NETWORK: confirmations})
    network, rpc = networks[NETWORK], JsonRpc(clock)
    signer = TransactionSigner(ENGINE.key)
    remotes: list[RemoteFacilitator] = []

    def view(rpc_urls: tuple[str, ...]) -> View:
        chains = {NETWORK: chain_of(network, rpc_urls)}
        prices = ample_gas(rpc, chains, signer.address, clock)
        facilitator: Facilitator = X402Engine(rpc, chains, signer, prices, clock, settlement_s)
        if facilitator_url:
            facilitator = RemoteFacilitator(
                [FacilitatorEndpoint(facilitator_url)], networks, facilitator, clock, settlement_s
            )
            remotes.append(facilitator)
        unused: Any = None
        needs = ProtocolDependencies(Eip3009Signers(), facilitator, unused, clock)
        return View(needs, ChainReceipts(rpc, chains))

    first = view(network.rpc_urls)
    others: Mapping[str, View] = {}
    if len(network.rpc_urls) > 1:
        others = {NETWORK: view(network.rpc_urls[1:])}
    protocols = {"x402": X402()}
    witness = Witness(networks, protocols, first, others, clock, settlement_s)
    ledger = counted_ledger(database, clock)
    lease = timedelta(seconds=5)
    settlement = Settlement(protocols, first.needs, ledger, clock, lease, witness)
    watcher = Watcher(settlement, witness, SqlWatchStore(database), clock)
    return Room(clock, ledger, settlement, watcher, network, rpc, remotes)


def chain_of(network: PaymentNetwork, rpc_urls: tuple[str, ...]) -> Network:
    nobody = "0x" + "00" * 20
    return Network(
        slug=network.id,
        name=network.id,
        chain_id=network.chain_id,
        testnet=True,
        identity_registry=nobody,
        reputation_registry=nobody,
        rpc_urls=rpc_urls,
        source="a test",
        multicall3=False,
    )


def entry_of(payer: LocalAccount, now: datetime, valid_s: int) -> LedgerEntry:
    requirement = {
        "amount": str(CENT),
        "payTo": SELLER.address,
        "asset": USDC,
        "extra": {"name": "USDC", "version": "2"},
    }
    payload: Any = dollars.authorize(payer.key, requirement, 84532, valid_s=valid_s)
    given = payload["authorization"]
    signed = Authorization(
        given["from"].lower(),
        given["to"].lower(),
        CENT,
        int(given["validAfter"]),
        int(given["validBefore"]),
        given["nonce"],
        payload["signature"],
    )
    return LedgerEntry(
        id=new_id(),
        protocol="x402",
        network=NETWORK,
        asset=USDC,
        payer=signed.payer,
        nonce=signed.nonce,
        digest=secrets.token_hex(32),
        amount=CENT,
        pay_to=SELLER.address.lower(),
        operator_id="op",
        wrapper_id="w",
        request_digest="r",
        state=PaymentState.CLAIMED,
        attempt=SettlementAttempt(""),
        reason="",
        credential=credential_of(signed),
        version=2,
        identifier=None,
        expires_at=datetime.fromtimestamp(signed.valid_before, UTC),
        lease_until=now + timedelta(seconds=30),
        created_at=now,
        updated_at=now,
    )
