"""Rules for creating and changing wrappers, and the warnings that operators receive.

- What an operator may ask for: the rules of POST /operator/endpoints (interface.md#wrapper-body).
- What a partial update asks for: the whole wrapper as it would be afterwards.
- Whether one wrapper accepts spellings of another wrapper's path, which is a warning.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from assay.common.errors import ServiceError
from assay.common.http_heads import ANY, canonical_origin
from assay.common.numbers import DECIMALS
from assay.evaluation.model import Tier
from assay.gate.model import ColdStart
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from assay.payments.model import PaymentNetwork, ProtocolName
from assay.payments.networks import DEFAULTS, accepted_names, network_id, payee_problem
from assay.wrappers.matching import (
    BadPath,
    check_method,
    check_pattern,
    folded_pattern,
    methods_for,
    rank_of,
)
from assay.wrappers.model import (
    ANY_METHOD,
    MAX_BODY_BYTES,
    TIMEOUT_MS,
    IdentityProof,
    SettleWhen,
    WrapperConfig,
)
from assay.wrappers.response_fields import EXCEPTIONS_MAX, may_be_excepted
from assay.wrappers.tier_terms import TIERS, Enforce, FreeQuota, TierTerms

BODY_BYTES_CEILING = 100 * 1024 * 1024
TIMEOUT_MS_CEILING = 600_000
RATE_LIMIT_MAX = 100_000_000
DESCRIPTION_CHARS_MAX = 1000
SECRET_CHARS_MAX = 8192
ORIGINS_MAX = 32

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_NEVER_SET = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer"}
    | {"upgrade", "expect", "proxy-authorization", "proxy-connection", "via"}
    | {"idempotency-key"}  # equal for every call, it would make them one
)
"""Headers that frame a request: operators must not set them. Source: RFC 9110, section 7.6.1."""

_OURS_TO_SET = ("x-assay-", "x-forwarded-")
_PRIVATE, _PUBLIC = EgressPolicy(allow_private=True, require_https=False), EgressPolicy()


@dataclass(frozen=True, slots=True)
class AskedTier:
    """Terms of a tier as an operator asks for them; the price is in US dollars."""

    min_tier: Tier
    price: Decimal
    rate_limit: int | None = None

    @property
    def terms(self) -> TierTerms:
        """Return the terms as they are stored."""
        return TierTerms(self.min_tier, int(self.price.scaleb(DECIMALS)), self.rate_limit)


@dataclass(frozen=True, slots=True)
class NewEndpoint:
    """What an operator asks for, with the defaults of interface.md#wrapper-body."""

    path: str
    price: Decimal
    target_url: str | None
    method: str = "GET"
    description: str = ""
    rate_limit: int | None = None
    protocol: ProtocolName = "x402"
    network: str | None = None
    payout_address: str | None = None
    trust_enabled: bool = False
    min_score: float = 65.0
    cold_start: ColdStart | None = None
    identity_proof: IdentityProof = "required"
    settle: SettleWhen = "after"
    max_body_bytes: int = MAX_BODY_BYTES
    timeout_ms: int = TIMEOUT_MS
    auth_type: str = "none"
    auth_header: str | None = None
    auth_secret: str | None = None
    pass_response_headers: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    pricing: tuple["AskedTier", ...] = ()
    free_quota: FreeQuota | None = None
    enforce: Enforce = "enforce"
    active: bool = True
    """False for a draft: it is stored and answers nobody."""
    is_earlier_form: bool = False
    """Whether only fields of the earlier form were given: then it may have no target
    (interface.md#the-earlier-wrapper-form)."""

    @property
    def network_id(self) -> str:
        """Return the id of the network, by any of its names; an unknown name unchanged."""
        if self.network is None:
            return DEFAULTS[self.protocol]
        return network_id(self.network) or self.network

    @property
    def leads_nowhere(self) -> bool:
        """Return whether it is only a path with a price: it is listed, and answers nobody."""
        return self.is_earlier_form and self.target_url is None


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """What the operator of the service has configured for all wrappers."""

    egress: EgressPolicy
    networks: Mapping[str, PaymentNetwork]
    payout_address: str | None
    price_max: Decimal
    operator_id: str = ""
    """The wrapper's operator; empty for one that no private upstream is opened to."""

    def of(self, operator_id: str) -> "ConfigRules":
        """Return the rules for one operator's wrappers."""
        return replace(self, egress=self.egress.of(operator_id), operator_id=operator_id)


Found = tuple[str, str]


def problems_of(asked: NewEndpoint, rules: ConfigRules) -> Sequence[Found]:
    """Return every broken rule: the field, and a sentence that says what is wrong."""
    return [
        *_route_problems(asked),
        *_price_problems("pricePerCall", asked.price, rules),
        *_tier_problems(asked, rules),
        *_target_problems(asked, rules),
        *_payment_problems(asked, rules),
        *_auth_problems(asked),
        *_number_problems(asked),
        *_header_problems(asked),
    ]


