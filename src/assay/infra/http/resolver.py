"""Names to addresses, by the system's resolver, in threads of its own."""

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

RESOLVER_THREADS = 16
"""A look-up that hangs holds its thread until the system gives up (seconds). A pool of its own
keeps slow names of hostile agents away from the threads that hash passwords."""


class Resolver(Protocol):
    """Whatever turns a name into addresses; asked once for each connection."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Every address of `host`, best first. Raises `OSError` when there is none."""
        ...


class SystemResolver:
    """`getaddrinfo`: the hosts file, then the configured name servers."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="resolve")

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _look_up, host, port)
        return tuple(dict.fromkeys(found))

    def close(self) -> None:
        """Let the threads end; look-ups that still wait for one are dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> list[str]:
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # the idna codec refuses what the resolver would have to
        raise OSError(str(error)) from error
    return [str(row[4][0]) for row in rows]
