"""Checks whether the services of a Solana agent answer (interface.md#liveness-report).

The statuses, the counting and the requests are those of the registry's own SDK
(solana-registry.md#liveness). Two requests are added: MCP servers that require a session are asked
to open one, and A2A cards are also looked for at the protocol's current path.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlsplit

from assay.common.cache import BoundedMap, Cache
from assay.common.clock import Clock
from assay.common.egress_budget import EGRESS_BUDGET
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    Limits,
    OutboundRequest,
)
from assay.net.egress.request_slots import BLAMED_FROM_S, count_own_waits
from assay.probing.probe_client import decode
from assay.probing.session import USER_AGENT
from assay.registries.model import RegistrationFile, Subject

LIMITS = Limits(connect_s=3.0, total_s=5.0, body_bytes_max=256 * 1024)
CONCURRENCY = 4
"""Source: solana-registry.md#liveness."""

SERVICES_MAX = 32
TOTAL_S = 20.0
"""Time limit of all services together; services not finished by then count as not answering."""

REQUESTS_MAX = 120
"""Requests for all services together: an agent's registrant chooses whom we call, and must not
direct a crowd at a third party."""

TTL_S = 30.0
"""How long a report is reused: checking costs the agent real requests."""

REPORTS_KEPT = 1000
"""Complete reports kept for when a host's egress budget is used up; the oldest is dropped first."""

Status = Literal["live", "partially", "not_live"]

_KINDS = {
    **{name.lower(): name for name in ("MCP", "A2A", "ENS", "SNS", "DID", "OASF")},
    "wallet": "wallet",
    "agentwallet": "wallet",
}
_UNKNOWN = "UNKNOWN"
_TEXT_CHARS_MAX = 2048

_ALIVE = frozenset({401, 402, 403})
"""Besides 2xx: a service that requires credentials or money is alive."""

_METHOD_NOT_ALLOWED = 405
_LISTS = {"tools/list": "tools", "resources/list": "resources", "prompts/list": "prompts"}
_CARDS = ("/agentcard.json", "/.well-known/agent.json", "/.well-known/agent-card.json")
_JSON = {"accept": "application/json", "user-agent": USER_AGENT}
_RPC = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "user-agent": USER_AGENT,
}
_INITIALIZE: JsonObject = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "assay", "version": "1"},
}
"""Source: Model Context Protocol 2025-06-18, lifecycle."""


@dataclass(frozen=True, slots=True)
class Ping:
    """A declared service; `latency_ms` is 0 if nothing was called."""

    kind: str
    endpoint: str
    ok: bool
    latency_ms: float
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class LivenessReport:
    """Every declared service in the file's order."""

    results: tuple[Ping, ...]
    cached_reason: str | None = None
    """Why an earlier report is returned again."""
    unasked_reason: str | None = None
    """Why some services were not asked, which says nothing about them."""

    @property
    def ok_count(self) -> int:
        """Return how many services answered."""
        return sum(ping.ok for ping in self.results)

    @property
    def skipped_count(self) -> int:
        """Return how many services cannot be called."""
        return sum(ping.skipped for ping in self.results)

    @property
    def total_pinged(self) -> int:
        """Return how many services were called, or would have been if their address were public."""
        return len(self.results) - self.skipped_count

    @property
    def status(self) -> Status:
        """Return the status; `not_live` also if there is nothing to call."""
        if not self.ok_count:
            return "not_live"
        return "live" if self.ok_count == self.total_pinged else "partially"


class Liveness:
    """Checks whether the services an agent declares answer."""

    def __init__(self, http: EgressClient, clock: Clock) -> None:
        self._http = http
        self._clock = clock
        self._reports: Cache[LivenessReport] = Cache(clock, TTL_S)
        self._complete: BoundedMap[str, LivenessReport] = BoundedMap(REPORTS_KEPT)

    async def report(self, subject: Subject) -> LivenessReport:
        """Return the report; never raises. Without a registration file no services are declared."""
        return await self._reports.get(subject.key, lambda: self._ask_all(subject))

    async def _ask_all(self, subject: Subject) -> LivenessReport:
        services = declared(subject.agent.registration if subject.agent else None)
        round_ = _Round(self._http, self._clock)
        with count_own_waits(is_visit=True) as waits:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(round_.ping(*service)) for service in services]
        report = LivenessReport(tuple(task.result() for task in tasks))
        is_late = round_.is_late and waits.waited_s >= BLAMED_FROM_S
        if not round_.over_budget and not is_late:
            self._complete.put(subject.key, report)
            return report
        earlier = self._complete.get(subject.key)
        if earlier is None:
            return replace(report, unasked_reason=EGRESS_BUDGET)
        return replace(earlier, cached_reason=EGRESS_BUDGET)


