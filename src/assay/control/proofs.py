"""Proves which declared services an agent's owner controls, by documents of their hosts.

Reads a document of a host, following redirects on its site.

Reads which agents a host's file names, to prioritise among the ids that point there.

However many ids there are, a host is asked once in `KEPT_S`. Source: evidence.md#budgets-of-hosts.

Extends the proof of one address to neighbouring ones, where that is justified.

A card with a usual name speaks for the addresses in its folder that it sends callers to. A payee
speaks for the documentation of the paid address. Neither does if an agent of another owner has
proven control there: a shared host belongs to no single agent. Source: ADR 0027.

DNS and the host's own file speak for a host, a card or an OpenAPI document for its own URL and
below, an x402 payee for that one service. The longest proven path wins. Source: ADR 0027.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin

from assay.common.cache import Cache
from assay.common.clock import Clock
from assay.common.egress_budget import RESERVED, egress_use
from assay.common.errors import Unavailable
from assay.common.json import JsonObject, JsonValue
from assay.control.ports import (
    ControlledEndpoint,
    ControlStore,
    LookUpUnavailable,
    ServiceReader,
    TxtRecords,
)
from assay.control.scope import ControlScope, document_scope, scope_key, scope_of
from assay.control.statements import (
    RECORD_LABEL,
    STRONGEST_FIRST,
    WELL_KNOWN,
    Proof,
    ServiceControl,
    Statement,
    only_key,
)
from assay.control.statements_in_documents import (
    BYTES_MAX,
    INTERFACES_MAX,
    NamedAgents,
    agent_name,
    interfaces_of,
    is_openapi,
    lists_path,
    names,
    payees_named,
    read_document,
    read_json,
    read_records,
    subject_key,
)
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    OutboundRequest,
)
from assay.registries.model import Subject

_REDIRECT = frozenset({301, 302, 303, 307, 308})
_NOTHING: Final = EgressResponse(0, (), b"", truncated=False, elapsed_ms=0.0)


async def fetch(http: EgressClient, url: str, redirects: int = 0) -> EgressResponse:
    """Return the reply, after at most `redirects` redirects within the same site.

    If it cannot be reached or read, the reply has status 0. Raises `LookUpUnavailable` if our own
    budget is used up.
    """
    site = scope.site if (scope := scope_of(url)) else ""
    for hops in range(redirects + 1):
        try:
            request = OutboundRequest("GET", url, {"accept": "application/json"}, is_bare=True)
            reply = await http.send(request)
        except EgressError as error:
            if error.failure is Failure.BUDGET:
                raise LookUpUnavailable from error
            return _NOTHING
        if reply.truncated or len(reply.body) > BYTES_MAX:
            return _NOTHING
        moved = _moved(url, reply, site) if hops < redirects else None
        if moved is None:
            return reply
        url = moved
    return _NOTHING


def _moved(url: str, reply: EgressResponse, site: str) -> str | None:
    """Return the target of a redirect if it stays on the site and on https, else None."""
    if reply.status not in _REDIRECT:
        return None
    try:
        target = urljoin(url, reply.header("location") or "")
    except ValueError:
        return None
    scope = scope_of(target)
    if scope is None or scope.site != site:
        return None
    if url.lower().startswith("https:") and not target.lower().startswith("https:"):
        return None
    return target


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


CARD_NAMES: Final = frozenset({"agent-card.json", "agent-card", "agent.json", "card.json", "card"})
"""Names of a folder's card; a card with another name speaks only for itself."""

OTHERS_MAX: Final = 8
"""Agents of one site that are examined; a site with more counts as shared."""


def _is_beside(one: ControlScope, other: ControlScope) -> bool:
    """Return whether both are direct children of one folder of one origin."""
    if one.origin != other.origin or one.is_exact or other.is_exact:
        return False
    return one.segments[:-1] == other.segments[:-1]


def _is_folders_card(scope: ControlScope) -> bool:
    """Return whether an address is that of its folder's card."""
    return bool(scope.segments) and scope.segments[-1].lower() in CARD_NAMES


