"""What the service answers, typed. Members that this version does not know are in `raw`."""

import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from typing_extensions import Protocol, TypedDict

from assay_client.errors import UnexpectedResponse

ColdStart = Literal["deny", "throttle", "allow"]


class GateOptions(TypedDict, total=False):
    """Options of a gate call, besides the agent. Source: interface.md#gate-decision."""

    address: str | None
    session: str | None
    challenge: str | None
    signature: str | None
    chain: str | None
    min_score: float | None
    ttl_ms: float | None
    trust_signals: tuple[str, ...]
    cold_start: ColdStart | None


class WrapperOptions(TypedDict, total=False):
    """Members of a wrapper. Source: interface.md#wrapper-body."""

    path: str
    price_per_call: Decimal | str
    method: str
    description: str | None
    rate_limit: int | None
    target_url: str | None
    payment_protocol: Literal["x402", "mpp"]
    payment_network: str | None
    payout_address: str | None
    trust_enabled: bool
    min_score: float
    cold_start: ColdStart | None
    identity_proof: Literal["required", "asserted"]
    settle: Literal["after", "before"]
    max_body_bytes: int
    timeout_ms: int
    upstream_auth_type: Literal["none", "header"]
    upstream_auth_header: str | None
    upstream_auth_secret: str | None
    pass_response_headers: tuple[str, ...]
    cors_origins: tuple[str, ...]
    active: bool


@dataclass(frozen=True)
class Chain:
    """The chain of an agent."""

    name: str
    chain_id: int | None = None


@dataclass(frozen=True)
class Ladder:
    """The rung that is proven, and the most points it allows."""

    rung: int
    ceiling: float


@dataclass(frozen=True)
class Decision:
    """A gate decision; enforce `allow`. Source: interface.md#gate-decision."""

    allow: bool
    tier: str
    risk_level: str
    route: str
    agent_id: str
    wallet: str
    chain: Chain
    score: float
    score_low: float
    score_high: float
    ladder: Ladder
    confidence: float
    min_score: float
    reasons: tuple[str, ...]
    cached: bool
    sandbox_ran: bool
    identity_proven: bool
    evaluated_at: datetime
    valid_until: datetime
    expires_at: datetime
    decision_token: str = field(repr=False)
    denial_reason: str | None = None
    cold_start: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    agent_session: str | None = field(default=None, repr=False)
    """A session that began with this call, for the agent."""


@dataclass(frozen=True)
class Profile:
    """The trust profile of a registered agent. Source: interface.md#trust-profile."""

    agent_id: str
    chain: Chain
    score: float
    score_low: float
    score_high: float
    ladder: Ladder
    confidence: float
    tier: str
    risk_level: str
    reasons: tuple[str, ...]
    timestamp: datetime
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation on demand. Source: interface.md#sandbox-result."""

    agent_id: str
    wallet: str
    chain: Chain
    tier: str
    risk_level: str
    score: float
    score_low: float
    score_high: float
    ladder: Ladder
    route: str
    meets_threshold: bool
    message: str
    snapshot_hash: str
    evaluated_at: datetime
    reasons: tuple[str, ...]
    evidence_hash: str | None = None
    cached: bool = False
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True)
class Wrapper:
    """A wrapper of the operator. Source: interface.md#wrapper-configuration."""

    id: str
    path: str
    method: str
    price_per_call: Decimal
    description: str
    target_url: str
    payment_protocol: str
    payment_network: str
    trust_enabled: bool
    min_score: float
    active: bool
    created_at: datetime
    revision: int
    warnings: tuple[str, ...] = ()
    rate_limit: int | None = None
    payout_address: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True)
class Operator:
    """An account."""

    id: str
    email: str
    name: str
    role: str
    plan: str


@dataclass(frozen=True)
class Allowance:
    """Gate calls of this UTC month; `limit` is None on a plan without one."""

    used: int
    resets_at: datetime
    limit: int | None = None


