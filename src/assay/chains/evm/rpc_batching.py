"""Sends requests made to one endpoint in the same turn of the event loop as one batch.

Paid calls run in step: those whose ledger entries were committed together continue together. An
exchange costs ten times the processor time of a request inside it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from assay.chains.evm.rpc_wire import RpcResponse
from assay.chains.model import ChainUnavailable
from assay.common.json import JsonValue

BATCH_MAX = 50
"""Requests in one batch, as in `rpc_calls.CALLS_PER_CHUNK`."""

Asked = tuple[str, Sequence[JsonValue]]
"""A method and its parameters."""

_Waiting = tuple[Asked, float, "asyncio.Future[RpcResponse]"]


class BatchLoader:
    """Sends requests singly or in batches; each caller gets its own answer or fault.

    If an endpoint refuses a batch size, later batches are half as large.
    """

    def __init__(
        self,
        ask: Callable[[Asked, float], Awaitable[RpcResponse]],
        ask_batch: Callable[[Sequence[Asked], float], Awaitable[list[RpcResponse] | None]],
    ) -> None:
        """Create it; `ask_batch` returns None if the endpoint refuses batches."""
        self._ask = ask
        self._ask_batch = ask_batch
        self._waiting: list[_Waiting] = []
        self._running: set[asyncio.Task[None]] = set()
        self.batch_max = BATCH_MAX

    def ask(self, asked: Asked, deadline_s: float) -> "asyncio.Future[RpcResponse]":
        """Return a future of the answer or exception; cancelling it does not affect others."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[RpcResponse] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._send)
        self._waiting.append((asked, deadline_s, answer))
        return answer

    def _send(self) -> None:
        some = [one for one in self._waiting if not one[2].cancelled()]
        self._waiting = []
        loop = asyncio.get_running_loop()
        for start in range(0, len(some), self.batch_max):
            task = loop.create_task(self._exchange(some[start : start + self.batch_max]))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _exchange(self, some: list[_Waiting]) -> None:
        try:
            answers = await self._answers([one[0] for one in some], max(one[1] for one in some))
        except BaseException as error:  # noqa: BLE001 - each asker's, who waits for it
            for _, _, waits in some:
                if not waits.done():
                    waits.set_exception(_as_fault(error))
            return
        if answers is None:
            await self._singly(some)
            return
        for answer, (_, _, waits) in zip(answers, some, strict=True):
            if not waits.done():
                waits.set_result(answer)

    async def _answers(self, asked: Sequence[Asked], deadline_s: float) -> list[RpcResponse] | None:
        if len(asked) == 1:
            return [await self._ask(asked[0], deadline_s)]
        if self.batch_max == 1:
            return None
        return await self._ask_batch(asked, deadline_s)

    async def _singly(self, some: list[_Waiting]) -> None:
        """Send concurrently after a batch was refused; smaller batches may still be accepted."""
        self.batch_max = min(self.batch_max, max(1, len(some) // 2))
        async with asyncio.TaskGroup() as group:
            for one in some:
                group.create_task(self._exchange([one]))


def _as_fault(error: BaseException) -> BaseException:
    """Turn a cancellation of ours into a fault: as it is, it would cancel the caller's task."""
    if isinstance(error, asyncio.CancelledError):
        return ChainUnavailable("The connection to the chain was closed.")
    return error
