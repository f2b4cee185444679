"""Waiting until something is so: asked again and again, however busy the machine."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

from tests.support.starting import HUNG_S

T = TypeVar("T")

FIRST_S, LONGEST_S = 0.005, 0.1
"""Between two looks: each wait is half as long again as the one before."""


def eventually(found: Callable[[], T], is_so: Callable[[T], object] = bool) -> T:
    """What is found, once it is so; a thread's or another process's work."""
    for wait_s in _waits():
        if is_so(last := found()):
            return last
        time.sleep(wait_s)
    raise AssertionError(f"it never was so; at last: {found()!r}")


async def eventually_here(found: Callable[[], T], is_so: Callable[[T], object] = bool) -> T:
    """The same of work on this event loop."""
    for wait_s in _waits():
        if is_so(last := found()):
            return last
        await asyncio.sleep(wait_s)
    raise AssertionError(f"it never was so; at last: {found()!r}")


async def never() -> NoReturn:
    """Hang until this is cancelled, as what answers nobody does."""
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


def _waits() -> Iterator[float]:
    deadline, wait_s = time.monotonic() + HUNG_S, FIRST_S
    while time.monotonic() < deadline:
        yield wait_s
        wait_s = min(LONGEST_S, wait_s * 1.5)
