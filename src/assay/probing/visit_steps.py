"""The steps of a visit around its probes: services that may be visited, rounds, and control.

Decides which services may be visited, by their sites' robots.txt, kept for a day.

Services of a visit that are closed to callers without a credential.

Reads for control proofs what a visit offers: its budget, conversations and 402s.

Runs the probes of one visit in two rounds: first the possibly critical ones.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from assay.common.json import JsonObject
from assay.control.ports import Card, LookUpUnavailable, Tool
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.probing.consent import opted_out, refused_prefixes
from assay.probing.deposited_access import NOT_ENTERED
from assay.probing.function.service import function_rows
from assay.probing.ports import (
    AgentCallFailed,
    BudgetExhausted,
    Probe,
    ProbeSession,
    Severity,
    VisitedService,
)
from assay.probing.probe_client import ask, read, unpaid
from assay.probing.session import VisitHttp, odd_requests
from assay.probing.unannounced import ANNOUNCED_ONLY, UnannouncedVisits


async def allowed(
    declared: list[VisitedService],
    http: VisitHttp,
    visits: UnannouncedVisits | None,
    *,
    announced: bool,
) -> tuple[tuple[VisitedService, ...], tuple[VisitedService, ...]]:
    """Return the services that may be visited, and those whose site asks us not to.

    An unannounced visit was planned by what an announced one read.
    """
    if not announced:
        return tuple(declared), ()
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(wants_none(v, http, visits)) for v in declared]
    answers = [task.result() for task in asked]
    pairs = list(zip(declared, answers, strict=True))
    return tuple(v for v, no in pairs if not no), tuple(v for v, no in pairs if no)


async def wants_none(
    visited: VisitedService, http: VisitHttp, visits: UnannouncedVisits | None
) -> bool:
    """Return whether the service's robots.txt forbids visits; it is fetched, and kept for a day."""
    endpoint = visited.service.endpoint
    try:
        if await opted_out(endpoint, http):
            return True
        refused = await refused_prefixes(endpoint, http)  # The same request, sent once.
    except (BudgetExhausted, EgressError):
        return False
    if visits is not None and refused is not None:
        await visits.keep_robots(endpoint, refused)
    return False


def entered_row(http: VisitHttp, declared: Sequence[VisitedService]) -> JsonObject:
    """Return the member `entry`; absent if no service was closed."""
    row = http.entry.row([v.service.endpoint for v in declared])
    return {"entry": row} if row else {}


def deposited_for(visit: ProbeSession) -> frozenset[str]:
    """Return the services of the visit for which a credential was deposited."""
    if not isinstance(visit.http, VisitHttp):
        return frozenset()
    return frozenset(visit.http.entry.deposited([v.service.endpoint for v in visit.services]))


def closed_to(
    visit: ProbeSession, transcripts: Sequence[JsonObject], deposited: frozenset[str]
) -> Sequence[str]:
    """Return those of them that are closed to callers without a credential."""
    if not isinstance(visit.http, VisitHttp):
        return ()
    refusing = frozenset(visit.http.entry.closed(sorted(deposited)))
    rows = [row for row in function_rows(transcripts) if row["state"] != "functional"]
    named = {str(row["service"]) for row in rows}
    return tuple(
        v.service.endpoint for v in visit.services if v.service.endpoint in refusing & named
    )


def without_entry(transcript: JsonObject, closed: Sequence[str]) -> JsonObject:
    """Return the transcript; that of a closed service says that it was not entered."""
    is_closed = transcript.get("service") in closed
    return {**transcript, "end": NOT_ENTERED} if is_closed else transcript


TOOLS_MAX = 200
TOOL_CHARS_MAX = 4_000


