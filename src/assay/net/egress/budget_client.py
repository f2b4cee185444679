"""The egress budget of outbound requests: claimed before they are sent, counted while they run.

Claims on egress budgets, and the queue for them: open requests claim more than they use.

A request claims the budget of its host's domain before the name is resolved, and that of the
address before the connection, so that a thousand names of one address share one budget. Bytes are
counted on the connection itself, TLS included. Source: ADR 0016.

A daily number of requests to one site from all callers, on top of the egress budget.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from assay.common.egress_budget import (
    ACCOUNT_PART,
    SHARED_PART,
    BudgetLedger,
    BudgetRules,
    BudgetSpent,
    Ceiling,
    EgressClaim,
    EgressUse,
    UseClass,
    current_use,
)
from assay.common.errors import Unavailable
from assay.common.ids import new_id
from assay.http1.model import Target
from assay.net.egress.address import classify
from assay.net.egress.consent import Consent, Consents, origin_of
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    Limits,
    OutboundRequest,
)
from assay.net.egress.request_slots import Holder, Slots, SlotShare, current_party, own_wait
from assay.net.egress.url import EgressPolicy, domain_of, is_exempt, network_of

BYTES_EACH = 64 * 1024
"""A budget needs this many bytes for each open request of this process, so the small budget allows
four. With more, every request could hold part of what all need to finish. The shared class may use
half of them, and one account of it a quarter, so that slow answers to strangers leave room for a
gate."""


@dataclass(slots=True)
class _Busy:
    """The open requests of this process on one budget, and the requests that wait for them."""

    active: int = 0
    waiting: int = 0
    """How many of the active requests wait for more bytes."""
    waiters: set[asyncio.Future[None]] = field(default_factory=set[asyncio.Future[None]])


class ClaimQueue:
    """Claims of the requests of one process; only open requests take memory."""

    def __init__(self, ledger: BudgetLedger) -> None:
        self._ledger = ledger
        self._slots = Slots()
        self._busy: dict[str, _Busy] = {}
        self._placed: dict[tuple[str, str], Holder] = {}

    async def claim(self, claim: EgressClaim, kept: tuple[EgressClaim, ...], wait_s: float) -> None:
        """Add a claim to those `kept`, waiting for open requests of this process if necessary.

        Raises `EgressError` if there is still no room after that.
        """
        ends_s = asyncio.get_running_loop().time() + wait_s
        places = _places(claim)
        holder = Holder(claim.use.use_class is UseClass.SHARED, current_party())
        with self._waiting(kept):
            while True:
                await self._slots.take(places, holder, ends_s)
                spent = None
                try:
                    spent = await self._count(claim)
                    if spent is None:
                        self._busy.setdefault(claim.key, _Busy()).active += 1
                        self._placed[claim.exchange, claim.key] = holder
                        return
                finally:
                    if (claim.exchange, claim.key) not in self._placed:
                        self._slots.give_back(places, holder)
                if not await self._one_ends(self._movable([claim.key]), ends_s):
                    why = "its host has had its share of requests"
                    raise _refused_for_budget(why, spent.retry_s)

    async def _count(self, claim: EgressClaim) -> BudgetSpent | None:
        with own_wait():
            try:
                return await self._ledger.claim(claim)
            except Unavailable as error:
                raise _refused_for_budget("the budget cannot be read", 1.0) from error

    async def extend(self, claims: tuple[EgressClaim, ...], wanted_bytes: int) -> int:
        """Claim more bytes for an open request; return 0 if there are none."""
        if not claims:
            return wanted_bytes
        ends_s = asyncio.get_running_loop().time() + claims[0].ends_s
        with self._waiting(claims):
            while True:
                try:
                    with own_wait():
                        granted = await self._ledger.extend(claims, wanted_bytes)
                except Unavailable:
                    return 0
                movable = self._movable([claim.key for claim in claims])
                if granted or not await self._one_ends(movable, ends_s):
                    return granted

    def release(self, claims: tuple[EgressClaim, ...]) -> None:
        """End the request on these claims, and let waiting requests try again."""
        for claim in claims:
            self._slots.give_back(_places(claim), self._placed.pop((claim.exchange, claim.key)))
            busy = self._busy[claim.key]
            busy.active -= 1
            for waiter in busy.waiters:
                if not waiter.done():
                    waiter.set_result(None)
            if not busy.active:
                del self._busy[claim.key]

    @contextmanager
    def _waiting(self, kept: tuple[EgressClaim, ...]) -> Generator[None]:
        """Count a request as waiting in the block.

        It keeps its claims, so not all requests may wait for one another.
        """
        busy = [self._busy[claim.key] for claim in kept]
        for one in busy:
            one.waiting += 1
        try:
            yield
        finally:
            for one in busy:
                one.waiting -= 1

    def _movable(self, keys: list[str]) -> _Busy | None:
        """Return one budget's requests if at least one of them is not waiting itself."""
        found = (self._busy.get(key) for key in keys)
        return next((busy for busy in found if busy and busy.active > busy.waiting), None)

    @staticmethod
    async def _one_ends(busy: _Busy | None, ends_s: float) -> bool:
        """Wait for one of the open requests to end; return whether it ended by `ends_s`."""
        if busy is None:
            return False
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        busy.waiters.add(waiter)
        try:
            with own_wait():
                async with asyncio.timeout_at(ends_s):
                    await waiter
        except TimeoutError:
            return False
        finally:
            busy.waiters.discard(waiter)
        return True


