"""What an operator may ask for in a wrapper: the rules of POST /operator/endpoints (spec 4.6)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from assay.common.money import DECIMALS
from assay.common.origins import ANY, canonical_origin
from assay.gate.model import ColdStart
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from assay.payments.model import PaymentNetwork, Protocol
from assay.payments.networks import DEFAULTS, accepted_names, network_id
from assay.payments.payees import payee_problem
from assay.wrappers.matching import BadPath, check_method, check_pattern
from assay.wrappers.model import MAX_BODY_BYTES, TIMEOUT_MS, IdentityProof, SettleWhen
from assay.wrappers.response_fields import EXCEPTIONS_MAX, may_be_excepted

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
    | {"idempotency-key"}  # the same for every call, it would make them one
)
"""Headers that frame a request: not for an operator to set. Source: RFC 9110, section 7.6.1."""

_OURS_TO_SET = ("x-assay-", "x-forwarded-")
_PRIVATE, _PUBLIC = EgressPolicy(allow_private=True, require_https=False), EgressPolicy()


@dataclass(frozen=True, slots=True)
class NewEndpoint:
    """What an operator asks for, with the defaults of spec 4.6."""

    path: str
    price: Decimal
    target_url: str | None
    method: str = "GET"
    description: str = ""
    rate_limit: int | None = None
    protocol: Protocol = "x402"
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
    is_earlier_form: bool = False
    """Asked for with none but the fields of the earlier form: it may lead nowhere (spec 4.6)."""

    @property
    def network_id(self) -> str:
        """The id of the network, by whatever name it was asked for; an unknown name as it is."""
        if self.network is None:
            return DEFAULTS[self.protocol]
        return network_id(self.network) or self.network

    @property
    def leads_nowhere(self) -> bool:
        """A path with its price and no more: it is listed, and answers nobody."""
        return self.is_earlier_form and self.target_url is None


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """What the operator of this service has decided for all wrappers."""

    egress: EgressPolicy
    networks: Mapping[str, PaymentNetwork]
    payout_address: str | None
    price_max: Decimal
    operator_id: str = ""
    """Whose wrapper it is; empty: of nobody that anything is opened to."""

    def of(self, operator_id: str) -> "ConfigRules":
        """The rules for one operator's wrappers."""
        return replace(self, egress=self.egress.of(operator_id), operator_id=operator_id)


Found = tuple[str, str]


def problems_of(asked: NewEndpoint, rules: ConfigRules) -> Sequence[Found]:
    """Every rule that does not hold: the field, and what is wrong in a sentence."""
    return [
        *_route_problems(asked),
        *_price_problems(asked, rules),
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


def _price_problems(asked: NewEndpoint, rules: ConfigRules) -> list[Found]:
    price = asked.price
    if not price.is_finite() or not 0 <= price <= rules.price_max:
        return [("pricePerCall", f"must be at least 0 and at most {rules.price_max} USD")]
    # Compared, never computed with: arithmetic rounds what has more digits than its context.
    if price != price.quantize(Decimal(1).scaleb(-DECIMALS)):
        return [("pricePerCall", "must be a multiple of 0.000001 USD")]
    return []


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
    """What opens an upstream on a private network, where `url` may name one; else nothing.

    The same for everybody: whether an address is opened to somebody else is not told.
    """
    target = parse_target(url, _PRIVATE)
    if isinstance(target, RefusedUrl):
        return ""
    if target.is_literal_ip and _PUBLIC.judge(target.host) is None:
        return ""
    host = f"[{target.host}]" if ":" in target.host else target.host
    return (
        "; for an API on your own network, whoever runs this service sets"
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
        return found  # nobody is asked for money where nothing is forwarded
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
    """As browsers send it, or `*`; empty for what is no origin."""
    return ANY if text == ANY else canonical_origin(text) or ""