def _route_problems(asked: NewEndpoint) -> list[Found]:
    found: list[Found] = []
    for name, check, value in (
        ("path", check_pattern, asked.path),
        ("method", check_method, asked.method),
    ):
        try:
            check(value)
        except BadPath as error:
            found.append((name, str(error)))
    if len(asked.description) > DESCRIPTION_CHARS_MAX or not asked.description.isprintable():
        found.append(("description", f"is at most {DESCRIPTION_CHARS_MAX} printable characters"))
    return found


def _price_problems(field: str, price: Decimal, rules: ConfigRules) -> list[Found]:
    if not price.is_finite() or not 0 <= price <= rules.price_max:
        return [(field, f"must be at least 0 and at most {rules.price_max} USD")]
    # Compare only: arithmetic rounds numbers with more digits than its context.
    if price != price.quantize(Decimal(1).scaleb(-DECIMALS)):
        return [(field, "must be a multiple of 0.000001 USD")]
    return []


def _tier_problems(asked: NewEndpoint, rules: ConfigRules) -> list[Found]:
    """Return what is wrong with terms by tier: nobody may pay more for a better grade."""
    found = _mode_problems(asked)
    places = [TIERS.index(one.min_tier) for one in asked.pricing]
    if len(set(places)) != len(places):
        found.append(("pricing", "has a tier twice"))
    for one in asked.pricing:
        found += _price_problems("pricing", one.price, rules)
        if one.rate_limit is not None and not 1 <= one.rate_limit <= RATE_LIMIT_MAX:
            message = f"rateLimit must be null or 1 to {RATE_LIMIT_MAX} requests a minute"
            found.append(("pricing", message))
    prices = [one.price for one in best_first(asked.pricing)]
    is_comparable = all(price.is_finite() for price in (*prices, asked.price))
    if is_comparable and [*prices, asked.price] != sorted([*prices, asked.price]):
        message = "prices must not rise with the tier, nor be above pricePerCall"
        found.append(("pricing", message))
    return found


def _mode_problems(asked: NewEndpoint) -> list[Found]:
    """Return what needs the trust check, and is asked for without it."""
    found: list[Found] = []
    if asked.pricing and not asked.trust_enabled:
        found.append(("pricing", "needs trustEnabled: a tier is known of proven agents only"))
    quota = asked.free_quota
    if quota is not None and not 1 <= quota.calls <= RATE_LIMIT_MAX:
        found.append(("freeQuota", f"calls must be 1 to {RATE_LIMIT_MAX}"))
    if asked.enforce == "observe" and not asked.trust_enabled:
        found.append(("enforce", "needs trustEnabled: there is nothing to observe"))
    return found


def best_first(pricing: Sequence[AskedTier]) -> list[AskedTier]:
    """Return entries by tier, the best first."""
    return sorted(pricing, key=lambda one: TIERS.index(one.min_tier))


def _target_problems(asked: NewEndpoint, rules: ConfigRules) -> list[Found]:
    if asked.leads_nowhere:
        return []
    if not asked.target_url:
        return [("targetUrl", "is needed: where requests are forwarded to")]
    target = parse_target(asked.target_url, rules.egress)
    if isinstance(target, RefusedUrl):
        return [("targetUrl", target.why + _how_to_open(asked.target_url, rules.operator_id))]
    if "?" in asked.target_url or "#" in asked.target_url:
        return [("targetUrl", "has a query or a fragment; the request's own query is passed on")]
    if any(part in {".", ".."} for part in target.path_and_query.split("/")):
        return [("targetUrl", "has dot segments")]
    return []


def _how_to_open(url: str, operator_id: str) -> str:
    """Return how to open an upstream on a private network, if `url` may name one; else nothing.

    The sentence is the same for everybody: it does not reveal what is opened to others.
    """
    target = parse_target(url, _PRIVATE)
    if isinstance(target, RefusedUrl):
        return ""
    if target.is_literal_ip and _PUBLIC.judge(target.host) is None:
        return ""
    host = f"[{target.host}]" if ":" in target.host else target.host
    return (
        "; for an API on your own network, the operator of this service sets"
        f" ASSAY_UPSTREAM_ALLOW={host}:{target.port} and"
        f" ASSAY_UPSTREAM_ALLOW_OPERATORS={operator_id}"
    )