def _is_documentation(at: ControlScope, document: JsonValue, paid: ControlScope) -> bool:
    """Return whether an OpenAPI document describes a paid address.

    It is in the same folder, or in one above and lists the address.
    """
    if _is_beside(at, paid):
        return True
    if at.is_exact or not ControlScope(at.origin, at.host, at.port, at.segments[:-1]).covers(paid):
        return False
    return lists_path(document, "/" + "/".join(paid.segments))


class Neighbours:
    """Finds other agents that the store knows on a site."""

    def __init__(self, subject: Subject, store: ControlStore | None) -> None:
        self._subject = subject
        self._store = store

    async def share(self, scope: ControlScope) -> bool:
        """Return whether another owner's agent has proven control of anything on this origin."""
        starts = tuple(scope_key(scope.origin, "", word) for word in ("at", "only"))
        try:
            return any(
                key.startswith(starts)
                for keys in await self._keys(await self._on(scope))
                for key in keys
            )
        except Unavailable:
            return True

    async def hold(self, scope: ControlScope) -> bool:
        """Return whether one has proven control of exactly this address."""
        if self._store is None:
            return False
        try:
            agents = await self._store.holders((scope.key, only_key(scope)), self._subject.key)
            return bool(await self._keys(agents))
        except Unavailable:
            return True

    async def _on(self, scope: ControlScope) -> Sequence[str]:
        return () if self._store is None else await self._store.proven_on(scope.site)

    async def _keys(self, agents: Sequence[str]) -> Sequence[frozenset[str]]:
        """Return what each of them with another owner has proven. Raises `Unavailable`."""
        others = [one for one in agents if one != self._subject.key]
        if len(others) > OTHERS_MAX:
            raise Unavailable("more agents than are looked at")
        owner = self._subject.agent.owner if self._subject.agent else ""
        pasts = [await self._store.past(one) for one in others] if self._store else []
        return [past.keys for past in pasts if past.owner != owner]


SERVICES_MAX: Final = 8
"""Endpoints examined, in the order given."""


ORIGINS_MAX: Final = 10
"""Hosts asked for their files in one visit, including those of cards' interfaces."""


@dataclass(frozen=True, slots=True)
class ControlDependencies:
    """Dependencies of control proofs. Without `txt` DNS is not used, without `store` no rivals."""

    http: EgressClient
    services: ServiceReader
    txt: TxtRecords | None = None
    store: ControlStore | None = None


async def collect_control(
    subject: Subject, endpoints: Sequence[ControlledEndpoint], needs: ControlDependencies
) -> list[JsonObject]:
    """Return a row of evidence for each endpoint. Never raises for external faults."""
    return [found.row(subject) for found in await find_control(subject, endpoints, needs)]


async def find_control(
    subject: Subject,
    endpoints: Sequence[ControlledEndpoint],
    needs: ControlDependencies,
    left_s: float | None = None,
) -> list[ServiceControl]:
    """Like `collect_control`; proofs not found within `left_s` seconds are unfinished."""
    reader = _Reader(subject, needs)

    async def find(one: ControlledEndpoint) -> ServiceControl:
        try:
            async with asyncio.timeout(left_s):
                return await reader.service(one)
        except TimeoutError:
            return ServiceControl(one.url, None, why="no_time", is_unfinished=True)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(find(one)) for one in endpoints[:SERVICES_MAX]]
    finally:
        for reading in reader.hosts.values():
            reading.cancel()
    found = [task.result() for task in tasks]
    return [await reader.documented(one, found) for one in found]


@dataclass(slots=True)
class _CollectedStatements:
    """The statements about one service, and whether every source could be read."""

    statements: list[Statement] = field(default_factory=list[Statement])
    is_whole: bool = True


