"""One visit to an agent: a budget all its requests share, and conversations its probes share.

Sources: decisions, section 5; facts (security, section 1: honest-agent rules).
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TypeVar
from urllib.parse import urlsplit

from assay.egress.ports import EgressError, Failure, Limits, Outgoing, Reply, SafeHttp
from assay.kit.clock import Clock
from assay.kit.singleflight import SingleFlight
from assay.trust.ports import (
    A2aConversation,
    AgentCallFailed,
    AgentDialers,
    BudgetExhausted,
    McpConversation,
)

USER_AGENT = "Assay/1 (tests AI agents; to opt out: robots.txt, User-agent: Assay, Disallow: /)"
"""What every request of a visit says of itself. Source: facts, honest-agent rules."""

HANG_UP_S = 0.4
"""How long a conversation may take to end. Nothing is learnt from it; it is only polite."""

ROBOTS_LIMITS = Limits(connect_s=2.0, total_s=2.0, body_bytes_max=65536)
"""A site that has a wish says so quickly; a dead one must not cost the visit half its time."""

TIMEOUTS_MAX = 2
"""A site that kept us waiting so often is not asked again: a tar pit must not use up the time that
shows what the agent's other services do."""

T = TypeVar("T")


class VisitHttp:
    """The `SafeHttp` of one visit: counted, timed, and saying who we are.

    A plain request (no headers but `accept` and `content-type`) is asked once and remembered, so
    that two probes with the same question cost the agent one request: probes read documents, or
    send bodies nobody can act on. `FRESH` asks again. What the client libraries send is never
    plain: it carries their own headers.
    """

    FRESH = {"cache-control": "no-cache"}  # noqa: RUF012 - a constant nobody writes to

    def __init__(self, http: SafeHttp, clock: Clock, requests_max: int, deadline_s: float) -> None:
        self._http = http
        self._clock = clock
        self._requests_max = requests_max
        self._ends_s = clock.monotonic_s() + deadline_s
        self._remembered: dict[str, Reply | EgressError] = {}
        self._flights: SingleFlight[Reply] = SingleFlight()
        self._waited_for: Counter[str] = Counter()
        self._refused: set[str] = set()
        self.sent = 0
        self.replied = 0
        self.over_budget = False
        """Whether a host's egress budget cut this visit short."""

    @property
    def left_s(self) -> float:
        """Seconds until the visit ends."""
        return max(0.0, self._ends_s - self._clock.monotonic_s())

    async def send(self, request: Outgoing, limits: Limits = Limits()) -> Reply:  # noqa: B008 - frozen
        """As `SafeHttp.send`; raises `BudgetExhausted` when requests or time are used up."""
        if not request.headers.keys() <= {"accept", "content-type"}:
            return await self._send(request, limits)
        key = _question(request)
        if key not in self._remembered:
            return await self._flights.run(key, lambda: self._remember(key, request, limits))
        known = self._remembered[key]
        if isinstance(known, EgressError):
            raise known
        return known

    async def _remember(self, key: str, request: Outgoing, limits: Limits) -> Reply:
        try:
            reply = await self._send(request, limits)
        except EgressError as error:
            self._remembered[key] = error
            raise
        self._remembered[key] = reply
        return reply

    async def _send(self, request: Outgoing, limits: Limits) -> Reply:
        left_s = self.left_s
        if left_s <= 0 or self.sent >= self._requests_max:
            raise BudgetExhausted
        try:
            site = urlsplit(request.url).netloc
        except ValueError:
            raise EgressError(Failure.REFUSED_ADDRESS, "no address") from None
        self._require_patience(site)
        self.sent += 1
        headers = {n: v for n, v in request.headers.items() if n.lower() != "user-agent"}
        named = replace(request, headers={**headers, "user-agent": USER_AGENT})
        try:
            reply = await self._http.send(
                named, replace(limits, total_s=min(limits.total_s, left_s))
            )
        except EgressError as error:
            if error.failure is Failure.BUDGET:
                self.over_budget = True
                self._refused.update(() if error.is_sent else (site,))
                raise BudgetExhausted from error
            # An answer that our own haste cut off says nothing about the agent.
            if error.failure is Failure.TIMEOUT and left_s < limits.total_s:
                raise BudgetExhausted from error
            self._waited_for[site] += error.failure is Failure.TIMEOUT
            raise
        if reply.over_budget:
            self.over_budget = True
            raise BudgetExhausted
        self.replied += 1
        return reply

    def _require_patience(self, site: str) -> None:
        """Raises for a site that is not asked again in this visit."""
        if site in self._refused:
            raise BudgetExhausted  # one wait for room is enough: not one for every question
        if self._waited_for[site] >= TIMEOUTS_MAX:
            raise EgressError(Failure.TIMEOUT, "the site kept this visit waiting before")


