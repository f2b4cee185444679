"""An event loop without a machine: time is virtual, and a seed says which ready callback goes on.

Nothing waits: when nothing is ready, time jumps to the next timer. Whatever needs a socket, a
thread or a signal is not there and raises `NotImplementedError`.
"""

import asyncio
import heapq
from asyncio import events
from collections.abc import Callable, Coroutine
from contextvars import Context
from random import Random
from typing import Any, TypeVar

from typing_extensions import override

T = TypeVar("T")


class NothingLeft(Exception):
    """Everybody waits for somebody, and no timer is set."""


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Runs one coroutine, and all that it begins, to its end."""

    def __init__(self, random: Random, *, in_order: bool) -> None:
        """`in_order`: first come, first served, as asyncio's own loop has it."""
        self._pick = None if in_order else random.random
        self._ready: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._now_s = 0.0
        self._timers_set = 0
        self.steps = 0
        self.unhandled: list[str] = []

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        events._set_running_loop(self)
        try:
            task = self.create_task(main)
            while not task.done():
                self._step()
            return task.result()
        finally:
            events._set_running_loop(None)

    def _step(self) -> None:
        ready = self._ready
        if not ready:
            self._jump()
            return
        count = len(ready)
        if self._pick is None:
            handle = ready.pop(0)
        else:
            place = int(self._pick() * count) if count > 1 else 0
            handle, ready[place] = ready[place], ready[-1]
            ready.pop()
        if not handle._cancelled:
            self.steps += 1
            handle._run()

    def _jump(self) -> None:
        """To the next moment that somebody waits for."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not timers:
            raise NothingLeft
        self._now_s = max(self._now_s, timers[0][0])
        while timers and timers[0][0] <= self._now_s:
            self._ready.append(heapq.heappop(timers)[2])

    @override
    def time(self) -> float:
        return self._now_s

    @override
    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    @override
    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    @override
    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self._timers_set += 1
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, self._timers_set, handle))
        return handle

    @override
    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    @override
    def create_task(
        self,
        coro: Any,
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name or "", context=context)

    @override
    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.unhandled.append(f"{context.get('message')}: {context.get('exception')!r}")

    @override
    def get_debug(self) -> bool:
        return False

    @override
    def is_running(self) -> bool:
        return True

    @override
    def is_closed(self) -> bool:
        return False

    def _timer_handle_cancelled(self, _handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are passed over when their time comes."""