@dataclass(frozen=True, slots=True)
class VisitReader:
    """`net.egress.ports.EgressClient` and `control.ports.ServiceReader` over one visit."""

    visit: ProbeSession

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        """Send like `EgressClient.send`.

        Beyond the visit's budget it fails with `Failure.BUDGET`.
        """
        try:
            return await self.visit.http.send(request, limits)
        except BudgetExhausted as error:
            raise EgressError(Failure.BUDGET, "the visit's budget is used up") from error

    async def card(self, endpoint: str) -> Card | None:
        """Implement `ServiceReader.card`; shares the probes' conversation."""
        try:
            async with self.visit.dialers.a2a(endpoint, self.visit.http) as conversation:
                return Card(conversation.card_url, conversation.card)
        except AgentCallFailed:
            return None
        except BudgetExhausted as error:
            raise LookUpUnavailable from error

    async def tools(self, endpoint: str) -> Sequence[Tool]:
        """Implement `ServiceReader.tools`."""
        try:
            async with self.visit.dialers.mcp(endpoint, self.visit.http) as conversation:
                listed = await conversation.list_tools()
        except AgentCallFailed:
            return ()
        except BudgetExhausted as error:
            raise LookUpUnavailable from error
        return [Tool(t.name[:200], t.description[:TOOL_CHARS_MAX]) for t in listed[:TOOLS_MAX]]

    async def payees(self, endpoint: str) -> frozenset[str]:
        """Implement `ServiceReader.payees`; only if every offer can be read."""
        try:
            sells = self.visit.spoken.get(endpoint) == "x402"
            asked = unpaid(self.visit, endpoint) if sells else self._get(endpoint)
            found = read(await asked)
        except BudgetExhausted as error:
            raise LookUpUnavailable from error
        if found is None or not found.is_valid:
            return frozenset()
        return frozenset(offer.pay_to for offer in found.offers)

    async def _get(self, url: str) -> EgressResponse | Failure:
        return await ask(self.visit, OutboundRequest("GET", url, {}))


AT_ONCE: Final = 6
"""Concurrent probes: a visit must not look like a flood."""

CRITICAL_ALONE: Final = 0.5
"""Part of the probes' time in which only critical ones run, unless they end earlier."""

UNFINISHED: Final = "unfinished"

RoundResult = dict[str, JsonObject | str | None]
"""By probe: what it saw, None if it does not apply, or `UNFINISHED`."""

_LIGHTEST_LAST: Final = (Severity.CRITICAL, Severity.MAJOR, Severity.MINOR, Severity.INFO)


async def run_probes(
    visit: ProbeSession, probes: Mapping[str, Probe], deadline_s: float
) -> RoundResult:
    """Return what every probe saw within `deadline_s` and the visit's requests. Never raises.

    Requests of critical checks must not depend on what the others leave over. In an unannounced
    visit the probes run one after the other, in the given order.
    """
    ends_at = asyncio.get_running_loop().time() + deadline_s
    turns = asyncio.Semaphore(AT_ONCE if visit.announced else 1)
    ordered = sorted(probes.items(), key=_turn) if visit.announced else list(probes.items())
    async with asyncio.TaskGroup() as group:

        def begin(
            named: Iterable[tuple[str, Probe]],
        ) -> dict[str, asyncio.Task[JsonObject | str | None]]:
            return {n: group.create_task(_probe(n, p, visit, turns, ends_at)) for n, p in named}

        tasks = begin((n, p) for n, p in ordered if visit.announced and _goes_first(n, p))
        if tasks:
            await asyncio.wait(tasks.values(), timeout=deadline_s * CRITICAL_ALONE)
        tasks |= begin((n, p) for n, p in ordered if n not in tasks)
    return {name: task.result() for name, task in sorted(tasks.items())}


def _goes_first(name: str, probe: Probe) -> bool:
    """Return whether it decides if there is anything to judge, or can be critical."""
    return name == "reachable" or probe.severity is Severity.CRITICAL


def _turn(named: tuple[str, Probe]) -> tuple[bool, int, str]:
    name, probe = named
    return name != "reachable", _LIGHTEST_LAST.index(probe.severity), name


async def _probe(
    name: str, probe: Probe, visit: ProbeSession, turns: asyncio.Semaphore, ends_at: float
) -> JsonObject | str | None:
    manner = odd_requests() if name in ANNOUNCED_ONLY else nullcontext()
    try:
        async with asyncio.timeout_at(ends_at), turns:
            with manner:
                return await probe.collect(visit)
    except Exception:  # noqa: BLE001 - time, budget, or an answer nobody thought of: one hostile
        # service must not take the whole evaluation down; what did not finish is reported.
        return UNFINISHED
