"""Everything between a process and what is outside it, and all that can happen on the way.

An exchange reaches the other end, or does not; its answer comes back, or does not; it takes its
time; the process may be killed before, meanwhile or after. A killed process goes on with nothing:
whatever it had sent may still arrive.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, Protocol, TypeVar

from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Reverted, RpcRefused
from assay.common.errors import ServiceError, Unavailable
from assay.common.json import JsonValue
from assay.payments.gas import GasTerms
from assay.payments.model import (
    Due,
    InFlightAmount,
    LedgerEntry,
    PaymentClaim,
    PaymentRefused,
    PaymentState,
    StoredResponse,
    WatchedPayment,
)
from assay.payments.outcomes import Look, SettlementAttempt
from assay.payments.watcher import RecheckPlan
from tests.simulation.chain import Refused
from tests.simulation.node import Node
from tests.support.fakes.gas_accounts import in_flight
from tests.support.fakes.ledger import MemoryLedgerStore

T = TypeVar("T")


@dataclass(slots=True)
class Trouble:
    """The chance of each fault at one exchange; all nought is a world without any."""

    pause: float = 0.5
    """That somebody else goes on first."""
    slow: float = 0.0
    crash: float = 0.0
    store_lost: float = 0.0
    rpc_lost: float = 0.0
    rpc_refuses: float = 0.0
    lag: float = 0.0
    """That a node behind a balancer has not seen the last blocks."""
    lie: float = 0.0
    facilitator: float = 0.0
    cancel: float = 0.0
    """That a caller hangs up."""


class Killable(Protocol):
    """A process, as an exchange sees it."""

    is_alive: bool

    def crash(self) -> None: ...


class Wire:
    """Exchanges between processes and the world."""

    def __init__(self, random: Random, trouble: Trouble) -> None:
        self.random = random
        self.trouble = trouble
        self.is_over = False
        self.broken: Callable[[str], None] = lambda _what: None
        self._held: list[asyncio.Future[None]] = []

    async def exchange(
        self,
        process: Killable,
        effect: Callable[[], T],
        lost: float,
        failure: Callable[[], Exception],
    ) -> T:
        """What `effect` gives, unless it is lost on the way: then `failure`, done or not."""
        chance = self.random.random
        await self._go_on(process)
        arrives_all_the_same = chance() < 0.5
        if chance() < self.trouble.crash:
            process.crash()
        try:
            await self._pause()
        except asyncio.CancelledError:
            if arrives_all_the_same and not self.is_over:
                self._arrive(effect)
            raise
        if not process.is_alive:
            if arrives_all_the_same:
                self._arrive(effect)
            await self._never()
        roll = chance()
        if roll < lost / 2:
            raise failure()
        result = self._do(effect)
        if roll < lost:
            raise failure()
        await self._pause()
        await self._go_on(process)
        return result

    def end(self) -> None:
        """Let go of what killed processes wait for."""
        self.is_over = True
        for one in self._held:
            one.cancel()

    def _do(self, effect: Callable[[], T]) -> T:
        try:
            return effect()
        except (ServiceError, PaymentRefused):
            raise
        except Exception as error:
            self.broken(f"a model is wrong: {error!r}")
            raise

    def _arrive(self, effect: Callable[[], object]) -> None:
        """It is done, and nobody hears of it."""
        with suppress(ServiceError, PaymentRefused):
            self._do(effect)

    async def _pause(self) -> None:
        roll = self.random.random()
        if roll < self.trouble.slow:
            await asyncio.sleep(self.random.choice((0.03, 0.4, 3.0, 9.0)))
        elif roll < self.trouble.pause:
            await asyncio.sleep(0)
        elif roll < self.trouble.pause + 0.1:
            await asyncio.sleep(0.01)

    async def _go_on(self, process: Killable) -> None:
        if self.is_over:
            raise asyncio.CancelledError
        if not process.is_alive:
            await self._never()

    async def _never(self) -> None:
        """A killed process does nothing more, its handlers neither."""
        held: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._held.append(held)
        while not self.is_over:  # one that is cancelled is still dead
            try:
                await asyncio.shield(held)
            except asyncio.CancelledError:
                continue
        raise asyncio.CancelledError


def _database_lost() -> Exception:
    return Unavailable("The database cannot be used now.", retry_after_s=5)


def _chain_lost() -> Exception:
    return ChainUnavailable("The chain cannot be read right now", detail="timeout")


@dataclass(slots=True)
class LedgerClient:
    """The ledger as one process reaches it: implements its ports as the store does."""

    disk: MemoryLedgerStore
    wire: Wire
    process: Killable

    async def claim(
        self, fresh: LedgerEntry, failures_since: datetime, gas: GasTerms | None = None
    ) -> PaymentClaim:
        return await self._ask(lambda: self.disk.claim(fresh, failures_since, gas))

    async def claim_due(
        self, network: str, now: datetime, until: datetime, limit: int
    ) -> Sequence[WatchedPayment]:
        return await self._ask(lambda: self.disk.claim_due(network, now, until, limit))

    async def entries(self, ids: Sequence[str]) -> Sequence[LedgerEntry]:
        return await self._ask(lambda: self.disk.entries(ids))

    async def plan(self, plans: Sequence[RecheckPlan]) -> None:
        await self._ask(lambda: self.disk.plan(plans))

    async def committed(self, entry: LedgerEntry) -> InFlightAmount:
        return await self._ask(lambda: self.disk.committed(entry))

    async def find(self, network: str, digest: str) -> LedgerEntry | None:
        return await self._ask(lambda: self.disk.find(network, digest))

    async def move(
        self,
        entry: LedgerEntry,
        state: PaymentState,
        *,
        attempt: SettlementAttempt | None = None,
        reason: str = "",
        lease_until: datetime | None = None,
        stored: StoredResponse | None = None,
    ) -> LedgerEntry | None:
        return await self._ask(
            lambda: self.disk.move(
                entry, state, attempt=attempt, reason=reason, lease_until=lease_until, stored=stored
            )
        )

    async def stored_bytes(self, entry_id: str) -> int | None:
        return await self._ask(lambda: self.disk.stored_bytes(entry_id))

    async def stored(self, entry_id: str) -> StoredResponse | None:
        return await self._ask(lambda: self.disk.stored(entry_id))

    async def lease_unfinished(self, due: Due, lease_until: datetime) -> Sequence[LedgerEntry]:
        return await self._ask(lambda: self.disk.lease_unfinished(due, lease_until))

    async def put_off(self, entries: Sequence[LedgerEntry]) -> None:
        await self._ask(lambda: self.disk.put_off(entries))

    async def put_off_all(self, leased: LedgerEntry, look: Look, reason: str) -> None:
        await self._ask(lambda: self.disk.put_off_all(leased, look, reason))

    async def in_flight(self, network: str, now: datetime, since: datetime) -> int:
        del network
        return await self._ask(lambda: self._waiting(now, since))

    async def _waiting(self, now: datetime, since: datetime) -> int:
        return in_flight([*self.disk.rows.values()], now, since)

    async def purge_stored(self, before: datetime) -> int:
        return await self._ask(lambda: self.disk.purge_stored(before))

    async def list(
        self, operator_id: str | None, states: Sequence[PaymentState], limit: int
    ) -> Sequence[LedgerEntry]:
        return await self._ask(lambda: self.disk.list(operator_id, states, limit))

    async def _ask(self, question: Callable[[], Any]) -> Any:
        return await self.wire.exchange(
            self.process, lambda: at_once(question()), self.wire.trouble.store_lost, _database_lost
        )


def at_once(work: Any) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


class NodeClient:
    """A node as one process reaches it: implements `chains.rpc.Rpc`."""

    def __init__(self, node: Node, wire: Wire, process: Killable) -> None:
        self._node = node
        self._wire = wire
        self._process = process
        self.asked = 0

    async def call(
        self, network: Network, calls: Sequence[ContractCall]
    ) -> list[Returned | Reverted]:
        return await self.call_newest(network, calls)

    async def call_newest(
        self, network: Network, calls: Sequence[ContractCall]
    ) -> list[Returned | Reverted]:
        return await self._ask(network, lambda: self._node.call([call.data for call in calls]))

    async def call_at(
        self, network: Network, calls: Sequence[ContractCall], block: int
    ) -> list[Returned | Reverted]:
        return await self._ask(
            network, lambda: self._called_at([call.data for call in calls], block)
        )

    async def call_untrusted(
        self, network: Network, call: ContractCall, gas: int
    ) -> Returned | Reverted:
        del gas
        (found,) = await self.call_newest(network, (call,))
        return found

    async def request(
        self, network: Network, method: str, params: Sequence[JsonValue]
    ) -> JsonValue:
        return await self._ask(network, lambda: self._answer(method, params))

    async def request_all(
        self, network: Network, requests: Sequence[tuple[str, Sequence[JsonValue]]]
    ) -> Sequence[JsonValue]:
        return await self._ask(network, lambda: [self._or_none(*one) for one in requests])

    async def _ask(self, network: Network, effect: Callable[[], T]) -> T:
        """The first node of a network answers, unless it is told to ask another one."""
        self.asked += 1

        def ask() -> T:
            self._node.url = network.rpc_urls[0]
            return effect()

        return await self._wire.exchange(
            self._process, ask, self._wire.trouble.rpc_lost, _chain_lost
        )

    def _called_at(self, calls: Sequence[bytes], block: int) -> list[Returned | Reverted]:
        try:
            return self._node.call_at(calls, block)
        except Refused as refused:
            raise _refused(str(refused)) from None

    def _answer(self, method: str, params: Sequence[JsonValue]) -> JsonValue:
        if self._wire.random.random() < self._wire.trouble.rpc_refuses:
            raise _refused("internal error")
        try:
            return self._node.answer(method, params)
        except Refused as refused:
            raise _refused(str(refused)) from None

    def _or_none(self, method: str, params: Sequence[JsonValue]) -> JsonValue:
        try:
            return self._answer(method, params)
        except RpcRefused:
            return None


def _refused(message: str) -> RpcRefused:
    return RpcRefused("refused", rpc_code=-32000, rpc_message=message)
