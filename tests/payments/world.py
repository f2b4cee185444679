"""What outlives a process of the service: the chain, the database, the upstream, and the time."""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from assay.chains.evm.signing import TransactionSigner, transaction_of
from assay.common.addresses import keccak256
from assay.common.ids import new_id
from assay.payments.model import LedgerEntry
from assay.payments.store import entry_of
from assay.payments.x402.eip3009 import Eip3009Signers
from assay.wrappers.model import WrapperConfig
from assay.wrappers.route_table import REMEMBERED_S
from tests.payments.facilitator import FakeFacilitator
from tests.payments.outside import OPERATOR, PATH, PAYEE, PRICE, FakeUpstream, InlineLoop
from tests.simulation.chain import BLOCK_S, NETWORK, Chain, Pending, read_transfer
from tests.simulation.node import Node
from tests.simulation.process import EPOCH, EPOCH_S, SimulatedClock
from tests.support.databases import migrated_sqlite
from tests.support.fakes.wrappers import MemoryWrapperStore

T = TypeVar("T")

KEY = "0x" + "0e" * 32
COIN = 10**18
WHOLE_S, BLOCKS = 20, 20
"""Of what is longer, so many blocks are made at its end."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How the call is sold, and what the service is made of."""

    settle: Any = "after"
    confirmations: int = 1
    has_facilitator: bool = False
    """Whether somebody's facilitator settles, instead of our own key."""
    has_second_facilitator: bool = False
    endpoints: int = 2
    """How many nodes the network is asked by."""
    is_gas_charged: bool = False
    free_settlements: int = 2


class World:
    """What outlives a process: the chain, the database, the upstream, and the time."""

    def __init__(self, folder: Path, terms: Terms | None = None) -> None:
        self.terms = terms or Terms()
        self.loop = InlineLoop()
        self.clock = SimulatedClock(self.loop)
        self.chain = Chain(Random(0), self.now_s)
        self.chain.is_signed = lambda one: Eip3009Signers().signer(one, NETWORK) == one.payer
        self.signer = TransactionSigner(KEY)
        self.chain.fund_gas(self.signer.address, COIN)
        self.nodes = {url: Node(self.chain, self._read, Random(0)) for url in NETWORK.rpc_urls}
        self.down = set[str]()
        self.upstream = FakeUpstream()
        self.path = folder / f"{new_id()}.db"
        self.url = migrated_sqlite(self.path)
        self.network = replace(NETWORK, confirmations=self.terms.confirmations)
        self.wrappers = MemoryWrapperStore()
        self.offer(_config(self.terms))
        self.facilitator = FakeFacilitator(self.chain)
        self._mining = self.loop.create_task(self._mine())
        self.at_end: list[Callable[[], Coroutine[Any, Any, None]]] = []
        """Gives back what processes have opened."""

    def now_s(self) -> float:
        """Seconds since 1970."""
        return EPOCH_S + self.loop.time()

    def offer(self, config: WrapperConfig) -> None:
        """The wrapper, from now on."""
        self.wrappers.rows[config.id] = config
        self.wrappers._written(config, (), None)

    def change_terms(self, **fields: Any) -> None:
        """The wrapper as it is from now on, once every process has heard of it."""
        known = self.wrappers.rows["w"]
        now = {"revision": known.revision + 1, "created_at": self.clock.now()}
        self.offer(replace(known, **now, **fields))  # type: ignore[arg-type]
        self.wait(REMEMBERED_S + 1)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it, and whatever else is due meanwhile."""
        return self.loop.run(work)

    def wait(self, seconds: float) -> None:
        """Time passes; of a long one only the last blocks are made."""
        is_long = seconds > WHOLE_S
        if is_long:
            self._mining.cancel()
        self.run(asyncio.sleep(seconds))
        if is_long:
            for _ in range(BLOCKS):
                self.chain.mine()
            self._mining = self.loop.create_task(self._mine())

    def rows(self) -> list[LedgerEntry]:
        """The ledger, as it stands on the disk."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.row_factory = sqlite3.Row
            return [entry_of(row) for row in connection.execute("SELECT * FROM payments")]

    def row(self) -> LedgerEntry:
        (found,) = self.rows()
        return found

    def taken(self) -> int:
        """What the seller has been paid, by the chain."""
        return self.chain.state.balances.get(PAYEE, 0)

    def close(self) -> None:
        """End all that goes on; what was unexpected is raised."""
        self._mining.cancel()
        for end in self.at_end:
            self.run(end())
        problems = [one for one in self.loop.unhandled if "ProcessKilled()" not in one]
        assert not problems, problems

    async def _mine(self) -> None:
        while True:
            await asyncio.sleep(BLOCK_S)
            self.chain.mine()

    def _read(self, raw: str) -> Pending:
        """A raw transaction as nodes read it."""
        sent = transaction_of(raw)
        action = read_transfer(sent.data) if sent.data else None
        hash_ = "0x" + keccak256(bytes.fromhex(raw[2:])).hex()
        prices = (sent.nonce, sent.fee, sent.priority_fee, sent.gas)
        return Pending(hash_, self.signer.address, *prices, action)


def _config(terms: Terms) -> WrapperConfig:
    return WrapperConfig(
        id="w",
        operator_id=OPERATOR,
        path=PATH,
        method="GET",
        price=PRICE,
        description="a quote",
        rate_limit=None,
        target_url="https://up.example/base",
        protocol="x402",
        network=NETWORK.id,
        payout_address=PAYEE,
        trust_enabled=False,
        min_score=0,
        identity_proof="asserted",
        settle=terms.settle,
        max_body_bytes=2**20,
        timeout_ms=1000,
        auth=None,
        active=True,
        created_at=EPOCH,
    )
