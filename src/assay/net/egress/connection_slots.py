"""Shares of the concurrent connections to addresses that other parties gave us."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from assay.common.costs import SERVICE, current_bearer
from assay.common.egress_budget import current_use
from assay.net.egress.domain import domain_of
from assay.net.egress.host_timeout import current_party
from assay.net.egress.request_slots import Slots, SlotShare, new_holder

VISITS = SlotShare(120, 80)
"""Requests that probe agents have connections of their own, a third of them for gates."""

CALLS = SlotShare(80, 80)
"""Requests made for callers: proxy, playground, webhooks."""

CONNECTIONS_MAX = VISITS.total + CALLS.total
"""Concurrent connections to all hosts."""

DOMAIN = SlotShare(32, 16)
"""Connections to one domain; probes and calls each have this share."""

ACCOUNT = SlotShare(8, 8)
VISIT = SlotShare(16, 16)
"""A visit sends up to six probes at once, but first asks all its services for permission."""

CALLER = SlotShare(VISITS.total, VISIT.shared)
"""All visits together that one network of callers without an account has started: a fifth of what
such visits have. Gates are not counted, nor are visits that no caller requested."""


class ConnectionSlots:
    """The shares of one client's connections."""

    def __init__(self) -> None:
        self._slots = Slots()

    @asynccontextmanager
    async def one(self, host: str, wait_s: float) -> AsyncGenerator[None]:
        """Hold one connection in the block, waiting for it at most `wait_s` seconds.

        Raises `EgressError` like `Slots.take`.
        """
        party, account = current_party(), current_use().account
        kind, all_of_kind = ("visits", VISITS) if party and party.is_visit else ("calls", CALLS)
        places = {kind: all_of_kind, f"{kind} to {domain_of(host)}": DOMAIN}
        if account:
            places[f"account {account}"] = ACCOUNT
        elif party:
            places[f"visit {id(party)}"] = VISIT
            if party.is_visit and (bearer := current_bearer()) is not SERVICE:
                places[f"caller {bearer.name}"] = CALLER
        holder = new_holder()
        await self._slots.take(places, holder, asyncio.get_running_loop().time() + wait_s)
        try:
            yield
        finally:
            self._slots.give_back(places, holder)
