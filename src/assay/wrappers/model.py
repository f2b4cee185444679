"""Wrapper configs, their terms, and a request on its way through the pipeline. Pure.

The stages are types: a request that was not matched cannot be trusted, one that was not admitted
cannot be paid for, and one that was not paid for cannot be forwarded. A free wrapper yields `Free`,
an open one `NotRequired`: absence is never permission. Stages are created once a request and never
changed; they are not frozen, because that would double their cost. Source:
interface.md#wrapper-configuration, #wrapper-body, #wrappers.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from assay.common.errors import Conflict, NotFound, ServiceError, TooLarge, TooMany
from assay.common.http_heads import HeaderPairs
from assay.gate.decision import Denied
from assay.gate.model import ColdStart, GateInput
from assay.http1.model import Caller, Target
from assay.identity.model import AgentHeaders
from assay.payments.model import ClaimedPayment, LedgerEntry, ProtocolName, Quote
from assay.wrappers.tier_terms import (
    FREE_RUNG_MIN,
    TIERS,
    Enforce,
    FreeQuota,
    TierTerms,
    terms_for,
)

_DAYS_OF = {"day": 31, "month": 1}
_STRICTEST_FIRST = ("deny", None, "throttle", "allow")


@dataclass(frozen=True, slots=True)
class Terms:
    """What a wrapper requires of a caller before it forwards. `price` is in micro-dollars."""

    price: int = 0
    min_score: float | None = None
    """None if no trust is required."""
    needs_proof: bool = False
    cold_start: str | None = None
    """What happens to an unproven agent, if trust is required."""
    tier_prices: tuple[int, ...] = ()
    """The price of each tier, best first; empty if `price` is everybody's."""
    free_calls: int = 0
    """Calls a month that an agent has for nothing."""

    def ask_more_than(self, other: "Terms") -> bool:
        """Return whether a caller who meets the other terms may not meet these."""
        pairs = zip(self.prices, other.prices, strict=True)
        if any(mine > theirs for mine, theirs in pairs):
            return True
        if self.price and self.free_calls < other.free_calls:
            return True
        if self.min_score is None:
            return False
        if other.min_score is None or self.min_score > other.min_score:
            return True
        if _STRICTEST_FIRST.index(self.cold_start) < _STRICTEST_FIRST.index(other.cold_start):
            return True
        return self.needs_proof and not other.needs_proof

    @property
    def prices(self) -> tuple[int, ...]:
        """Return the price of callers without proof, and of each tier."""
        return (self.price, *(self.tier_prices or (self.price,) * len(TIERS)))


class PaymentLimits:
    """The limits that a call's payment counts against; none here. Methods may raise `TooMany`.

    A payment counts by how far it is proven, so that payments which anybody can make up use up
    nothing of payers at the same address.
    """

    async def refused(self) -> None:
        """Count a payment that its payer did not sign, or that is not for this call."""

    async def signed(self, payer: str) -> None:
        """Count a payment that its payer has signed; they may not have the money."""
        del payer

    async def verified(self, payer: str) -> None:
        """Count a payment that is claimed for this call and valid."""
        del payer


NO_PAYMENT_LIMITS: Final = PaymentLimits()


IdentityProof = Literal["required", "asserted"]
SettleWhen = Literal["after", "before"]

MAX_BODY_BYTES = 10 * 1024 * 1024
"""Default body cap. Source: conventions.md#wrapper."""

TIMEOUT_MS = 30_000
"""Default time for the head of an upstream's answer, and for each further piece."""

ANY_METHOD = "*"
"""A config for methods that have none of their own."""


class WrapperNotFound(NotFound):
    """No active wrapper matches operator, path and method (interface.md#wrapper-errors)."""

    code = "wrapper_not_found"


class EndpointNotFound(NotFound):
    """The operator has no wrapper with this id."""

    code = "endpoint_not_found"


class EndpointOverlaps(Conflict):
    """Another active wrapper of the operator answers this path and method."""

    code = "endpoint_overlaps"


class TrustDenied(Denied):
    """The agent did not pass (interface.md#wrapper-errors)."""

    known: "AdmittedAgent | None" = None
    """The agent, for the call log."""


