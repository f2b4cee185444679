"""Questions and answers between the supervisor of serving processes and each of them.

Both ends of a socket pair ask and answer in JSON, one message a line. A worker's end tells it at
once if the supervisor is gone, and the reverse.
"""

import asyncio
import hashlib
import json
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from typing import Any, Final, Self, TypeAlias

from assay.common.errors import Unavailable
from assay.common.quota_lease import Grant, WindowRequest
from assay.common.quota_window import LocalWindow

LINE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of one message: a page of metrics has some 50 KB."""

COUNT_S: Final = 0.75
"""Seconds that a worker waits for units of a limit: a slice is useless after a second."""

Answer: TypeAlias = Callable[[Any], Awaitable[object]]
"""Answers a question of one name with something that JSON can hold."""


class LinkLost(Exception):
    """The other process is gone, or could not answer."""


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
            raise LinkLost(f"no answer within {limit_s:g} s") from None
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