def _question(request: Outgoing) -> str:
    """One text for equal requests."""
    headers = " ".join(f"{name}={value}" for name, value in sorted(request.headers.items()))
    body = hashlib.sha256(request.body).hexdigest()
    return f"{request.method} {request.url} {headers} {body}"


class SharedDialers:
    """Dials every address once a visit; all probes talk over that one line.

    A task of its own holds it: the client libraries must be closed by the task that opened them.
    """

    def __init__(self, dialers: AgentDialers, group: asyncio.TaskGroup) -> None:
        self._dialers = dialers
        self._group = group
        self._over = asyncio.Event()
        self._patience: set[asyncio.Timeout] = set()
        self._mcp: dict[str, asyncio.Future[McpConversation]] = {}
        self._a2a: dict[str, asyncio.Future[A2aConversation]] = {}

    @asynccontextmanager
    async def mcp(self, url: str, http: SafeHttp) -> AsyncGenerator[McpConversation]:
        """As `AgentDialers.mcp`; leaving the block does not hang up."""
        yield await self._line(self._mcp, url, lambda: self._dialers.mcp(url, http))

    @asynccontextmanager
    async def a2a(self, url: str, http: SafeHttp) -> AsyncGenerator[A2aConversation]:
        """As `AgentDialers.a2a`; leaving the block does not hang up."""
        yield await self._line(self._a2a, url, lambda: self._dialers.a2a(url, http))

    def hang_up(self) -> None:
        """End every conversation; their tasks end within `HANG_UP_S`, opened or not."""
        self._over.set()
        for patience in self._patience:
            patience.reschedule(asyncio.get_running_loop().time() + HANG_UP_S)

    async def _line(
        self,
        lines: dict[str, asyncio.Future[T]],
        url: str,
        dial: Callable[[], AbstractAsyncContextManager[T]],
    ) -> T:
        if url not in lines:
            opened: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            opened.add_done_callback(_heard)
            lines[url] = opened
            self._group.create_task(self._hold(opened, dial))
        return await asyncio.shield(lines[url])

    async def _hold(
        self, opened: asyncio.Future[T], dial: Callable[[], AbstractAsyncContextManager[T]]
    ) -> None:
        patience = asyncio.timeout(None)
        try:
            async with patience:
                self._patience.add(patience)
                async with dial() as conversation:
                    opened.set_result(conversation)
                    await self._over.wait()
        except (AgentCallFailed, BudgetExhausted) as failure:
            if not opened.done():
                opened.set_exception(failure)
        except TimeoutError:
            opened.cancel()
        finally:
            self._patience.discard(patience)
            opened.cancel()


def _heard(opened: asyncio.Future[T]) -> None:
    """A failure whose askers have all gone away is nobody's; asyncio need not warn of it."""
    if not opened.cancelled():
        opened.exception()


async def opted_out(url: str, http: SafeHttp) -> bool:
    """Whether the site of `url` asks Assay by name not to test this address.

    Only a robots.txt group that names `Assay` counts: `User-agent: *` is about crawlers that
    come uninvited, and a registered service invites callers. Source: RFC 9309, section 2.2.
    """
    parts = urlsplit(url)  # of a declared service: it can be taken apart
    robots = f"{parts.scheme}://{parts.netloc}/robots.txt"
    try:
        reply = await http.send(Outgoing("GET", robots), ROBOTS_LIMITS)
    except EgressError:
        return False
    if reply.status != 200:  # noqa: PLR2004 - anything else is no robots.txt (RFC 9309, 2.3.1)
        return False
    text = reply.body.decode("utf-8", "replace")
    return any((parts.path or "/").startswith(prefix) for prefix in _disallowed(text))


def _disallowed(robots: str) -> list[str]:
    """The path prefixes disallowed to the group that names `Assay`."""
    prefixes: list[str] = []
    ours = naming = False
    for line in robots.splitlines():
        field, _, value = line.partition("#")[0].partition(":")
        field, value = field.strip().lower(), value.strip()
        if field == "user-agent":
            ours = (ours and naming) or value.lower() == "assay"
            naming = True
        elif field:
            naming = False
            if ours and field == "disallow" and value:
                prefixes.append(value.rstrip("*"))
    return prefixes
