"""Questions and answers between the supervisor of serving processes and each of them, the workers.

Both ends of a socket pair ask and answer in JSON, one message a line. A worker's end tells it at
once if the supervisor is gone, and the reverse.
"""

import asyncio
import hashlib
import json
import os
import signal
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import astuple
from typing import Any, Final, Self, TypeAlias

from assay.app import App
from assay.cli.command import complain
from assay.cli.ops import Server, readiness_shown
from assay.common.errors import Unavailable
from assay.common.quota_lease import Grant, LocalWindow, WindowRequest
from assay.common.tasks import Tasks

LINE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of one message: a page of metrics has some 50 KB."""

COUNT_S: Final = 0.75
"""Seconds that a worker waits for units of a limit: a slice is useless after a second."""

Answer: TypeAlias = Callable[[Any], Awaitable[object]]
"""Answers a question of one name with something that JSON can hold."""


class LinkLost(RuntimeError):
    """The other process is gone, or could not answer."""


class LinkSilent(LinkLost):
    """The other process is there and did not answer in time."""


class Link:
    """One end; `run` has to run for it to ask or answer anything."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answers: Mapping[str, Answer],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._answers = answers
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._asked = 0

    @classmethod
    async def open(cls, end: socket.socket, answers: Mapping[str, Answer]) -> Self:
        """Return the link over one end of a socket pair."""
        reader, writer = await asyncio.open_connection(sock=end, limit=LINE_BYTES_MAX)
        return cls(reader, writer, answers)

    async def run(self) -> None:
        """Read and answer until the other process is gone."""
        try:
            async with asyncio.TaskGroup() as group:
                while line := await self._line():
                    self._read(json.loads(line), group)
        finally:
            self._writer.close()
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(LinkLost("the other process is gone"))

    async def ask(self, name: str, of: object, limit_s: float) -> Any:  # noqa: ANN401 - JSON
        """Return the other process's answer. Raises `LinkLost`, at the latest after `limit_s`."""
        self._asked += 1
        number, answered = self._asked, asyncio.get_running_loop().create_future()
        self._waiting[number] = answered
        try:
            self._send({"id": number, "ask": name, "of": of})
            async with asyncio.timeout(limit_s):
                return await answered
        except TimeoutError:
            raise LinkSilent(f"no answer within {limit_s:g} s") from None
        finally:
            del self._waiting[number]

    def say(self, name: str, of: object = None) -> None:
        """Ask without waiting for the answer."""
        with suppress(LinkLost):
            self._send({"id": 0, "ask": name, "of": of})

    async def _line(self) -> bytes:
        try:
            return await self._reader.readline()
        except (OSError, ValueError):  # reset, or longer than any message of ours
            return b""

    def _read(self, message: Any, group: asyncio.TaskGroup) -> None:  # noqa: ANN401 - JSON
        if "ask" in message:
            group.create_task(self._answer(message))
        elif (waiting := self._waiting.get(message["id"])) is not None and not waiting.done():
            if "failed" in message:
                waiting.set_exception(LinkLost(message["failed"]))
            else:
                waiting.set_result(message["is"])

    async def _answer(self, message: Any) -> None:  # noqa: ANN401 - JSON
        number = message["id"]
        try:
            said = {"id": number, "is": await self._answers[message["ask"]](message["of"])}
        except Exception as error:  # noqa: BLE001 - the asker's to report
            said = {"id": number, "failed": repr(error)[:300]}
        if number:
            with suppress(LinkLost):
                self._send(said)

    def _send(self, message: object) -> None:
        if self._writer.is_closing():
            raise LinkLost("the other process is gone")
        self._writer.write(json.dumps(message).encode() + b"\n")


class SupervisorWindow:
    """Counts of the supervisor, for its workers; implements `common.quota_lease.SharedWindow`."""

    place = "the supervisor"

    def __init__(self, link: Link) -> None:
        self._link = link

    async def ask(self, asks: Sequence[WindowRequest]) -> Sequence[Grant]:
        sent = [(_key(ask.key), *astuple(ask)[1:]) for ask in asks]
        try:
            return [Grant(*grant) for grant in await self._link.ask("count", sent, COUNT_S)]
        except LinkLost as error:
            raise Unavailable(
                "The shared state cannot be used now.", detail=str(error), retry_after_s=1
            ) from error

    async def check(self) -> None:
        await self.ask([])


def counting(window: LocalWindow) -> Answer:
    """Return what answers `SupervisorWindow`."""

    async def count(sent: Sequence[Sequence[Any]]) -> object:
        return [astuple(grant) for grant in await window.ask([WindowRequest(*one) for one in sent])]

    return count


def _key(key: str) -> str:
    """Return a key of bounded length: callers choose parts of names."""
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


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

        async def alive(_: object) -> bool:
            return True

        async def stop(_: object) -> None:
            server.stop()

        async def stop_now(_: object) -> None:
            server.stop_now()

        async def leave(_: object) -> None:
            app.log.info("worker leaves", pid=os.getpid())
            await server.leave()

        self._answers.update({"alive": alive, "readiness": readiness})
        self._answers.update({"stop": stop, "stop now": stop_now, "leave": leave})

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