class RateLimitExceeded(TooMany):
    """The agent made more requests than the wrapper allows (interface.md#wrapper-errors)."""

    code = "rate_limit_exceeded"


class WrapperTooLarge(TooLarge):
    """The body exceeds the wrapper's limit (interface.md#wrapper-errors)."""

    code = "payload_too_large"


@dataclass(frozen=True, slots=True)
class UpstreamAuth:
    """A header that is added to every upstream request; its secret is only stored sealed."""

    header: str
    sealed_secret: bytes


@dataclass(frozen=True, slots=True)
class WrapperConfig:
    """An operator's API as agents reach it. `price` is in micro-dollars."""

    id: str
    operator_id: str
    path: str
    method: str
    price: int
    description: str
    rate_limit: int | None
    target_url: str
    """Empty for a wrapper that is only listed with its price, by the earlier form
    (interface.md#the-earlier-wrapper-form)."""
    protocol: ProtocolName
    network: str
    payout_address: str | None
    trust_enabled: bool
    min_score: float
    identity_proof: IdentityProof
    settle: SettleWhen
    max_body_bytes: int
    timeout_ms: int
    auth: UpstreamAuth | None
    active: bool
    created_at: datetime
    pass_response_headers: tuple[str, ...] = ()
    """Lower-case names of the upstream's header fields that pass although they do not by
    default."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call it from a browser; `*` for any. Empty: the upstream decides."""
    fee_rate: Decimal = Decimal(0)
    """Its account's fee rate when it was read, 0 to 1."""
    revision: int = 1
    """The number of its revision, from 1."""
    cold_start: ColdStart | None = None
    """What happens to an unproven agent; None: the threshold decides."""
    pricing: tuple[TierTerms, ...] = ()
    """Terms by tier, best first."""
    free_quota: FreeQuota | None = None
    enforce: Enforce = "enforce"

    @property
    def terms(self) -> Terms:
        """Return what it requires of a caller."""
        is_enforced = self.trust_enabled and self.enforce == "enforce"
        min_score = self.min_score if is_enforced else None
        needs_proof = self.identity_proof == "required"
        found = [terms_for(self.pricing, tier) for tier in TIERS if self.pricing]
        prices = tuple(self.price if one is None else one.price for one in found)
        quota, days = self.free_quota, _DAYS_OF
        free_calls = 0 if quota is None else quota.calls * days[quota.per]
        return Terms(self.price, min_score, needs_proof, self.cold_start, prices, free_calls)


@dataclass(slots=True)
class InboundRequest:
    """A request below `/wrap/{operatorId}`, as it came.

    `path` begins with a slash and is still percent-encoded; header names are lower case.
    """

    method: str
    path: str
    query: str | None
    """What follows the question mark; None without one."""
    headers: HeaderPairs
    agent: AgentHeaders
    agent_id: str | None
    chain: str | None
    client_address: str
    request_id: str
    content_length: int | None
    """The declared length; None for a body of unknown length, 0 without a body."""
    caller: Caller
    """Whom it counts for before it has paid: an agent with a session, else its address."""
    body: "Callable[[int], AsyncIterator[bytes]]"
    """Yields the body in pieces, once; raises `WrapperTooLarge` beyond that many bytes."""


@dataclass(frozen=True, slots=True)
class WrapperRoute:
    """A config that is ready for requests."""

    config: WrapperConfig
    target: Target
    gate_request: GateInput
    upstream_header: tuple[bytes, bytes] | None
    """The opened auth header. It is never logged and never in an answer."""


class RouteMatch(NamedTuple):
    """The route of a request, and the path that is forwarded."""

    route: WrapperRoute
    path: str


@dataclass(slots=True)
class RoutedRequest:
    """A request and the wrapper that answers it; `incoming.path` is the forwarded path."""

    incoming: InboundRequest
    route: WrapperRoute

    @property
    def config(self) -> WrapperConfig:
        """Return the wrapper's config."""
        return self.route.config


