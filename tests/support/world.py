"""The demo's world for end-to-end tests."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from assay_demo.world import World


@contextmanager
def live_world() -> Iterator[World]:
    """Runs in a loop of its own thread, so that every test may use its own loop."""
    started: list[World] = []
    failed: list[BaseException] = []
    ready, over = threading.Event(), threading.Event()

    async def live() -> None:
        async with World.start() as running:
            started.append(running)
            ready.set()
            await asyncio.to_thread(over.wait)

    def run() -> None:
        try:
            asyncio.run(live())
        except BaseException as error:  # noqa: BLE001 - handed to the test
            failed.append(error)
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    if failed:
        raise failed[0]
    try:
        yield started[0]
    finally:
        over.set()
        thread.join(30)