def _places(claim: EgressClaim) -> dict[str, SlotShare]:
    """Return the slots that a request on this claim takes."""
    total = max(1, claim.ceiling.size_bytes // BYTES_EACH)
    places = {claim.key: SlotShare(total, max(1, total // SHARED_PART))}
    if claim.use.use_class is UseClass.SHARED and claim.use.account:
        most = max(1, total // ACCOUNT_PART)
        places[f"{claim.key} of account {claim.use.account}"] = SlotShare(most, most)
    return places


def _refused_for_budget(why: str, retry_s: float) -> EgressError:
    """Return the error for a request refused before anything was sent."""
    return EgressError(Failure.BUDGET, why, retry_s=retry_s)


WINDOW_BYTES = 16 * 1024
"""Receive buffer of connections to a host that has not consented: the bytes that may be in transit
to us unread. It is claimed with every request, so that it never exceeds a budget."""

GLANCE_WINDOW_BYTES = 4608
"""The same for requests that read only the beginning of an answer: the smallest Linux allows."""

GLANCE_BYTES_MAX = 4 * 1024
"""Requests that read at most this many bytes of a body count as glances."""

ANSWER_BYTES = 8 * 1024
"""Bytes claimed for an answer before it needs an extension: a TLS handshake and a short body."""

EXTENSION_BYTES = 32 * 1024
"""Bytes claimed at a time when the length of the answer is unknown."""

READ_BYTES = 4 * 1024
RECORD_PART = 32
"""TLS records add one part in this many; if they add more, more is claimed."""


class OverBudget(Exception):
    """An answer was cut because its host's budget has no bytes left."""


class EgressBudget:
    """Opens counted exchanges; one instance serves all outbound clients of the process."""

    def __init__(
        self,
        ledger: BudgetLedger,
        consents: Consents,
        rules: BudgetRules,
        configured: frozenset[str] = frozenset(),
    ) -> None:
        """Create a budget; the settings name `configured` origins that hold registrations.

        For reading those they have the ceiling of a gateway, and no other privilege.
        """
        self.ledger = ledger
        self.queue = ClaimQueue(ledger)
        self.consents = consents
        self.rules = rules
        self._configured = configured

    @asynccontextmanager
    async def exchange(
        self, target: Target, policy: EgressPolicy, request_bytes: int, limits: Limits
    ) -> "AsyncGenerator[BudgetedExchange | None]":
        """Count everything sent in the block; yields None if the target has no budget.

        Raises `EgressError` (`BUDGET`, nothing sent) when the host's budget is used up.
        """
        if is_exempt(target.host, policy, self.rules):
            yield None
            return
        made = BudgetedExchange(self, policy, limits, request_bytes)
        try:
            await made.open(target)
            token = _current.set(made)
            try:
                yield made
            finally:
                _current.reset(token)
        finally:
            await asyncio.shield(made.close())

    async def consent_of(self, origin: str, use: EgressUse) -> Consent | None:
        """Return the consent that a request to an origin may use.

        None in its networks means any.
        """
        if use.use_class is UseClass.OWN:
            return await self.consents.find(use.own)
        if self.is_configured(origin, use):
            return Consent("configured", ())
        return await self.consents.find(origin)

    def is_configured(self, origin: str, use: EgressUse) -> bool:
        """Return whether a document is read from an origin that the settings name for it."""
        return use.is_document and origin in self._configured


class BudgetedExchange:
    """A request and its budgets. Connections ask it before they dial, write and read."""

    def __init__(
        self, budget: EgressBudget, policy: EgressPolicy, limits: Limits, request_bytes: int
    ) -> None:
        self._budget = budget
        self._policy = policy
        self._limits = limits
        self._id = new_id()
        self._use = current_use()
        self._consent: Consent | None = None
        self._any_network = False
        self._domain = ""
        self._claims: tuple[EgressClaim, ...] = ()
        is_glance = limits.body_bytes_max <= GLANCE_BYTES_MAX
        self._window_bytes = GLANCE_WINDOW_BYTES if is_glance else WINDOW_BYTES
        self._granted = request_bytes + ANSWER_BYTES + self._window_bytes
        self._bytes = self._opening_bytes = 0
        self._ends_bytes = 0
        self._is_exempt = self._is_refused = False
        self.address: str | None = None
        """The address it is connected to."""
        self.waited_s = 0.0
        """Seconds spent waiting for budgets: they are not the host's time."""
        self.is_sent = False
        """Whether any byte has been sent."""
        self.is_whole = False
        """Whether the answer was read to its end, so that no more of it is in transit."""

    @property
    def window_bytes(self) -> int | None:
        """Return the receive buffer for a new connection; None for the system's default."""
        return None if self._is_exempt or self._consents_at(self.address) else self._window_bytes

    @property
    def pool(self) -> int | None:
        """Return the key of the connection pool.

        Connections to consenting hosts have any window.
        """
        return None if self._consent else self._window_bytes

    @property
    def cut_bytes(self) -> int:
        """Return the cost of aborting the answer: bytes in transit, and another TLS handshake."""
        return 0 if self.window_bytes is None else self._window_bytes + self._opening_bytes

    def uses(self, window_bytes: int | None, opening_bytes: int) -> None:
        """Use a connection with this window, possibly opened for another request.

        `opening_bytes` were spent on opening it. Raises `EgressError` if more bytes may be in
        transit on it than the budget can count.
        """
        self._opening_bytes = opening_bytes
        if window_bytes is not None:
            self._window_bytes = max(self._window_bytes, window_bytes)
        elif self.window_bytes is not None:
            raise _refused_for_budget("its connection was made while its host consented", 1.0)

    async def open(self, target: Target) -> None:
        """Claim the budget of the host's name. Raises `EgressError`."""
        origin = origin_of(target)
        try:
            self._consent = await self._budget.consent_of(origin, self._use)
        except Unavailable as error:
            raise _refused_for_budget("the budget cannot be read", 1.0) from error
        self._any_network = self._budget.is_configured(origin, self._use)
        self._domain = domain_of(target.host)
        rules = self._budget.rules
        if self._any_network:
            await self._claim(f"gateway {origin}", rules.gateway)
        elif self._consent is None:
            await self._claim_narrow(f"domain {self._domain}", rules.unproven)
        elif self._use.use_class is UseClass.OWN:
            await self._claim(f"own {self._use.own}", rules.consenting)
        else:
            await self._claim(f"origin {origin}", rules.consenting)

    async def connect(self, address: str) -> None:
        """Claim the budget of an address before dialling or writing to it. Raises as `open`."""
        if self._is_exempt or self.address == address:
            return
        rules = self._budget.rules
        denial = None if rules.holds_private else classify(address)
        if denial is not None and denial.is_own_network and self._policy.allow_private:
            self._is_exempt = True
            await self._release()
        elif self._any_network:
            await self._claim(f"gateway {network_of(address)}", rules.gateway)
        elif self._consents_at(address):
            # Each domain separately: otherwise a consenting origin could use up its neighbours'
            # budget.
            await self._claim(f"consenting {network_of(address)} {self._domain}", rules.consenting)
        else:
            await self._claim(f"domain {network_of(address)}", rules.unproven)
        self.address = address

    async def room(self, wanted_bytes: int) -> int:
        """Return how many bytes may be read now, at most `wanted_bytes`. Raises `OverBudget`."""
        if self._is_exempt:
            return wanted_bytes
        if self._left() <= 0:
            with self._waiting():
                self._granted += await self._budget.queue.extend(self._claims, self._wanted_bytes())
            if self._left() <= 0:
                raise OverBudget
        # In small reads, so that a request for the beginning of an answer is charged only for that.
        wanted_bytes = min(wanted_bytes, READ_BYTES) if self._consent is None else wanted_bytes
        return min(wanted_bytes, self._left())

    def expect(self, size_bytes: int) -> None:
        """Record the number of answer bytes that the response head announces."""
        self._ends_bytes = self._bytes + size_bytes + size_bytes // RECORD_PART

    def count(self, size_bytes: int) -> None:
        """Count bytes that were read or written."""
        self._bytes += size_bytes

    async def close(self) -> None:
        """Settle the claims with the actual cost."""
        if not self._claims:
            return
        # The rest of an aborted answer may still be in transit: it was sent, even if it is never
        # read.
        under_way = 0 if self.is_whole or not self.is_sent else self._window_bytes
        claims, self._claims = self._claims, ()
        try:
            with suppress(Unavailable):  # Otherwise the claim counts, which is more.
                if self._is_refused and not self.address:
                    await self._budget.ledger.forget(self._id)
                else:
                    await self._budget.ledger.settle(self._id, self._bytes + under_way)
        finally:
            self._budget.queue.release(claims)

    def _wanted_bytes(self) -> int:
        expected = self._ends_bytes - self._bytes or EXTENSION_BYTES
        return min(max(expected, READ_BYTES), EXTENSION_BYTES)

    def _left(self) -> int:
        return self._granted - self._window_bytes - self._bytes

    def _consents_at(self, address: str | None) -> bool:
        if self._consent is None:
            return False
        if self._any_network or address is None:
            return self._any_network
        return network_of(address) in self._consent.networks

    async def _claim_narrow(self, key: str, ceiling: Ceiling) -> None:
        """Claim with a narrower window if there is no room for a wider one."""
        try:
            await self._claim(key, ceiling)
        except EgressError:
            if self._window_bytes == GLANCE_WINDOW_BYTES:
                raise
            self._granted -= self._window_bytes - GLANCE_WINDOW_BYTES
            self._window_bytes = GLANCE_WINDOW_BYTES
            await self._claim(key, ceiling)

    async def _claim(self, key: str, ceiling: Ceiling) -> None:
        if any(claim.key == key for claim in self._claims):
            return
        use = self._use
        is_own = use.use_class is UseClass.OWN and ceiling is self._budget.rules.unproven
        if is_own or self._is_strange(use):
            use = use.narrowed
        total_s = self._limits.total_s
        claim = EgressClaim(self._id, key, ceiling, use, self._granted, total_s)
        try:
            with self._waiting():
                await self._budget.queue.claim(claim, self._claims, total_s - self.waited_s)
        except EgressError:
            self._is_refused = True
            raise
        self._is_refused = False
        self._claims += (claim,)

    @contextmanager
    def _waiting(self) -> Generator[None]:
        """Count the time spent in the block as waiting, even if it is cancelled."""
        began_s = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            self.waited_s += asyncio.get_running_loop().time() - began_s

    def _is_strange(self, use: EgressUse) -> bool:
        """Return whether the host's consent is for another agent than the one being probed."""
        is_reserved = use.use_class is UseClass.RESERVED and bool(use.agent)
        consent = None if self._any_network else self._consent
        return is_reserved and consent is not None and consent.given_for != use.agent

    async def _release(self) -> None:
        claims, self._claims = self._claims, ()
        try:
            with suppress(Unavailable):
                await self._budget.ledger.forget(self._id)
        finally:
            self._budget.queue.release(claims)


_current: ContextVar[BudgetedExchange | None] = ContextVar("assay_egress_exchange", default=None)
# The pool cannot pass an argument to a connection. It dials, writes and reads in the task that
# sends, so that task's context holds the exchange.


def current_exchange() -> BudgetedExchange | None:
    """Return the exchange in which this task sends."""
    return _current.get()


class SiteBudgetHttp:
    """Limits another `net.egress.ports.EgressClient` to a daily number of requests per site.

    Every request counts, including each hop of a redirect, so that no site can make us call a third
    host often. Requests to the IPFS gateway have a budget of their own and pass.
    """

    def __init__(self, http: EgressClient, take: Callable[[str], Awaitable[bool]]) -> None:
        """Create it.

        `take` counts a request to a registrable domain, False if none are left today.
        """
        self._http = http
        self._take = take

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        """Send like the wrapped client; raises `Failure.BUDGET` if the site's day is used up."""
        if not current_use().is_document:
            try:
                host = urlsplit(request.url).hostname or ""
            except ValueError:
                host = ""
            if not await self._take(domain_of(host)):
                raise EgressError(Failure.BUDGET, "the site has had its share of files today")
        return await self._http.send(request, limits)