@dataclass(frozen=True)
class Account:
    """The operator's account and its allowance. Source: interface.md#account-responses."""

    operator: Operator
    allowance: Allowance
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True)
class DecisionClaims:
    """The claims of a verified decision token. Source: conventions.md#gate."""

    iss: str
    aud: str
    sub: str
    """The agent and its chain, such as `eip155:1/22`."""
    jti: str
    iat: int
    exp: int
    agent_address: str
    chain: str
    allow: bool
    score: float
    min_score: float
    tier: str
    risk_level: str
    route: str
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True)
class ReceiptRequest:
    """The request of a receipt. Digests have the form of RFC 9530: `sha-256=:BASE64:`."""

    method: str
    target: str
    """Digest of path and query, as they were sent."""
    content_digest: str
    """Digest of the body as it was sent."""


@dataclass(frozen=True)
class ReceiptResponse:
    """The response of a receipt."""

    status: int
    content_digest: str
    """Digest of the body as it was sent, before any decompression."""


@dataclass(frozen=True)
class ReceiptPayment:
    """The payment of a receipt."""

    protocol: str
    network: str
    asset: str
    amount: str
    """In base units of the asset."""
    pay_to: str
    payer: str
    transaction: str


@dataclass(frozen=True)
class ReceiptClaims:
    """The claims of a verified receipt of a paid call."""

    iss: str
    iat: int
    jti: str
    """Id of the payment."""
    operator: str
    wrapper: str
    request: ReceiptRequest
    response: ReceiptResponse
    payment: ReceiptPayment
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """Every claim; `decision` is there if the wrapper requires trust."""


class Decodable(Protocol):
    """A dataclass of this module."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


D = TypeVar("D", bound=Decodable)


def decode(kind: type[D], body: object, **given: object) -> D:
    """Return a JSON object as `kind`; raises `UnexpectedResponse` where a member does not fit."""
    members = object_of(body)
    if members is None:
        raise UnexpectedResponse(f"{kind.__name__} is not a JSON object.")
    values = dict(given)
    for one in fields(kind):
        name = camel_case(one.name)
        if one.name == "raw":
            values["raw"] = members
        elif one.name in given:
            continue
        elif members.get(name) is not None:
            values[one.name] = _value(one.type, members[name], f"{kind.__name__}.{name}")
        elif one.default is MISSING and one.default_factory is MISSING:
            raise UnexpectedResponse(f"{kind.__name__}.{name} is missing.")
    return kind(**values)


def object_of(value: object) -> dict[str, Any] | None:
    """Return a JSON object, or None for any other value."""
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


def list_of(value: object) -> list[Any] | None:
    """Return a JSON array, or None for any other value."""
    return value if isinstance(value, list) else None  # pyright: ignore[reportUnknownVariableType]


def camel_case(name: str) -> str:
    """Return a name as the interface writes it: `min_score` as `minScore`."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _value(kind: Any, value: Any, place: str) -> object:
    """Return a JSON value as the type of its field."""
    if get_origin(kind) in {Union, types.UnionType}:
        kind = get_args(kind)[0]
    if is_dataclass(kind):
        return decode(kind, value)  # type: ignore[type-var]
    entries = list_of(value)
    if get_origin(kind) is tuple and entries is not None:
        return tuple(_value(get_args(kind)[0], one, place) for one in entries)
    if kind in _PARSED and isinstance(value, str):
        try:
            return _PARSED[kind](value)
        except (ValueError, InvalidOperation):
            raise UnexpectedResponse(f"{place} cannot be read.") from None
    accepted = (int, float) if kind is float else kind
    if kind in _PLAIN and isinstance(value, accepted) and (kind is bool) == isinstance(value, bool):
        return float(value) if kind is float else value
    raise UnexpectedResponse(f"{place} does not have the type that the interface gives it.")


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if found.tzinfo is None:
        raise ValueError
    return found


_PARSED: Mapping[Any, Callable[[str], object]] = {datetime: _time, Decimal: Decimal}
_PLAIN = frozenset({str, int, float, bool})