class _Round:
    """The requests of one report: their common budget, and how each is made."""

    def __init__(self, http: EgressClient, clock: Clock) -> None:
        self._http = http
        self._clock = clock
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._ends_s = clock.monotonic_s() + TOTAL_S
        self._left = REQUESTS_MAX
        self.over_budget = False
        """Whether a host's egress budget prevented a request."""
        self.is_late = False
        """Whether a service was not finished when the time was over."""

    async def ping(self, kind: str, endpoint: str) -> Ping:
        """Check whether the service answers."""
        if not endpoint.lower().startswith(("http://", "https://")):
            return Ping(kind, endpoint, ok=False, latency_ms=0.0, skipped=True)
        async with self._slots:
            began_s = self._clock.monotonic_s()
            try:
                async with asyncio.timeout(max(0.0, self._ends_s - began_s)):
                    ok = await self._answers(kind, endpoint)
            except TimeoutError:
                ok, self.is_late = False, True
            except _NotCalled:
                return Ping(kind, endpoint, ok=False, latency_ms=0.0)
            return Ping(kind, endpoint, ok, round((self._clock.monotonic_s() - began_s) * 1000, 1))

    async def _answers(self, kind: str, endpoint: str) -> bool:
        if kind == "MCP" and await self._speaks_mcp(endpoint):
            return True
        if kind == "A2A" and await self._has_card(endpoint):
            return True
        reply = await self._send(OutboundRequest("HEAD", endpoint, {"user-agent": USER_AGENT}))
        if isinstance(reply, EgressResponse) and reply.status == _METHOD_NOT_ALLOWED:
            reply = await self._send(OutboundRequest("GET", endpoint, {"user-agent": USER_AGENT}))
        if reply is Failure.REFUSED_ADDRESS:
            raise _NotCalled
        return isinstance(reply, EgressResponse) and (_succeeded(reply) or reply.status in _ALIVE)

    async def _speaks_mcp(self, endpoint: str) -> bool:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._lists(endpoint, method, member))
                for method, member in _LISTS.items()
            ]
        if any(task.result() for task in tasks):
            return True
        opened = await self._call(endpoint, "initialize", _INITIALIZE)
        if isinstance(opened.get("protocolVersion"), str):
            return True
        card = await self._document(_below(endpoint, _CARDS[0]))
        return any(_filled(card.get(member)) for member in ("skills", *_LISTS.values()))

    async def _lists(self, endpoint: str, method: str, member: str) -> bool:
        return _filled((await self._call(endpoint, method, {})).get(member))

    async def _has_card(self, endpoint: str) -> bool:
        try:
            origin = "{0.scheme}://{0.netloc}".format(urlsplit(endpoint))
        except ValueError:  # It looked like an address.
            return False
        places = [_below(endpoint, card) for card in _CARDS]
        places += [*(origin + card for card in _CARDS[1:]), endpoint]
        for url in dict.fromkeys(places):
            if _filled((await self._document(url)).get("skills")):
                return True
        return False

    async def _call(self, endpoint: str, method: str, params: JsonObject) -> JsonObject:
        """Return the result of one JSON-RPC call, plain or as a stream's event.

        Empty without one.
        """
        said = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        body = json.dumps(said, separators=(",", ":")).encode("ascii")
        reply = await self._send(OutboundRequest("POST", endpoint, _RPC, body))
        if not isinstance(reply, EgressResponse) or not _succeeded(reply):
            return {}
        answer = _rpc_answer(reply)
        result = answer.get("result") if is_object(answer) else None
        return result if is_object(result) else {}

    async def _document(self, url: str) -> JsonObject:
        reply = await self._send(OutboundRequest("GET", url, _JSON))
        if not isinstance(reply, EgressResponse) or not _succeeded(reply):
            return {}
        found = decode(reply.body)
        return found if is_object(found) else {}

    async def _send(self, request: OutboundRequest) -> EgressResponse | Failure:
        if self._left <= 0:
            return Failure.TIMEOUT
        self._left -= 1
        try:
            return await self._http.send(request, LIMITS)
        except EgressError as error:
            self.over_budget = self.over_budget or error.failure is Failure.BUDGET
            return error.failure


class _NotCalled(Exception):
    """The address is not one that we call."""


def declared(file: RegistrationFile | None) -> Sequence[tuple[str, str]]:
    """Return kind and address of the services a file declares; skip invalid entries.

    `type` and `value` have precedence over `name` and `endpoint`, as in the registry's own SDK.
    """
    raw: JsonObject = file.raw if file else {}
    listed = raw.get("services")
    listed = raw.get("endpoints") if listed is None else listed
    rows = [row for row in listed if is_object(row)] if is_array(listed) else []
    found = ((_kind(row), _first_text(row, "value", "endpoint")) for row in rows)
    return [(kind, endpoint) for kind, endpoint in found if endpoint][:SERVICES_MAX]


def _kind(row: JsonObject) -> str:
    said = _first_text(row, "type", "name")
    return _KINDS.get(said.lower(), said) or _UNKNOWN


def _first_text(row: JsonObject, *names: str) -> str:
    texts = (row.get(name) for name in names)
    found = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    shown = found.strip()
    return shown if len(shown) <= _TEXT_CHARS_MAX and shown.isprintable() else ""


def _succeeded(reply: EgressResponse) -> bool:
    return 200 <= reply.status < 300  # noqa: PLR2004 - RFC 9110, section 15.3


def _below(endpoint: str, path: str) -> str:
    return endpoint.partition("?")[0].partition("#")[0].rstrip("/") + path


def _filled(value: JsonValue) -> bool:
    return is_array(value) and len(value) > 0


def _rpc_answer(reply: EgressResponse) -> JsonValue:
    if "text/event-stream" not in (reply.header("content-type") or "").lower():
        return decode(reply.body)
    lines = reply.body.decode("utf-8", "replace").splitlines()
    events = (decode(line[5:].strip().encode()) for line in lines if line.startswith("data:"))
    return next((event for event in events if event is not None), None)
