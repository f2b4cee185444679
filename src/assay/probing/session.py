"""The requests of one visit to an agent: one budget, one deadline, announced or not.

Counts a visit's calls, and those an agent left unanswered.

Only requests that any customer may send count: a probe's requests that are meant to be refused do
not. A call failed if there was no reply, or 502, 503 or 504; or 500 if the same method and path
answered another call. 429 is neither. Failures before a site's first answer count as its start-up
and are forgiven.

Sources: conventions.md#behavioural-evidence; checks.md#rules-of-a-visit.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import urlsplit

from assay.common.cache import SingleFlight
from assay.common.clock import Clock
from assay.common.json import JsonObject
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    Limits,
    OutboundRequest,
)
from assay.probing.deposited_access import CredentialEntry
from assay.probing.ports import BudgetExhausted, ProbeSession

_Outcome = Literal["answered", "failed", "error"]

UNAVAILABLE: Final = frozenset({502, 503, 504})
TOO_MANY: Final = 429
ERROR: Final = 500

_is_odd: ContextVar[bool] = ContextVar("assay_odd_requests", default=False)
# Not an argument: client libraries lie between a probe and the request.


@contextmanager
def odd_requests() -> Generator[None]:
    """Do not count the requests inside the block: no customer sends such requests."""
    token = _is_odd.set(True)
    try:
        yield
    finally:
        _is_odd.reset(token)


class CallTally:
    """The calls of one visit: at most as many as it may make requests."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, str, _Outcome]] = []

    def note(self, method: str, url: str, status: int | None) -> None:
        """Record a finished call; `status` is None if there was no reply."""
        if _is_odd.get() or status == TOO_MANY:
            return
        try:
            parts = urlsplit(url)
        except ValueError:
            return
        failed = status is None or status in UNAVAILABLE
        outcome: _Outcome = "failed" if failed else "error" if status == ERROR else "answered"
        self._calls.append((parts.netloc, f"{method} {parts.netloc}{parts.path}", outcome))

    def as_json(self) -> JsonObject:
        """Return how many calls count, and how many of them failed."""
        answering = {place for _, place, outcome in self._calls if outcome == "answered"}
        begun: set[str] = set()
        made = failed = 0
        for site, place, outcome in self._calls:
            if outcome == "answered":
                begun.add(site)
            elif site not in begun or (outcome == "error" and place not in answering):
                continue
            made += 1
            failed += outcome != "answered"
        return {"made": made, "failed": failed}


USER_AGENT = "Assay/1 (tests AI agents; to opt out: robots.txt, User-agent: Assay, Disallow: /)"
"""The User-Agent of every announced request. Source: checks.md#rules-of-a-visit."""

STOCK_HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "gzip, deflate",
    "Connection": "keep-alive",
    "User-Agent": "python-httpx/0.28.1",
}
"""Headers of the HTTP client under the official A2A client with a GET: order and spelling."""

COLD_START_S = 60.0
"""Longest wait for the first answer of a service that starts on demand.
Source: evidence.md#unfinished-visits."""

TIMEOUTS_MAX = 2
"""A site that timed out this often gets no more requests: a tar pit must not use up the time for
the agent's other services."""


SENT_CHARS, RECEIVED_CHARS = 4_096, 8_192
"""Characters kept of a request and of its answer, for searches of one's words in another's
answer."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer, headers included, as text."""

    sent: str
    received: str


def exchange(request: OutboundRequest, reply: EgressResponse) -> Exchange:
    """Return as much of both as is kept."""
    sent = " ".join((request.url, *request.headers.values()))[:SENT_CHARS]
    received = "\n".join(value for _, value in reply.headers)[:RECEIVED_CHARS]
    bodies = (request.body[:SENT_CHARS], reply.body[: RECEIVED_CHARS - len(received)])
    asked, said = (body.decode("utf-8", "replace") for body in bodies)
    return Exchange(f"{sent}\n{asked}", f"{received}\n{said}")