def _payment_problems(asked: NewEndpoint, rules: ConfigRules) -> list[Found]:
    found: list[Found] = []
    network = rules.networks.get(asked.network_id)
    if network is None or network.protocol != asked.protocol:
        found.append(("paymentNetwork", f"must be one of {accepted_names(asked.protocol)}"))
    payout = asked.payout_address
    assets = {one.asset.address for one in rules.networks.values()}
    payee = payout or (rules.payout_address if asked.price else None)
    problem = None if payee is None else payee_problem(payee, assets)
    if problem is not None:
        found.append(("payoutAddress", problem))
    elif asked.leads_nowhere:
        return found  # nobody is asked for money if nothing is forwarded
    elif asked.price and payout is None and rules.payout_address is None:
        found.append(
            ("payoutAddress", "is needed: this service has no receiving wallet of its own")
        )
    return found


def _auth_problems(asked: NewEndpoint) -> list[Found]:
    if asked.auth_type == "none":
        given = asked.auth_header is not None or asked.auth_secret is not None
        return [("upstreamAuthType", "must be header when a header or secret is given")] * given
    found: list[Found] = []
    header, secret = asked.auth_header or "", asked.auth_secret or ""
    name = header.lower()
    if not _HEADER.fullmatch(name) or name in _NEVER_SET or name.startswith(_OURS_TO_SET):
        found.append(("upstreamAuthHeader", "must be the name of a header that may be set"))
    if len(secret) > SECRET_CHARS_MAX or not _HEADER_VALUE.fullmatch(secret):
        found.append(("upstreamAuthSecret", "must be printable ASCII, as a header's value is"))
    return found


def _number_problems(asked: NewEndpoint) -> list[Found]:
    found: list[Found] = []
    if asked.rate_limit is not None and not 1 <= asked.rate_limit <= RATE_LIMIT_MAX:
        found.append(("rateLimit", f"must be null or 1 to {RATE_LIMIT_MAX} requests a minute"))
    if not 0 <= asked.min_score <= 100:  # noqa: PLR2004 - the scale
        found.append(("minScore", "must be 0 to 100"))
    if not 0 <= asked.max_body_bytes <= BODY_BYTES_CEILING:
        found.append(("maxBodyBytes", f"must be 0 to {BODY_BYTES_CEILING}"))
    if not 1 <= asked.timeout_ms <= TIMEOUT_MS_CEILING:
        found.append(("timeoutMs", f"must be 1 to {TIMEOUT_MS_CEILING}"))
    return found


def _header_problems(asked: NewEndpoint) -> list[Found]:
    found: list[Found] = []
    names = asked.pass_response_headers
    if len(names) > EXCEPTIONS_MAX:
        found.append(("passResponseHeaders", f"are more than {EXCEPTIONS_MAX}"))
    shut = [name[:100] for name in names[:EXCEPTIONS_MAX] if not may_be_excepted(name)]
    found.extend(
        ("passResponseHeaders", f"{name!r} is not the name of a header that may be let through")
        for name in shut
    )
    origins = asked.cors_origins
    if len(origins) > ORIGINS_MAX:
        found.append(("corsOrigins", f"are more than {ORIGINS_MAX}"))
    if not all(origin_as_sent(origin) for origin in origins[:ORIGINS_MAX]):
        found.append(("corsOrigins", "must be origins such as https://app.example.com, or *"))
    return found


def origin_as_sent(text: str) -> str:
    """Return the origin as browsers send it, or `*`; empty if it is not an origin."""
    return ANY if text == ANY else canonical_origin(text) or ""


_EARLIER_FORM = frozenset({"path", "method", "price", "description", "rate_limit", "target_url"})
"""Source: interface.md#the-earlier-wrapper-form."""


class PreconditionFailed(ServiceError):
    """The wrapper is not the revision that `If-Match` names (RFC 9110, section 13.1.1)."""

    code = "precondition_failed"


@dataclass(frozen=True, slots=True)
class EndpointChange:
    """A change: new values by the names of `NewEndpoint`'s fields.

    Fields that are not given stay as they are. An `auth_secret` of None is not given.
    """

    given: Mapping[str, Any]
    active: bool | None = None

    @property
    def keeps_secret(self) -> bool:
        """Return whether the upstream's secret, if there is one, stays as it is."""
        is_dropped = self.given.get("auth_type") == "none"
        return not is_dropped and self.given.get("auth_secret") is None


