"""Measures the time a request waits for this service separately from the host's time.

Before it is sent, a request may wait for our resources: in a queue, for a look-up thread, for a
connection. That time never counts as the host's. Source: ADR 0016.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar

BLAMED_FROM_S = 1.0
"""A visit that waited this long for us and did not finish says nothing about the agent. Seconds,
summed over its requests."""


class OwnWaits:
    """The time that the requests of one block waited for this service.

    The outermost block is the party that its requests are made for: when they wait for one another,
    that is their own doing and not counted.
    """

    def __init__(self, *, is_visit: bool) -> None:
        self.is_visit = is_visit
        """Whether the requests probe an agent, and are not made for a caller."""
        self._ended_s = 0.0
        self._open = 0
        self._open_since_s = 0.0

    @property
    def waited_s(self) -> float:
        """Return the seconds summed over all waits, including those in progress."""
        now_s = asyncio.get_running_loop().time()
        return self._ended_s + self._open * now_s - self._open_since_s

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Count the time in the block as a wait of this party."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        self._open += 1
        self._open_since_s += began_s
        try:
            yield
        finally:
            self._open -= 1
            self._open_since_s = self._open_since_s - began_s if self._open else 0.0
            self._ended_s += loop.time() - began_s


_blocks: ContextVar[tuple[OwnWaits, ...]] = ContextVar("assay_own_waits", default=())
_timeouts: ContextVar[tuple[asyncio.Timeout, ...]] = ContextVar("assay_host_timeouts", default=())
# Context variables, not arguments: client libraries and a connection pool lie between the code that
# counts and the code that waits. A task inherits both from the task that starts it.


def current_party() -> OwnWaits | None:
    """Return the outermost block that this task runs in."""
    return next(iter(_blocks.get()), None)


@contextmanager
def count_own_waits(*, is_visit: bool = False) -> Generator[OwnWaits]:
    """Count the time that requests in the block, and in tasks it starts, wait for us."""
    made = OwnWaits(is_visit=is_visit)
    token = _blocks.set((*_blocks.get(), made))
    try:
        yield made
    finally:
        _blocks.reset(token)


@contextmanager
def own_wait() -> Generator[None]:
    """Count the time in the block as ours, and pause every `host_timeout`."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    paused = [(t, t.when()) for t in _timeouts.get() if not t.expired()]
    for timeout, _ in paused:
        timeout.reschedule(None)
    with ExitStack() as stack:
        for block in _blocks.get():
            stack.enter_context(block.waiting())
        try:
            yield
        finally:
            waited_s = loop.time() - began_s
            for timeout, when in paused:
                timeout.reschedule(None if when is None else when + waited_s)


@asynccontextmanager
async def host_timeout(seconds: float | None) -> AsyncGenerator[None]:
    """Like `asyncio.timeout`, but pauses during own waits. For one task that starts no others."""
    async with asyncio.timeout(seconds) as timeout:
        token = _timeouts.set((*_timeouts.get(), timeout))
        try:
            yield
        finally:
            _timeouts.reset(token)
