"""Everything that a process asks of its database, its chain and its upstream: counted, and cut.

A fault is at one step, before its effect or after it. A process that was killed goes on with
nothing: whatever it still asks is answered by `ProcessKilled`, and has no effect.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection
from typing_extensions import override

from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Reverted, RpcRefused
from assay.common.errors import Unavailable
from assay.common.json import JsonValue
from assay.db.engine import Database
from assay.db.sql_transaction import Work
from tests.simulation.chain import Refused
from tests.simulation.node import Node

T = TypeVar("T")

FaultKind = Literal["killed", "hung_up", "lost"]
"""The process is killed; its caller hangs up; the answer is lost, or the question."""


class ProcessKilled(BaseException):
    """What every wait of a killed process ends in."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong at one step: before what was asked for is done, or after."""

    kind: FaultKind
    step: int
    is_after: bool

    def __str__(self) -> str:
        return f"{self.kind} {'after' if self.is_after else 'before'} step {self.step}"


@dataclass(slots=True)
class Boundary:
    """The steps of one process."""

    fault: Fault | None = None
    steps: list[str] = field(default_factory=list[str])
    """What was asked for, in order."""
    is_dead: bool = False
    caller: asyncio.Task[Any] | None = None
    """Who hangs up where that is the fault."""

    @property
    def has_failed(self) -> bool:
        """Whether the fault's step was reached."""
        return self.fault is not None and len(self.steps) > self.fault.step

    async def cross(
        self, name: str, effect: Callable[[], Awaitable[T]], lost: Callable[[], Exception]
    ) -> T:
        """What `effect` gives, unless something goes wrong here."""
        self.require_alive()
        fault = self.fault
        is_here = fault is not None and len(self.steps) == fault.step
        self.steps.append(name)
        if fault is None or not is_here:
            result = await effect()
        elif fault.is_after:
            result = await self._fail_after(fault, effect, lost)
        else:
            self._fail(fault, lost)
            result = await effect()
        self.require_alive()
        return result

    @contextmanager
    def span(self, name: str, lost: Callable[[], Exception]) -> Generator[None]:
        """As `cross`, for what is done in a block: after its end it is done."""
        self.require_alive()
        fault = self.fault
        is_here = fault is not None and len(self.steps) == fault.step
        self.steps.append(name)
        if fault is not None and is_here and not fault.is_after:
            self._fail(fault, lost)
        yield
        if fault is not None and is_here and fault.is_after:
            self._fail(fault, lost)
        self.require_alive()

    async def _fail_after(
        self, fault: Fault, effect: Callable[[], Awaitable[T]], lost: Callable[[], Exception]
    ) -> T:
        result: list[T] = []
        error: list[Exception] = []
        try:
            result.append(await effect())
        except Exception as problem:  # noqa: BLE001 - the answer, which is lost or told below
            error.append(problem)
        self._fail(fault, lost)
        if error:
            raise error[0]
        return result[0]

    def _fail(self, fault: Fault, lost: Callable[[], Exception]) -> None:
        if fault.kind == "killed":
            self.is_dead = True
            raise ProcessKilled
        if fault.kind == "lost":
            raise lost()
        if self.caller is not None:
            self.caller.cancel()

    def require_alive(self) -> None:
        """Raises `ProcessKilled`."""
        if self.is_dead:
            raise ProcessKilled


@contextmanager
def interrupted() -> Generator[None]:
    """What is done here may end with the process, or in an outage."""
    kinds = ProcessKilled, Unavailable
    with suppress(*kinds):
        try:
            yield
        except BaseExceptionGroup as group:  # of tasks that ran side by side
            if group.split(kinds)[1] is not None:
                raise


def database_lost() -> Exception:
    return Unavailable("The database cannot be used now.", retry_after_s=5)


def chain_lost() -> Exception:
    return ChainUnavailable("The chain cannot be read right now", detail="timeout")


class FaultyDatabase(Database):
    """The real database, as one process reaches it."""

    boundary: Boundary

    @override
    async def change(self, work: Work[T], *, is_sure: bool = False) -> T:
        real = super().change
        return await self.boundary.cross(
            "change", lambda: real(work, is_sure=is_sure), database_lost
        )

    @override
    async def look(self, work: Work[T]) -> T:
        real = super().look
        return await self.boundary.cross("look", lambda: real(work), database_lost)

    @override
    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        with self._threads(), self.boundary.span("read", database_lost):
            async with super().read() as connection:
                yield connection

    @override
    @asynccontextmanager
    async def write(self, use_s: float | None = None) -> AsyncGenerator[AsyncConnection]:
        with self._threads(), self.boundary.span("write", database_lost):
            async with super().write(use_s) as connection:
                yield connection

    @override
    async def close(self) -> None:
        with self._threads():
            await super().close()

    @contextmanager
    def _threads(self) -> Generator[None]:
        """What goes through the toolkit is done by a thread of its driver."""
        loop: Any = asyncio.get_running_loop()
        if not hasattr(loop, "waits_for_thread"):  # a loop of asyncio's own, whose time goes on
            yield
            return
        loop.waits_for_thread += 1
        try:
            yield
        finally:
            loop.waits_for_thread -= 1


async def open_database(url: str, boundary: Boundary) -> FaultyDatabase:
    database = await FaultyDatabase.open(url)
    assert isinstance(database, FaultyDatabase)
    database.boundary = boundary
    return database


@dataclass(slots=True)
class NodeClient:
    """Implements `chains.rpc.Rpc` over the model of a node; each endpoint by its address."""

    nodes: Callable[[str], Node]
    boundary: Boundary
    down: set[str] = field(default_factory=set[str])
    """Endpoints that do not answer."""

    async def call(
        self, network: Network, calls: Sequence[ContractCall]
    ) -> list[Returned | Reverted]:
        return await self.call_newest(network, calls)

    async def call_newest(
        self, network: Network, calls: Sequence[ContractCall]
    ) -> list[Returned | Reverted]:
        return await self._ask(network, "eth_call", lambda n: n.call([one.data for one in calls]))

    async def call_at(
        self, network: Network, calls: Sequence[ContractCall], block: int
    ) -> list[Returned | Reverted]:
        return await self._ask(
            network, "eth_call", lambda n: n.call_at([one.data for one in calls], block)
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
        return await self._ask(network, method, lambda node: node.answer(method, params))

    async def request_all(
        self, network: Network, requests: Sequence[tuple[str, Sequence[JsonValue]]]
    ) -> Sequence[JsonValue]:
        def answers(node: Node) -> list[JsonValue]:
            found: list[JsonValue] = []
            for method, params in requests:
                answer: JsonValue = None
                with suppress(Refused):
                    answer = node.answer(method, params)
                found.append(answer)
            return found

        return await self._ask(network, "+".join(name for name, _ in requests), answers)

    async def _ask(self, network: Network, name: str, ask: Callable[[Node], T]) -> T:
        async def effect() -> T:
            url = next((url for url in network.rpc_urls if url not in self.down), None)
            if url is None:
                raise chain_lost()
            node = self.nodes(url)
            node.url = url
            try:
                return ask(node)
            except Refused as refused:
                raise RpcRefused("refused", rpc_code=-32000, rpc_message=str(refused)) from None

        return await self.boundary.cross(name, effect, chain_lost)
