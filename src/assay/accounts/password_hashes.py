"""argon2id in worker threads, few at a time, by turns (conventions.md#accounts; ADR 0013)."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from argon2 import PasswordHasher as Argon2
from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError

from assay.accounts.ports import TERMINAL_CLIENT, HashClient
from assay.common.errors import Unavailable
from assay.common.fair_queue import FairQueue

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 2
WAITING_MAX = 512
"""Of known callers, and of strangers, each: beyond, the network with most waiting makes room."""

WAITING_PER_CALLER = 16
"""Of one network, or of one account that is known."""


class Argon2PasswordHasher:
    """argon2id with 19 MiB, 2 passes, 1 lane. Source: OWASP Password Storage Cheat Sheet."""

    def __init__(self) -> None:
        self._argon2 = Argon2(time_cost=2, memory_cost=19 * 1024, parallelism=1)
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="argon2")
        self._queue = FairQueue(AT_ONCE, WAITING_MAX, WAITING_PER_CALLER)
        self._nobody: str | None = None

    async def hash(self, password: str, client: HashClient = TERMINAL_CLIENT) -> str:
        return await self._run(client, self._argon2.hash, password)

    async def verify(
        self, password_hash: str | None, password: str, client: HashClient = TERMINAL_CLIENT
    ) -> bool:
        if password_hash is None:
            await self._run(client, self._check, await self._hash_of_nobody(client), password)
            return False
        return await self._run(client, self._check, password_hash, password)

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _hash_of_nobody(self, client: HashClient) -> str:
        """A hash no account has, so that an unknown e-mail costs what a wrong password does."""
        if self._nobody is None:
            self._nobody = await self._run(client, self._argon2.hash, "nobody has this password")
        return self._nobody

    def _check(self, password_hash: str, password: str) -> bool:
        try:
            return self._argon2.verify(password_hash, password)
        except VerifyMismatchError:
            return False
        except (VerificationError, InvalidHashError) as error:
            raise Unavailable(
                "Passwords cannot be checked now.", detail=repr(error), retry_after_s=30
            ) from error

    async def _run(
        self, client: HashClient, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        turn = self._queue.slot(client.caller, is_known=client.is_known, network=client.network)
        async with turn:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, partial(work, *args, **kwargs))