def asked_of(config: WrapperConfig, change: EndpointChange, secret: str | None) -> NewEndpoint:
    """Return the wrapper as a new one would be asked for; `secret` is the one that it has."""
    given = dict(change.given)
    auth = config.auth if change.keeps_secret else None
    if "auth_type" not in given and (auth or given.get("auth_header") or not change.keeps_secret):
        given["auth_type"] = "header"
    if given.get("auth_type") == "header":
        given["auth_header"] = given.get("auth_header") or (config.auth and config.auth.header)
        given["auth_secret"] = given.get("auth_secret") or (secret if auth else None)
    is_other_protocol = given.get("protocol", config.protocol) != config.protocol
    asked = NewEndpoint(
        path=config.path,
        price=Decimal(config.price).scaleb(-DECIMALS),
        target_url=config.target_url or None,
        method=config.method,
        description=config.description,
        rate_limit=config.rate_limit,
        protocol=config.protocol,
        network=None if is_other_protocol else config.network,
        payout_address=config.payout_address,
        trust_enabled=config.trust_enabled,
        min_score=config.min_score,
        cold_start=config.cold_start,
        identity_proof=config.identity_proof,
        settle=config.settle,
        max_body_bytes=config.max_body_bytes,
        timeout_ms=config.timeout_ms,
        pass_response_headers=config.pass_response_headers,
        cors_origins=config.cors_origins,
        pricing=tuple(
            AskedTier(one.min_tier, Decimal(one.price).scaleb(-DECIMALS), one.rate_limit)
            for one in config.pricing
        ),
        free_quota=config.free_quota,
        enforce=config.enforce,
        is_earlier_form=not config.target_url and given.keys() <= _EARLIER_FORM,
    )
    return replace(asked, **given)


def secret_problems(
    config: WrapperConfig, asked: NewEndpoint, change: EndpointChange, egress: EgressPolicy
) -> list[Found]:
    """Return a problem if a kept secret would go to another host than it was given for.

    Otherwise anybody who may change a wrapper could have it sent to their own server, and read it.
    """
    if config.auth is None or not change.keeps_secret:
        return []
    old, new = (parse_target(url or "", egress) for url in (config.target_url, asked.target_url))
    if isinstance(new, RefusedUrl):
        return []  # the problem of the target says it already
    if isinstance(old, RefusedUrl) or (old.scheme, old.authority) != (new.scheme, new.authority):
        message = "is needed again: the target is another host, and the secret is not sent there"
        return [("upstreamAuthSecret", message)]
    return []


WARNINGS_MAX: Final = 20

COMPARED_AT_ONCE: Final = 10
"""Wrappers that are compared with one before other work runs: about ten milliseconds."""


def is_walked_round(strict: tuple[str, str], free: tuple[str, str]) -> bool:
    """Return whether some spelling of the first one's path matches the second one as spelled.

    Both are method and path of a config; the path of the first is no less exact.
    """
    first, second = (tuple(path[1:].split("/")) for _, path in (strict, free))
    core, other = folded_pattern(first), folded_pattern(second)
    if not _methods_overlap(strict[0], free[0]) or rank_of(core) > rank_of(other):
        return False
    return not _fits_pattern(first, second) and _patterns_overlap(core, other)


def _methods_overlap(one: str, other: str) -> bool:
    return ANY_METHOD in {one, other} or one in methods_for(other) or other in methods_for(one)


def _fits_pattern(pattern: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether the pattern matches every path that the other one matches, as spelled."""
    if pattern[-1] == "*":
        return other[: len(pattern) - 1] == pattern[:-1] and len(other) >= len(pattern)
    return len(pattern) == len(other) and all(
        mine == theirs or (mine.startswith("{") and theirs not in {"", "*"})
        for mine, theirs in zip(pattern, other, strict=True)
    )


def _patterns_overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether two folded patterns fit one path."""
    for mine, theirs in zip(one, other, strict=False):
        if "*" in {mine, theirs}:
            return True
        if mine != theirs and not mine.startswith("{") and not theirs.startswith("{"):
            return False
    longer = one if len(one) > len(other) else other
    rest = longer[min(len(one), len(other)) :]
    return rest in {(), ("*",)}


def _asks_more_beside(strict: WrapperConfig, free: WrapperConfig) -> bool:
    """Return whether the freer one's path accepts spellings of the stricter one's."""
    return strict.terms.ask_more_than(free.terms) and is_walked_round(
        (strict.method, strict.path), (free.method, free.path)
    )


def _warning_of(strict: WrapperConfig, free: WrapperConfig) -> str:
    """Return the warning for an operator about such a pair."""
    return (
        f"{free.method} {free.path} asks for less than {strict.method} {strict.path}. A request"
        f" that matches {free.path} and differs from {strict.path} only in letter case, slashes,"
        " dots, spaces, `;` parameters or percent-encoding is treated as one of"
        f" {strict.path}."
    )


async def warnings_beside(config: WrapperConfig, others: Sequence[WrapperConfig]) -> list[str]:
    """Return the warnings about a wrapper beside each of the others."""
    found: list[str] = []
    for number, other in enumerate(others, 1):
        pairs = (config, other), (other, config)
        found += [_warning_of(*pair) for pair in pairs if _asks_more_beside(*pair)]
        if number % COMPARED_AT_ONCE == 0:
            await asyncio.sleep(0)
    more = len(found) - WARNINGS_MAX
    return found if more <= 0 else [*found[:WARNINGS_MAX], f"{more} more pairs are alike."]