class _Reader:
    """Reads each host's documents once."""

    def __init__(self, subject: Subject, needs: ControlDependencies) -> None:
        self._subject = subject
        self._needs = needs
        self.hosts: dict[str, asyncio.Task[_CollectedStatements]] = {}
        self._neighbours = Neighbours(subject, needs.store)
        self._papers: dict[str, tuple[ControlScope, JsonValue]] = {}
        """OpenAPI documents that name no agent, by service."""
        self._pay_others: set[str] = set()
        """Origins where an unpaid call demands payment to another party."""

    async def documented(
        self, one: ServiceControl, found: Sequence[ServiceControl]
    ) -> ServiceControl:
        """Return the service as proven if it documents a service whose payee is the wallet.

        Not if its host is visibly shared: another agent proved control there, or another payee is
        paid. Such a proof is lent: it does not affect a party that proves the host.
        """
        scope, paper = one.scope, self._papers.get(one.endpoint)
        if scope is None or paper is None or one.why != "no_proof" or one.is_unfinished:
            return one
        is_one = any(
            _is_documentation(*paper, other.scope)
            for other in found
            if other.proven and other.proven.proof == "x402_payee" and other.scope
        )
        if not is_one or scope.origin in self._pay_others or await self._neighbours.share(scope):
            return one
        lent = Statement("x402_payee", scope, NamedAgents(), is_ours=True, has_below=False)
        return ServiceControl(one.endpoint, scope, lent, is_lent=True)

    async def service(self, endpoint: ControlledEndpoint) -> ServiceControl:
        scope = scope_of(endpoint.url)
        if scope is None:
            return ServiceControl(endpoint.url, None, why="not_an_address")
        collected = await self._host(scope)
        is_proven = any(s.is_ours for s in collected.statements)
        documents, interfaces = await self._documents(endpoint, scope, is_proven=is_proven)
        spoken = _CollectedStatements([*collected.statements, *documents.statements])
        spoken.is_whole = collected.is_whole and documents.is_whole
        found = await self._resolve(endpoint.url, scope, spoken)
        if found.proven and not await self._covers(found.proven, interfaces):
            return ServiceControl(endpoint.url, scope, why="interface_elsewhere")
        return found

    async def _resolve(
        self, url: str, scope: ControlScope, collected: _CollectedStatements
    ) -> ServiceControl:
        spoken = [s for s in collected.statements if s.speaks_for(scope)]
        ours = [s for s in spoken if s.is_ours]
        if not ours:
            why = "names_another" if any(s.named != NamedAgents() for s in spoken) else "no_proof"
            return ServiceControl(url, scope, why=why, is_unfinished=not collected.is_whole)
        best = min(ours, key=lambda s: (-len(s.scope.segments), STRONGEST_FIRST.index(s.proof)))
        named = frozenset(name for s in ours for name in s.named.agents)
        others = [
            s for s in spoken if not s.is_ours and len(s.scope.segments) >= len(best.scope.segments)
        ]
        deeper, equal = await self._rivals(others, named, best)
        if deeper:
            return ServiceControl(url, scope, why="longer_path")
        return ServiceControl(url, scope, best, equal)

    async def _rivals(
        self, others: Sequence[Statement], named: frozenset[str], best: Statement
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return agents with proofs of their own: by a longer path than ours, and by an equal one.

        A document that names an agent proves nothing for it until an evaluation of that agent
        confirmed it: a placeholder, or an unregistered id, contradicts nothing.
        """
        store = self._needs.store
        claims = {
            (s.key, subject_key(name)): len(s.scope.segments) > len(best.scope.segments)
            for s in others
            for name in s.named.agents - named
        }
        if store is None or not claims:
            return (), ()
        try:
            keys, agents = {k for k, _ in claims}, {agent for _, agent in claims}
            proven = set(await store.proven_by(sorted(keys), sorted(agents)))
        except Unavailable:
            return (), ()
        rivals = [
            (agent, is_deeper) for (k, agent), is_deeper in claims.items() if (k, agent) in proven
        ]
        deeper = tuple(sorted({agent for agent, is_deeper in rivals if is_deeper}))
        return deeper, tuple(sorted({agent for agent, is_deeper in rivals if not is_deeper}))

    async def _covers(self, proven: Statement, interfaces: Sequence[str]) -> bool:
        """Return whether all addresses a card sends its callers to are under proven control."""
        if len(interfaces) > INTERFACES_MAX:
            return False  # Addresses that are not examined could be anyone's.
        for url in interfaces:
            scope = scope_of(url)
            if scope is None or proven.scope.covers(scope):
                continue
            is_host = not proven.scope.segments and not proven.scope.is_exact
            if is_host and proven.scope.site == scope.site:
                continue
            if await self._is_of_card(proven, scope):
                continue
            collected = await self._host(scope)
            if not any(s.is_ours and s.speaks_for(scope) for s in collected.statements):
                return False
        return True

    async def _is_of_card(self, proven: Statement, scope: ControlScope) -> bool:
        """Return whether an address is in the card's folder, and no other party's."""
        if proven.proof != "card" or not _is_folders_card(proven.scope):
            return False
        return _is_beside(proven.scope, scope) and not await self._neighbours.hold(scope)

    async def _host(self, scope: ControlScope) -> _CollectedStatements:
        if scope.origin not in self.hosts:
            if len(self.hosts) >= ORIGINS_MAX:
                return _CollectedStatements(is_whole=False)
            made = asyncio.get_running_loop().create_task(self._ask_host(scope.host_scope))
            self.hosts[scope.origin] = made
        # Services share the task: the first to run out of time must not cancel it for the others.
        return await asyncio.shield(self.hosts[scope.origin])

    async def _ask_host(self, host: ControlScope) -> _CollectedStatements:
        collected = _CollectedStatements()
        txt = self._needs.txt
        if txt is not None and host.has_name:
            try:
                records = await txt.find(f"{RECORD_LABEL}.{host.host}")
                self._add(collected, "dns", host, read_records(records))
            except LookUpUnavailable:
                collected.is_whole = False
        try:
            reply = await fetch(self._needs.http, host.origin + WELL_KNOWN, REDIRECTS_MAX)
            self._add(collected, "well_known", host, read_document(_document(reply)))
        except LookUpUnavailable:
            collected.is_whole = False
        return collected

    async def _documents(
        self, endpoint: ControlledEndpoint, scope: ControlScope, *, is_proven: bool
    ) -> tuple[_CollectedStatements, tuple[str, ...]]:
        """Return what the service's own documents say, and where a card sends its callers.

        If the host itself names the agent, no further documents are requested.
        """
        collected = _CollectedStatements()
        try:
            if endpoint.kind == "a2a":
                return collected, await self._card(collected, endpoint.url)
            if endpoint.kind == "http" and not is_proven:
                await self._openapi(collected, endpoint.url, scope)
                payees = await self._needs.services.payees(endpoint.url)
                if payees_named(payees, self._subject):
                    paid = Statement(
                        "x402_payee", scope, NamedAgents(), is_ours=True, has_below=False
                    )
                    collected.statements.append(paid)
                elif payees:
                    self._pay_others.add(scope.origin)
        except LookUpUnavailable:
            collected.is_whole = False
        return collected, ()

    async def _card(self, collected: _CollectedStatements, url: str) -> tuple[str, ...]:
        card = await self._needs.services.card(url)
        scope = document_scope(card.url) if card else None
        if card is None or scope is None:
            return ()
        self._add(collected, "card", scope, read_document(card.document))
        return interfaces_of(card.document)

    async def _openapi(
        self, collected: _CollectedStatements, url: str, scope: ControlScope
    ) -> None:
        """Read the endpoint itself if it is the document, else the one served beside it."""
        reply = await fetch(self._needs.http, url)
        document = _document(reply)
        if is_openapi(document):
            self._papers[url] = scope, document
            self._add(collected, "openapi", scope, read_document(document))
            return
        if scope.is_exact or _is_page(reply):
            return
        beside = url.partition("#")[0].rstrip("/") + "/openapi.json"
        document = _document(await fetch(self._needs.http, beside))
        if is_openapi(document) and (place := scope_of(beside)) is not None:
            self._papers[url] = place, document
            # A file of this name may be a visitor's upload: it speaks for no other address.
            self._add(collected, "openapi", scope, read_document(document), has_below=False)

    def _add(
        self,
        collected: _CollectedStatements,
        proof: Proof,
        scope: ControlScope,
        named: NamedAgents,
        *,
        has_below: bool = True,
    ) -> None:
        if named != NamedAgents():
            is_ours = names(named, self._subject)
            collected.statements.append(Statement(proof, scope, named, is_ours, has_below))


def _document(reply: EgressResponse) -> JsonValue:
    return read_json(reply.body) if reply.status == _OK else None


def _is_page(reply: EgressResponse) -> bool:
    """Return whether it is a page for people; such an endpoint is not asked again."""
    return "html" in (reply.header("content-type") or "").lower()
