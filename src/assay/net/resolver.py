"""Resolves names to addresses with the system's resolver, in a thread pool of its own.

A look-up cannot be cancelled: it occupies its thread until the system gives up. So threads are
shared out by domain and account, and a look-up counts until its thread is really free.
"""

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from assay.common.egress_budget import current_use
from assay.net.egress.request_slots import Holder, Slots, SlotShare, current_party, new_holder
from assay.net.egress.url import domain_of

LOOKUPS_MAX = 64
"""Threads of one resolver. A separate pool keeps slow names of hostile agents away from the threads
that hash passwords."""

LOOKUPS = SlotShare(LOOKUPS_MAX, LOOKUPS_MAX // 2)
"""Half of them are reserved for gates, if there are any."""

DOMAIN = SlotShare(4, 2)
"""Look-ups of names of one domain."""

ACCOUNT = SlotShare(2, 2)
VISIT = SlotShare(8, 8)
"""A visit sends up to six probes at once, but first asks all its services for permission."""

LOOKUP_S = 3.0
"""Longest time a request waits for a look-up."""

WAIT_S = 3.0
"""Longest time a look-up waits for a thread."""


class NameResolver(Protocol):
    """Resolves names to addresses; called once for each connection."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Return every address of `host`, best first. Raises `OSError` when there is none.

        Raises `EgressError` (`BUDGET`) when no look-up is possible now.
        """
        ...


class SystemResolver:
    """Resolves with `getaddrinfo`: the hosts file, then the configured name servers.

    All requests for a name that is being looked up share one answer.
    """

    def __init__(self, lookups: SlotShare | None = LOOKUPS) -> None:
        """Create it; without `lookups` there are no shares, for names that no stranger chooses."""
        self._lookups = lookups
        self._slots = Slots()
        self._under_way: dict[tuple[str, int], asyncio.Future[list[str]]] = {}
        self._threads = ThreadPoolExecutor(LOOKUPS_MAX, thread_name_prefix="resolve")

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        asked = (host, port)
        looking_up = self._under_way.get(asked)
        if looking_up is None:
            places, holder = self._places(host), new_holder()
            ends_s = asyncio.get_running_loop().time() + WAIT_S
            await self._slots.take(places, holder, ends_s)
            looking_up = self._under_way.get(asked)
            if looking_up is None:
                looking_up = self._look_up(asked, places, holder)
            else:  # Another request started the look-up meanwhile.
                self._slots.give_back(places, holder)
        async with asyncio.timeout(LOOKUP_S):
            return tuple(dict.fromkeys(await asyncio.shield(looking_up)))

    def close(self) -> None:
        """Let the threads end; drop look-ups that still wait for one."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _places(self, host: str) -> dict[str, SlotShare]:
        if self._lookups is None:
            return {}
        places = {"all": self._lookups, f"domain {domain_of(host)}": DOMAIN}
        account, party = current_use().account, current_party()
        if account:
            places[f"account {account}"] = ACCOUNT
        elif party:
            places[f"visit {id(party)}"] = VISIT
        return places

    def _look_up(
        self, asked: tuple[str, int], places: dict[str, SlotShare], holder: Holder
    ) -> asyncio.Future[list[str]]:
        loop = asyncio.get_running_loop()
        made = loop.run_in_executor(self._threads, _look_up, *asked)
        self._under_way[asked] = made

        def ended(done: asyncio.Future[list[str]]) -> None:
            if not done.cancelled():
                done.exception()  # The request may have been cancelled.
            del self._under_way[asked]
            self._slots.give_back(places, holder)

        made.add_done_callback(ended)
        return made


def _look_up(host: str, port: int) -> list[str]:
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # The idna codec refuses what the resolver would have to.
        raise OSError(str(error)) from error
    return [str(row[4][0]) for row in rows]
