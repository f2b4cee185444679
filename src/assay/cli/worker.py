"""The serving process of a supervisor: takes its orders, and answers its questions."""

import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from assay.app import App
from assay.cli.command import complain
from assay.cli.ops import Server, readiness_shown
from assay.cli.worker_link import Answer, Link
from assay.common.tasks import Tasks

READY_S: Final = 60.0
"""Seconds for which a supervisor may be too busy to hear that a worker serves."""


class Orders:
    """What the supervisor says; until `take`, a worker without a supervisor ends at once."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self._answers = answers
        self._server: Server | None = None

    def take(self, server: Server, app: App) -> None:
        """Let the supervisor stop this server, and ask about it."""
        self._server = server
        if app.settings.ops_bind is not None:
            from assay.app.metrics import metrics_page  # noqa: PLC0415 - heavy, and seldom set

            page = metrics_page(app)

            async def metrics(_: object) -> str:
                return (await page.text()).decode()

            self._answers["metrics"] = metrics

        async def readiness(_: object) -> object:
            return await readiness_shown(app)

        async def stop(_: object) -> None:
            server.stop()

        async def stop_now(_: object) -> None:
            server.stop_now()

        async def leave(_: object) -> None:
            app.log.info("worker leaves", pid=os.getpid())
            await server.leave()

        self._answers.update(
            {"readiness": readiness, "stop": stop, "stop now": stop_now, "leave": leave}
        )

    async def report(self, link: Link) -> None:
        """Leave the last metrics with the supervisor, which adds up what workers have counted."""
        if "metrics" in self._answers:
            link.say("last metrics", await self._answers["metrics"](None))

    async def follow(self, link: Link) -> None:
        """Take orders; if the supervisor is gone, leave, so that another one can take its place."""
        await link.run()
        if self._server is None:
            signal.raise_signal(signal.SIGTERM)
        else:
            await self._server.leave()


@asynccontextmanager
async def linked(link: Link, answers: dict[str, Answer]) -> AsyncGenerator[Orders]:
    """Yield the orders of a supervisor, taken until the block ends."""
    orders = Orders(answers)
    tasks = Tasks(lambda _, error: complain(f"the supervisor is not followed: {error!r}"))
    tasks.spawn("supervisor", orders.follow(link))
    try:
        yield orders
    finally:
        await tasks.drain(0)
