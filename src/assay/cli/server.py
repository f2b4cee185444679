"""Uvicorn servers within the process's own loop."""

import asyncio
import signal
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from typing_extensions import override


class Server(uvicorn.Server):
    """A server that says when it answers and when it has ended."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket) -> None:
        super().__init__(config)
        self._listener = listener
        self._ended = asyncio.Event()

    @contextmanager
    @override
    def capture_signals(self) -> Generator[None]:
        """Uvicorn's own handling would end the process before it has written down its counts."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def wait_started(self) -> None:
        """Returns when requests are answered."""
        while not self.started and not self._ended.is_set():  # noqa: ASYNC110 - uvicorn sets a flag
            await asyncio.sleep(0.005)

    async def wait_closed(self) -> None:
        """Returns when the server has drained and closed."""
        await self._ended.wait()

    async def run_to_the_end(self) -> None:
        """Serve; whatever happens, `wait_closed` returns afterwards."""
        try:
            await self.serve(sockets=[self._listener])
        finally:
            self._ended.set()


class SecondServer(Server):
    """A server beside another one, which is told of signals."""

    @contextmanager
    @override
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def running(server: Server) -> AsyncGenerator[Server]:
    """The server, answering requests; drained and closed at the end."""
    async with asyncio.TaskGroup() as group:
        group.create_task(server.run_to_the_end())
        await server.wait_started()
        try:
            yield server
        finally:
            server.should_exit = True