class VisitHttp:
    """The `EgressClient` of one visit: counted, timed, and identifying us.

    A plain request (no headers but `accept` and `content-type`) is sent once and its reply cached,
    so that two probes with the same question cost the agent one request: probes read documents, or
    send bodies without effect. `FRESH` sends it again. Requests of the client libraries are never
    plain: they carry their own headers. In an unannounced visit `FRESH` repeats only failed
    requests: customers do not read the same page over and over.
    """

    FRESH = {"cache-control": "no-cache"}  # noqa: RUF012 - a constant nobody writes to
    REPEAT = {"pragma": "no-cache"}  # noqa: RUF012 - the same
    """Marks a request whose second answer is compared with its first: it is always sent."""

    def __init__(
        self,
        http: EgressClient,
        clock: Clock,
        requests_max: int,
        deadline_s: float,
        *,
        pause_s: Callable[[], float] | None = None,
        entry: CredentialEntry | None = None,
    ) -> None:
        """Create it; with `pause_s` the visit is unannounced.

        Then requests go out as stock clients send them, one after the other; `pause_s` draws how
        long the next one waits. `entry` has the credentials of the visit.
        """
        self._http = http
        self.entry = entry or CredentialEntry()
        self._announced = pause_s is None
        self._pause_s = pause_s or (lambda: 0.0)
        self._turn = asyncio.Lock()
        self._clock = clock
        self._requests_max = requests_max
        self._ends_s = clock.monotonic_s() + deadline_s
        self._remembered: dict[str, EgressResponse | EgressError] = {}
        self._flights: SingleFlight[EgressResponse] = SingleFlight()
        self._waited_for: Counter[str] = Counter()
        self._refused: set[str] = set()
        self._woken: set[str] = set()
        self.sent = 0
        self.replied = 0
        self.calls = CallTally()
        self.exchanges: list[Exchange] = []
        """All requests that were answered."""
        self.over_budget = False
        """Whether a host's egress budget cut this visit short."""

    @property
    def left(self) -> int:
        """Return how many requests may still be sent."""
        return max(0, self._requests_max - self.sent)

    @property
    def left_s(self) -> float:
        """Return the seconds until the visit ends."""
        return max(0.0, self._ends_s - self._clock.monotonic_s())

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        """Send like `EgressClient.send`; raises `BudgetExhausted` without requests or time left."""
        if request.is_bare and not self.entry.knows(request):
            request = replace(request, is_bare=False)  # The same question as any other.
        is_repeat = bool(request.headers.keys() & self.REPEAT.keys())
        plain = {"accept", "content-type"}
        plain |= set() if self._announced else {*self.FRESH, *self.REPEAT}
        if not request.headers.keys() <= plain:
            return await self._send(request, limits)
        if not self._announced:  # Customers' HTTP clients name no preferred type.
            said = {n: v for n, v in request.headers.items() if n == "content-type"}
            again, request = (
                request.headers.keys() & self.FRESH.keys(),
                replace(request, headers=said),
            )
            if is_repeat:
                return await self._send(request, limits)
            if again and isinstance(self._remembered.get(_question(request)), EgressError):
                del self._remembered[_question(request)]
        key = _question(request)
        if key not in self._remembered:
            return await self._flights.run(key, lambda: self._remember(key, request, limits))
        known = self._remembered[key]
        if isinstance(known, EgressError):
            raise known
        return known

    async def _remember(self, key: str, request: OutboundRequest, limits: Limits) -> EgressResponse:
        try:
            reply = await self._send(request, limits)
        except EgressError as error:
            self._remembered[key] = error
            raise
        self._remembered[key] = reply
        return reply

    async def _send(self, request: OutboundRequest, limits: Limits) -> EgressResponse:
        if (
            self._announced or request.method == "DELETE"
        ):  # A client that disconnects waits for nothing.
            return await self._send_now(request, limits)
        async with self._turn:
            if self.sent:
                await asyncio.sleep(min(self._pause_s(), self.left_s))
            return await self._send_now(request, limits)

    async def _send_now(self, request: OutboundRequest, limits: Limits) -> EgressResponse:
        left_s = self.left_s
        if left_s <= 0 or self.sent >= self._requests_max:
            raise BudgetExhausted
        try:
            site = urlsplit(request.url).netloc
        except ValueError:
            raise EgressError(Failure.REFUSED_ADDRESS, "no address") from None
        wakes = limits.total_s >= COLD_START_S and request.method == "GET"
        self._require_patience(site, wakes=wakes)
        reply = await self._entered(request, limits, site)
        self.replied += 1
        self.exchanges.append(exchange(request, reply))
        self.calls.note(request.method, request.url, reply.status)
        if wakes and self._waited_for.pop(site, 0):
            self._forget_timeouts()
        return reply

    async def _entered(self, request: OutboundRequest, limits: Limits, site: str) -> EgressResponse:
        """Return the reply.

        If the service requires a deposited credential, that to the credential.
        """
        signed = self._signed(request)
        carries = self.entry.carries(signed)
        reply = await self._dial(signed, limits, site, carries=carries)
        if carries or not self.entry.opens(signed, reply):
            return reply
        if not self.left or not self.left_s:
            raise BudgetExhausted
        return await self._dial(signed, limits, site, carries=True)

    async def _dial(
        self, asked: OutboundRequest, limits: Limits, site: str, *, carries: bool
    ) -> EgressResponse:
        """Send one request, with its credential if it `carries` it; return the cleaned reply."""
        left_s = self.left_s
        request = self.entry.outgoing(asked, carries=carries)
        self.sent += 1
        try:
            reply = await self._http.send(
                request, replace(limits, total_s=min(limits.total_s, left_s))
            )
        except EgressError as raised:
            error = self.entry.failed(raised)
            self._require_fault(error, site, is_hasty=left_s < limits.total_s)
            if error.failure is not Failure.REFUSED_ADDRESS:
                self.calls.note(asked.method, asked.url, None)
            raise error from None
        if reply.over_budget:
            self.over_budget = True
            raise BudgetExhausted
        return self.entry.read(asked, reply, carries=carries)

    def _require_fault(self, error: EgressError, site: str, *, is_hasty: bool) -> None:
        """Raise `BudgetExhausted` if we ourselves caused the missing reply."""
        if error.failure is Failure.BUDGET:
            self.over_budget = True
            self._refused.update(() if error.is_sent else (site,))
            raise BudgetExhausted from error
        # An answer cut off by our own haste says nothing about the agent.
        if error.failure is Failure.TIMEOUT and is_hasty:
            raise BudgetExhausted from error
        self._waited_for[site] += error.failure is Failure.TIMEOUT

    def _forget_timeouts(self) -> None:
        """Allow a service that was starting to be asked again."""
        self._remembered = {
            question: known
            for question, known in self._remembered.items()
            if not (isinstance(known, EgressError) and known.failure is Failure.TIMEOUT)
        }

    def _signed(self, request: OutboundRequest) -> OutboundRequest:
        """Return the request as it is sent: under our name, or like a stock client's."""
        headers = {n: v for n, v in request.headers.items() if n.lower() != "user-agent"}
        if self._announced:
            return replace(request, headers={**headers, "user-agent": USER_AGENT})
        if len(headers) != len(request.headers):
            return replace(request, is_verbatim=True)  # A client library's own.
        named = {n.title(): v for n, v in headers.items() if n != "cache-control"}
        length = {"Content-Length": ""} if request.body else {}
        return replace(request, headers={**STOCK_HEADERS, **length, **named}, is_verbatim=True)

    def _require_patience(self, site: str, *, wakes: bool = False) -> None:
        """Raise for a site that gets no more requests in this visit.

        `wakes`: the request waits for a service that starts on demand, once a visit.
        """
        if site in self._refused:
            raise BudgetExhausted  # One wait for room suffices: not one for every request.
        if wakes and site not in self._woken:
            self._woken.add(site)
            return
        if self._waited_for[site] >= TIMEOUTS_MAX:
            raise EgressError(Failure.TIMEOUT, "the site kept this visit waiting before")


def _question(request: OutboundRequest) -> str:
    """Return one key for equal requests."""
    headers = " ".join(f"{name}={value}" for name, value in sorted(request.headers.items()))
    body = hashlib.sha256(request.body).hexdigest()
    return f"{request.method} {request.url} {headers} {body} {request.is_bare}"


def is_tight(visit: ProbeSession) -> bool:
    """Return whether several services share the few requests that proof of function leaves.

    Unannounced visits make far fewer other requests, and have room.
    """
    return visit.announced and len(visit.services) > 1


ROOM: Final = 12
"""Requests that an open-ended search leaves to the other checks."""


def require_room(visit: ProbeSession) -> None:
    """Raise `BudgetExhausted` if the other checks of the visit need what is left."""
    if isinstance(visit.http, VisitHttp) and visit.announced and visit.http.left < ROOM:
        raise BudgetExhausted
