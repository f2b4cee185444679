"""Payouts and refunds on a stage of their own: databases, processes, and a chain with two nodes."""

from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from assay.app.payments import chain_of
from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.evm.signing import TransactionSigner
from assay.db.engine import Database
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.networks import payment_networks
from assay.payments.outcomes import SettlementAttempt
from assay.payments.payout_wallet import PayoutWallet
from assay.payments.statement import Statements, Transfer
from assay.payments.store_transfers import SqlStatementStore, SqlTransferStore
from assay.payments.store_watches import SqlWatchStore
from assay.payments.transfers import Transfers
from assay.payments.watcher import plan_of
from tests.support.fakes.calls import claimed, counted_ledger, payment
from tests.support.fakes.clock import FrozenClock
from tests.support.token_chain import TokenChain, TokenNode

NETWORK = "eip155:84532"
USDC = payment_networks({})[NETWORK].asset.address
KEY = "0x" + "77" * 32
WALLET = TransactionSigner(KEY).address
PLATFORM = "0x" + "aa" * 20
SELLER = "0x" + "dd" * 20
OWN = "0x" + "cc" * 20
FINAL: Final = payment_networks({})[NETWORK].final_blocks
ANOTHER = "0x" + "ab" * 32


@dataclass
class Process:
    """One process of the service: its own connections, and perhaps a moment at which it dies."""

    transfers: Transfers
    statements: Statements
    wallet: PayoutWallet
    database: Database
    rpc: JsonRpc


@dataclass
class Stage:
    url: str
    clock: FrozenClock
    chain: TokenChain
    nodes: list[TokenNode]
    stack: AsyncExitStack
    confirmations: dict[str, int] = field(default_factory=dict)

    async def process(self, key: str | None = KEY) -> Process:
        database = await Database.open(self.url)
        self.stack.push_async_callback(database.close)
        rpc = JsonRpc(self.clock)
        self.stack.push_async_callback(rpc.aclose)
        networks = payment_networks(
            {NETWORK: tuple(node.url for node in self.nodes)}, self.confirmations
        )
        chains = {one.id: replace(chain_of(one), multicall3=False) for one in networks.values()}
        wallet = PayoutWallet(rpc, chains, TransactionSigner(key) if key else None, self.clock)
        statements = Statements(SqlStatementStore(database, {PLATFORM}))
        store = SqlTransferStore(database, {PLATFORM}, self.clock)
        made = Transfers(store, wallet, statements, networks, (PLATFORM,), self.clock)
        return Process(made, statements, wallet, database, rpc)

    async def paid(
        self,
        amount: int = 1000,
        rate: str | None = "0.05",
        pay_to: str = PLATFORM,
        *,
        is_final: bool = True,
    ) -> LedgerEntry:
        """A payment that has settled, and that the watcher has found final."""
        process = await self.process(None)
        ledger = counted_ledger(process.database, self.clock)
        made = payment("op", "w", self.clock.now(), amount)
        fee_rate = None if rate is None else Decimal(rate)
        fields: dict[str, Any] = {"network": NETWORK, "asset": USDC, "pay_to": pay_to}
        made = replace(made, **fields, fee_rate=fee_rate)
        attempt = SettlementAttempt("0x" + "ee" * 32)
        moved = await ledger.move(
            await claimed(ledger, made), PaymentState.SETTLED, attempt=attempt
        )
        assert moved is not None
        if is_final:
            await SqlWatchStore(process.database).plan([plan_of(moved, None)])
        return moved


async def settled(stage: Stage, process: Process, made: Transfer) -> Transfer:
    """The transfer once the service has looked at it again."""
    for _ in range(5):
        stage.clock.move(700)
        await process.transfers.resume()
    (found,) = [
        one for one in await process.transfers.list_for_admin(None, 100) if one.id == made.id
    ]
    return found


async def owed(process: Process) -> int:
    return sum(line.owed for line in await process.statements.of("op"))
