"""Time that a request waits for this service, told apart from the time its host takes.

A request may wait for a place of ours before it is sent: in a queue, for a thread that looks up
names, for a connection. That time is never the host's. Source: decision 0016.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar

BLAMED_FROM_S = 1.0
"""A visit that waited for us so long and did not finish says nothing about the agent. Seconds,
summed over its requests."""


class OwnWaits:
    """What the requests of one block waited for this service.

    The outermost block is the party its requests are made for: what they wait for one another is
    their own doing and not counted.
    """

    def __init__(self, *, is_visit: bool) -> None:
        self.is_visit = is_visit
        """Whether the requests judge an agent, and are not made for a caller."""
        self._ended_s = 0.0
        self._open = 0
        self._open_since_s = 0.0

    @property
    def waited_s(self) -> float:
        """Seconds, summed over all waits, those among them that go on."""
        now_s = asyncio.get_running_loop().time()
        return self._ended_s + self._open * now_s - self._open_since_s

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Somebody of the block waits."""
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
# Not arguments: between those who count and those who wait lie client libraries and a connection
# pool. Tasks inherit both from the task that starts them.


def current_party() -> OwnWaits | None:
    """The outermost block this task runs in."""
    return next(iter(_blocks.get()), None)


@contextmanager
def count_own_waits(*, is_visit: bool = False) -> Generator[OwnWaits]:
    """Count what requests in the block, and in tasks it starts, wait for this service."""
    made = OwnWaits(is_visit=is_visit)
    token = _blocks.set((*_blocks.get(), made))
    try:
        yield made
    finally:
        _blocks.reset(token)


@contextmanager
def own_wait() -> Generator[None]:
    """What passes in the block is our time: it is counted, and no `host_timeout` goes on."""
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
    """As `asyncio.timeout`, but only the host's time counts. For one task: it starts no others."""
    async with asyncio.timeout(seconds) as timeout:
        token = _timeouts.set((*_timeouts.get(), timeout))
        try:
            yield
        finally:
            _timeouts.reset(token)
