"""Reads which agents a host's file names, to prioritise among the ids that point there.

However many ids there are, a host is asked once in `KEPT_S`. Source: evidence.md#budgets-of-hosts.
"""

import asyncio
from typing import Final

from assay.common.cache import Cache
from assay.common.clock import Clock
from assay.common.egress_budget import RESERVED, egress_use
from assay.control.document_reader import fetch
from assay.control.ports import LookUpUnavailable
from assay.control.publish import WELL_KNOWN
from assay.control.scope import scope_of
from assay.control.statements_in_documents import NamedAgents, agent_name, read_document, read_json
from assay.net.egress.ports import EgressClient
from assay.registries.subject import Subject

KEPT_S: Final = 3 * 3600.0
"""How long a file's content is cached: eight requests to a host a day, however many ask."""

NAMES_KEPT: Final = 200_000
"""Agents and wallets cached of all files together: about 40 MiB."""

HOSTS_MAX: Final = 3
"""Hosts of one agent whose files are read."""

REDIRECTS_MAX: Final = 2
READ_S: Final = 1.0
"""Longest wait for a file; a caller may be waiting for the evaluation, too."""

_OK = 200


class HostFiles:
    """Reads the files, and caches the agents and wallets they name."""

    def __init__(self, http: EgressClient, clock: Clock) -> None:
        self._http = http
        self._cache: Cache[NamedAgents] = Cache(clock, KEPT_S, NAMES_KEPT, _weight)

    async def name(self, subject: Subject) -> bool:
        """Return whether a host of its services names the agent or its registered wallet.

        Not its owner: a token can be sent to anyone. False if the file could not be read. Never
        raises.
        """
        agent = subject.agent
        services = agent.registration.services if agent and agent.registration else ()
        scopes = (scope_of(service.endpoint) for service in services)
        hosts = list(dict.fromkeys(scope.origin for scope in scopes if scope is not None))
        own = agent_name(subject.network.agent_registry, subject.agent_id)
        wallet = (agent.wallet or "").lower() if agent else ""
        for origin in hosts[:HOSTS_MAX]:
            try:
                async with asyncio.timeout(READ_S):
                    named = await self._cache.get(origin, lambda at=origin: self._read(at))
            except (LookUpUnavailable, TimeoutError):
                continue
            if own in named.agents or wallet in named.wallets:
                return True
        return False

    async def _read(self, origin: str) -> NamedAgents:
        # Counted for no party: neither in the budget that floods of ids use up, nor as a party that
        # competes with an agent being visited, which would halve that visit's budget.
        with egress_use(RESERVED):
            reply = await fetch(self._http, origin + WELL_KNOWN, REDIRECTS_MAX)
        return read_document(read_json(reply.body)) if reply.status == _OK else NamedAgents()


def _weight(named: NamedAgents) -> int:
    return 1 + len(named.agents) + len(named.wallets)
