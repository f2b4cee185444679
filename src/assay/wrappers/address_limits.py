"""Limits of addresses: answers left unread, and payments beyond a used-up limit.

A caller that asks and does not read makes the upstream send for nothing: 72 bytes of a request
caused megabytes. What a caller leaves unread in a minute is bounded over all wrappers. A caller
that reads what it asks for is never refused. Source: ADR 0016.

Anybody can make up a payment, or sign one without having the money. Each kind of payment has a
limit of its own, so that strangers at an address do not use up its payers' limits. Source:
conventions.md#open-endpoints.
"""

from math import ceil
from typing import Final

from typing_extensions import override

from assay.common.cache import BoundedMap
from assay.common.clock import Clock
from assay.common.errors import TooMany
from assay.common.quota_lease import QuotaLease
from assay.http1.model import Caller, payer_at
from assay.server.rate_limits import caller_of, rate_limit
from assay.server.request_context import RequestContext
from assay.wrappers.model import PaymentLimits

UNREAD_S: Final = 60.0
"""Seconds that unread bytes count, from the first of them."""

UNREAD_CALLERS_MAX: Final = 10_000
"""Callers that are remembered; the one that began longest ago is forgotten first."""

AGENTS: Final = 4
"""Agents cost nothing to create: all agents of one address together may leave this many times as
much."""


class UpstreamUnread(TooMany):
    """The caller has left too much of wrappers' answers unread."""

    code = "wrapper_upstream_unread"


class UnreadAnswers:
    """Counts unread bytes for the callers of one process: each agent, payer or address."""

    def __init__(self, clock: Clock, bytes_max: int) -> None:
        """Create it; a caller that leaves `bytes_max` unread is refused until the minute ends."""
        self._clock = clock
        self._bytes_max = bytes_max
        self._callers: BoundedMap[str, tuple[int, float]] = BoundedMap(UNREAD_CALLERS_MAX)

    def note(self, caller: Caller, size_bytes: int) -> None:
        """Count bytes that a caller has left unread."""
        if size_bytes <= 0:
            return
        self._add(caller.own, size_bytes)
        if caller.agents:
            self._add(caller.agents, size_bytes)

    def wait_s(self, caller: Caller) -> float:
        """Return the seconds for which the caller is refused; 0 if it is not. Called every time."""
        wait_s = self._wait_s(caller.own, self._bytes_max)
        if caller.agents:
            wait_s = max(wait_s, self._wait_s(caller.agents, AGENTS * self._bytes_max))
        return wait_s

    def require(self, caller: Caller) -> None:
        """Raise `UpstreamUnread` if the caller is refused now."""
        wait_s = self.wait_s(caller)
        if wait_s:
            raise UpstreamUnread(
                "You have left too much of wrappers' answers unread: read what you ask for.",
                retry_after_s=max(1, ceil(wait_s)),
            )

    def _add(self, key: str, size_bytes: int) -> None:
        now_s = self._clock.monotonic_s()
        before, ends_s = self._callers.get(key) or (0, 0.0)
        if ends_s <= now_s:
            before, ends_s = 0, now_s + UNREAD_S
        self._callers.put(key, (before + size_bytes, ends_s))

    def _wait_s(self, key: str, bytes_max: int) -> float:
        known = self._callers.get(key)
        if known is None or known[0] < bytes_max:
            return 0.0
        return max(0.0, known[1] - self._clock.monotonic_s())


PAYERS_MAX: Final = 100_000
"""Payers that are remembered as having paid."""


class PayerLimits:
    """Counts payments: by address as far as they are proven, and verified ones by payer."""

    def __init__(
        self,
        unread: UnreadAnswers,
        clock: Clock,
        quota_lease: QuotaLease | None,
        *,
        per_minute: int,
        keyed_per_minute: int,
    ) -> None:
        self._unread = unread
        # As large as an operator's: it bounds how many signatures one address can have checked.
        self.read = rate_limit("wrapper read", keyed_per_minute, clock, quota_lease)
        self.refused = rate_limit("wrapper refused", per_minute, clock, quota_lease)
        self.signed = rate_limit("wrapper payments", per_minute, clock, quota_lease)
        self.payers = rate_limit("wrapper payers", per_minute, clock, quota_lease)
        self.have_paid: BoundedMap[str, bool] = BoundedMap(PAYERS_MAX)

    def within(self, exchange: RequestContext) -> PaymentLimits:
        """Return limits for a call within its address's limit: only its payer counts."""
        return _Within(self, exchange)

    async def beyond(self, exchange: RequestContext) -> PaymentLimits:
        """Return limits for a paid call beyond its address's limit. Raises `TooMany`."""
        await self.read.require(caller_of(exchange.client_address))
        return _Beyond(self, exchange)

    def recognise(self, payer: str, exchange: RequestContext) -> None:
        """Count the call for its payer from now on. Raises `UpstreamUnread`."""
        self.have_paid.put(payer, value=True)
        exchange.wrapper_caller = payer_at(payer, exchange.client_address)
        self._unread.require(exchange.wrapper_caller)


class _Within(PaymentLimits):
    def __init__(self, limits: PayerLimits, exchange: RequestContext) -> None:
        self._limits = limits
        self._exchange = exchange

    @override
    async def verified(self, payer: str) -> None:
        self._limits.recognise(payer, self._exchange)


class _Beyond(PaymentLimits):
    def __init__(self, limits: PayerLimits, exchange: RequestContext) -> None:
        self._limits = limits
        self._exchange = exchange
        self._caller = caller_of(exchange.client_address)

    @override
    async def refused(self) -> None:
        await self._limits.refused.require(self._caller)

    @override
    async def signed(self, payer: str) -> None:
        if payer in self._limits.have_paid:  # others at the address use up nothing of theirs
            self._caller = f"{self._caller} {payer}"
        await self._limits.signed.require(self._caller)

    @override
    async def verified(self, payer: str) -> None:
        self._limits.signed.give_back(self._caller)
        await self._limits.payers.require(payer)
        self._limits.recognise(payer, self._exchange)
