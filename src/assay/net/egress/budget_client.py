"""The egress budget where requests leave: claimed before they do, counted while they are read.

A request is claimed on the budget of its host's domain before the name is resolved, and on that of
the address before it is dialled, so that a thousand names of one address share one budget. Bytes
are counted on the connection itself, TLS included. Source: ADR 0016.
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
"""What a host that has not consented may have under way to us without our reading it: the receive
buffer of its connections. It is claimed with every request, so that it is never beyond a budget."""

GLANCE_WINDOW_BYTES = 4608
"""The same for requests that read only the beginning of an answer: the least Linux has."""

GLANCE_BYTES_MAX = 4 * 1024
"""Bodies read up to this are glances."""

ANSWER_BYTES = 8 * 1024
"""What an answer may have before it asks for more: a TLS handshake and a short body."""

EXTENSION_BYTES = 32 * 1024
"""Asked for at a time where nobody knows how long an answer is."""

READ_BYTES = 4 * 1024
RECORD_PART = 32
"""What the records of TLS add, as a part; where it is more, more is asked for."""


class OverBudget(Exception):
    """An answer was cut, for its host's budget has no more bytes."""


class EgressBudget:
    """Opens exchanges: requests that are counted. One for all outgoing clients of the process."""

    def __init__(
        self,
        ledger: BudgetLedger,
        consents: Consents,
        rules: BudgetRules,
        configured: frozenset[str] = frozenset(),
    ) -> None:
        """`configured` are origins that the service reads registrations from by its settings.

        They have the ceiling of a gateway for that, and none of their own for anything else.
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
        """Count what is sent in the block; None for what has no budget.

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
        """The consent that a request to an origin may rest on; None in its networks is any."""
        if use.use_class is UseClass.OWN:
            return await self.consents.find(use.own)
        if self.is_configured(origin, use):
            return Consent("configured", ())
        return await self.consents.find(origin)

    def is_configured(self, origin: str, use: EgressUse) -> bool:
        """Whether a document is read from an origin that the operator has set for it."""
        return use.is_document and origin in self._configured


class BudgetedExchange:
    """One request on its budgets. Connections ask it before they dial, write and read."""

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
        """Where it is connected to."""
        self.waited_s = 0.0
        """Seconds spent on counting, which say nothing about the host."""
        self.is_sent = False
        """Whether any byte has gone out."""
        self.is_whole = False
        """Whether the answer was read to its end: nothing more of it is under way."""

    @property
    def window_bytes(self) -> int | None:
        """What may be under way on a connection made for it; None: as the system has it."""
        return None if self._is_exempt or self._consents_at(self.address) else self._window_bytes

    @property
    def pool(self) -> int | None:
        """Names the connections it may use: those of hosts that consent have any window."""
        return None if self._consent else self._window_bytes

    @property
    def cut_bytes(self) -> int:
        """What cutting its answer off costs: what is under way, and another TLS handshake."""
        return 0 if self.window_bytes is None else self._window_bytes + self._opening_bytes

    def uses(self, window_bytes: int | None, opening_bytes: int) -> None:
        """It is sent on a connection with this window, which may have been made for another.

        Opening that connection took so many bytes. Raises `EgressError` when more may be under way
        on it than can be counted.
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
        """Claim the budget of an address before it is dialled or written to. Raises as `open`."""
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
            # Each domain by itself: else an origin that consents could use up its neighbours'.
            await self._claim(f"consenting {network_of(address)} {self._domain}", rules.consenting)
        else:
            await self._claim(f"domain {network_of(address)}", rules.unproven)
        self.address = address

    async def room(self, wanted_bytes: int) -> int:
        """How much may be read now, at most what is wanted. Raises `OverBudget`."""
        if self._is_exempt:
            return wanted_bytes
        if self._left() <= 0:
            with self._waiting():
                self._granted += await self._budget.queue.extend(self._claims, self._wanted_bytes())
            if self._left() <= 0:
                raise OverBudget
        # In small reads: a request for the beginning of an answer pays for no more.
        wanted_bytes = min(wanted_bytes, READ_BYTES) if self._consent is None else wanted_bytes
        return min(wanted_bytes, self._left())

    def expect(self, size_bytes: int) -> None:
        """So many bytes of answer are left to be read, as its head says."""
        self._ends_bytes = self._bytes + size_bytes + size_bytes // RECORD_PART

    def count(self, size_bytes: int) -> None:
        """So many bytes were read or written."""
        self._bytes += size_bytes

    async def close(self) -> None:
        """Settle what it really cost."""
        if not self._claims:
            return
        # What was cut off may still be under way: it was sent, whether it is read or not.
        under_way = 0 if self.is_whole or not self.is_sent else self._window_bytes
        claims, self._claims = self._claims, ()
        try:
            with suppress(Unavailable):  # then it counts as claimed, which is more
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
        """Claim with a narrower window where there is no room for a wider one."""
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
        """What is waited for in the block is no time of the host's, be it cut off or not."""
        began_s = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            self.waited_s += asyncio.get_running_loop().time() - began_s

    def _is_strange(self, use: EgressUse) -> bool:
        """Whether the host agreed to be called for another agent than the one that is visited."""
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
# The pool has no argument that reaches a connection; it dials, writes and reads in the task that
# sends, so the exchange is found in that task's context.


def current_exchange() -> BudgetedExchange | None:
    """The exchange this task sends in."""
    return _current.get()
