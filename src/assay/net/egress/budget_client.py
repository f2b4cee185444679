"""The egress budget of outbound requests: claimed before they are sent, counted while they run.

A request claims the budget of its host's domain before the name is resolved, and that of the
address before the connection, so that a thousand names of one address share one budget. Bytes are
counted on the connection itself, TLS included. Source: ADR 0016.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar

from assay.common.egress_budget import (
    BudgetLedger,
    BudgetRules,
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
from assay.net.egress.budget_claims import ClaimQueue, refused_for_budget
from assay.net.egress.consent import Consent, Consents, origin_of
from assay.net.egress.domain import domain_of, is_exempt, network_of
from assay.net.egress.ports import EgressError, Limits
from assay.net.egress.url import EgressPolicy

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
            raise refused_for_budget("its connection was made while its host consented", 1.0)

    async def open(self, target: Target) -> None:
        """Claim the budget of the host's name. Raises `EgressError`."""
        origin = origin_of(target)
        try:
            self._consent = await self._budget.consent_of(origin, self._use)
        except Unavailable as error:
            raise refused_for_budget("the budget cannot be read", 1.0) from error
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
            await self._let_go()
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

    async def _let_go(self) -> None:
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
