"""Background work that is neither lost nor silent, and work that is done once a loop turn."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
U = TypeVar("U")


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Do `work` to its end, even if the caller is cancelled meanwhile.

    Use it for writing whose outcome must be known; `work` must bound its own time. The caller sees
    a cancellation at its next wait.
    """
    task = asyncio.get_running_loop().create_task(work)
    is_cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)  # in half the time of `asyncio.wait`
        except asyncio.CancelledError:
            is_cancelled |= not task.cancelled()
        except Exception:  # noqa: BLE001 - the work's own, raised below
            break
    current = asyncio.current_task()
    if is_cancelled and current is not None:
        current.cancel()
    return task.result()


async def both(one: Coroutine[Any, Any, T], other: Coroutine[Any, Any, U]) -> tuple[T, U]:
    """Do both at once; if one fails, cancel the other and raise the failure unchanged.

    `one` begins first: if it fails before it waits, `other` never begins.
    """
    try:
        async with asyncio.TaskGroup() as group:
            second = group.create_task(other)
            first = await one
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return first, second.result()


async def all_results(works: Iterable[Awaitable[T]]) -> list[T | Exception]:
    """Do all at once, begun in order; return what each returned or raised, in the same order."""

    async def result_of(work: Awaitable[T]) -> T | Exception:
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - a value: a group would end the others for it
            return error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(result_of(work)) for work in works]
    return [task.result() for task in tasks]


class Tasks:
    """Keeps every spawned task until it ends, and reports tasks that fail."""

    def __init__(self, on_failure: Callable[[str, BaseException], None]) -> None:
        self._running: set[asyncio.Task[Any]] = set()
        self._on_failure = on_failure

    def spawn(self, name: str, work: Coroutine[Any, Any, object]) -> asyncio.Task[Any]:
        """Start `work` now; if it fails, call `on_failure` with its name."""
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def drain(self, grace_s: float) -> None:
        """Wait up to `grace_s` seconds for running tasks, then cancel the others and await them."""
        if self._running:
            await asyncio.wait(self._running, timeout=grace_s)
        leftover = list(self._running)
        for task in leftover:
            task.cancel()
        if leftover:
            await asyncio.wait(leftover)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(task.get_name(), error)


class Sender(Protocol):
    """Something that has data to send."""

    def send(self) -> None:
        """Write the data; do nothing if there is none, or if the connection is gone."""
        ...


class WriteCoalescer:
    """Sends all data of one event loop turn at its end, in the order of the requests.

    A peer that receives a single packet has read it, and sleeps, before the next one comes. Each
    packet then costs an interrupt of another processor, which costs more than a write. In a burst
    only the first packet wakes anybody.
    """

    def __init__(self) -> None:
        self._waiting: list[Sender] = []

    def add(self, sender: Sender) -> None:
        """Let the sender send when the events of this turn have been handled."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._send)
        self._waiting.append(sender)

    def _send(self) -> None:
        waiting, self._waiting = iter(self._waiting), []
        try:
            for sender in waiting:
                sender.send()
        finally:  # one that raises does not stop the others
            for sender in waiting:
                self.add(sender)