@dataclass(slots=True)
class NotRequired:
    """The wrapper requires no trust; `key` is the payer, if one is known."""

    key: str
    would_deny: str | None = None
    """Why the trust check would have refused it, if it only observes."""

    @property
    def limit_key(self) -> str:
        """Return whom the rate limit counts; empty: the payer, else the address."""
        return self.key


@dataclass(slots=True)
class AdmittedAgent:
    """An agent that passed, or that was only observed."""

    agent_id: str
    address: str
    proven: bool
    tier: str
    score: float
    session: str | None = None
    """A session that began with this request."""
    chain: str | None = None
    """Slug of the chain that it is registered on; None for a key agent."""
    route: str | None = None
    rung: int = 0
    would_deny: str | None = None
    """Why the trust check would have refused it, if it only observes."""
    evaluation_id: str = ""
    """The evaluation that the decision rests on."""

    @property
    def key(self) -> str:
        """Return its name if it is proven, else nothing: anybody could claim to be it."""
        if not self.proven:
            return ""
        return self.agent_id if self.chain is None else f"{self.chain}/{self.agent_id}"

    @property
    def limit_key(self) -> str:
        """Return whom the rate limit counts; empty: the payer, else the address.

        Agents of rung 0 cost nothing to make: those that were only observed have no limit each.
        """
        return self.key if self.would_deny is None else self.quota_key

    @property
    def quota_key(self) -> str:
        """Return whose free calls it uses: its own, or those that all others share."""
        return self.key if self.rung >= FREE_RUNG_MIN else ""


Trust: TypeAlias = NotRequired | AdmittedAgent


@dataclass(slots=True)
class AuthorizedRequest:
    """A request whose agent passed, or that needs no trust."""

    matched: RoutedRequest
    trust: Trust


@dataclass(slots=True)
class RateLimitedRequest:
    """A request within its limit; `limits` are the headers that say how much is left."""

    trusted: AuthorizedRequest
    limits: HeaderPairs

    @property
    def matched(self) -> RoutedRequest:
        """Return the routed request."""
        return self.trusted.matched


@dataclass(frozen=True, slots=True)
class Free:
    """The call costs nothing."""


@dataclass(slots=True)
class PayableRequest:
    """A request whose payment is claimed and verified, or that is free."""

    admitted: RateLimitedRequest
    payment: "Free | ClaimedPayment"
    body: bytes | None = None
    """The body, if the payment required reading it."""


@dataclass(frozen=True, slots=True)
class WrapperResponse:
    """The answer. `close` is called in any case; `delivered` when the last byte is out."""

    status: int
    headers: HeaderPairs
    body: "bytes | AsyncIterator[bytes]"
    close: "Callable[[], None] | None" = None
    delivered: "Callable[[], Awaitable[None]] | None" = None


@dataclass(slots=True)
class CallRecord:
    """What the call log will contain about a request; the stages fill it in."""

    incoming: InboundRequest
    operator_id: str
    begun_s: float
    target: str = ""
    """Path and query as they were sent, below our own address."""
    config: WrapperConfig | None = None
    quote: Quote | None = None
    known: AdmittedAgent | None = None
    """The proven agent, if its terms had to be known first: a signature proves only once."""
    trust: Trust | None = None
    payer: str | None = None
    entry: LedgerEntry | None = None
    is_sale: bool = False
    """Whether the answer is what a settled payment bought, sent for the first time."""
    outcome: str = "forwarded"
    answer_headers: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    """Headers for any answer, such as a session that began."""
    release: "Callable[[], None] | None" = None
    """Releases the memory that is held for the call; called at the end."""
    refusal: "ServiceError | None" = None
    """Set if its address is over its limit: it is raised unless a valid payment comes."""
    payments: PaymentLimits = NO_PAYMENT_LIMITS


QUOTES_MAX: Final = 100
"""Revisions of one wrapper, price and network that a payment is held against."""


ChangeResult = Literal["changed", "overlaps", "stale"]


class FastPathCall(Protocol):
    """What differs between two requests of the very same bytes, and how this one went."""

    client_address: str
    caller: Caller
    request_id: str
    begun_s: float
    status: int
    outcome: str
    bytes_out: int
