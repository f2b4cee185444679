"""Wrapper configs and their history in requests and responses.

Source: interface.md#wrapper-configuration, #wrapper-body.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from assay.common.clock import iso
from assay.common.errors import InvalidRequest, Problem
from assay.common.json import exact_number
from assay.common.numbers import usd
from assay.evaluation.model import Tier
from assay.gate.model import ColdStart
from assay.payments.networks import NETWORK_NAMES
from assay.server.schemas import (
    ActorKindName,
    Caip2Text,
    Count,
    EvmAddress,
    HeaderName,
    MethodText,
    Off,
    PageResponse,
    PathText,
    Prose,
    RecordId,
    RequestModel,
    ResponseModel,
    Sentences,
    TierName,
    Timestamp,
    UrlText,
    UsdText,
)
from assay.wrappers.endpoint_rules import (
    BODY_BYTES_CEILING,
    DESCRIPTION_CHARS_MAX,
    ORIGINS_MAX,
    RATE_LIMIT_MAX,
    SECRET_CHARS_MAX,
    TIMEOUT_MS_CEILING,
    AskedTier,
    EndpointChange,
)
from assay.wrappers.history import Revision
from assay.wrappers.matching import METHOD_CHARS_MAX, PATH_CHARS_MAX
from assay.wrappers.model import MAX_BODY_BYTES, TIMEOUT_MS, WrapperConfig
from assay.wrappers.response_fields import EXCEPTIONS_MAX
from assay.wrappers.service import NewEndpoint
from assay.wrappers.tier_terms import TIERS, FreeQuota, QuotaPeriod

Text = Annotated[str, Field(max_length=10_000)]
"""A bounded text; the use case checks its content."""

Price = Annotated[Decimal, Field(strict=False, ge=0, max_digits=30, examples=[0.01])]
PathPattern = Annotated[
    Text, Field(examples=["/quote"], json_schema_extra={"maxLength": PATH_CHARS_MAX})
]

_EARLIER_FORM = frozenset(
    {"path", "method", "price_per_call", "description", "rate_limit", "target_url"}
)
"""Source: interface.md#the-earlier-wrapper-form."""


class TierTermsBody(RequestModel):
    """The terms of proven agents of at least a tier."""

    min_tier: Tier
    """The least letter grade that has these terms: `AAA` (best) to `C`."""
    price_per_call: Price
    """US dollars a call, at most the wrapper's `pricePerCall`; 0 is free."""
    rate_limit: (
        Annotated[
            int,
            Field(examples=[600], json_schema_extra={"minimum": 1, "maximum": RATE_LIMIT_MAX}),
        ]
        | None
    ) = None
    """Calls a minute for each agent; null or absent: the wrapper's `rateLimit`."""


class FreeQuotaBody(RequestModel):
    """The calls that each agent has for nothing."""

    calls: Annotated[
        int, Field(examples=[100], json_schema_extra={"minimum": 1, "maximum": RATE_LIMIT_MAX})
    ]
    """How many calls, from 1."""
    per: QuotaPeriod
    """`day` or `month`, of UTC."""


class EndpointTerms(RequestModel):
    """What a wrapper asks of its callers, and where it forwards."""

    price_per_call: Price
    """US dollars a call, at most six decimals; 0 is free."""
    rate_limit: (
        Annotated[
            int,
            Field(examples=[60], json_schema_extra={"minimum": 1, "maximum": RATE_LIMIT_MAX}),
        ]
        | None
    ) = None
    """Calls a minute for each agent, from 1; null or absent: unlimited."""
    target_url: Annotated[Text | None, Field(examples=["https://api.example.com/v1"])] = None
    """The HTTP(S) address that calls are forwarded to; the earlier form may leave it out."""
    payment_protocol: Literal["x402", "mpp"] = "x402"
    """`x402` or `mpp`."""
    payment_network: Annotated[
        Text | None,
        Field(
            description="Where it is paid; names such as `base-sepolia` are stored as CAIP-2 ids.",
            examples=["eip155:84532"],
            json_schema_extra={"enum": [*NETWORK_NAMES, None]},
        ),
    ] = None
    payout_address: (
        Annotated[Text, Field(examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])] | None
    ) = None
    """The wallet that is paid; absent: the platform's."""
    trust_enabled: bool = False
    """Whether callers need a score of at least `minScore`."""
    upstream_auth_type: Literal["none", "header"] = "none"
    """`header` sends a secret to the upstream in a header; `none` sends none."""
    upstream_auth_header: Annotated[Text, Field(examples=["x-api-key"])] | None = None
    """The header that carries the secret; needed with `header`."""
    upstream_auth_secret: Annotated[
        Annotated[Text, Field(json_schema_extra={"maxLength": SECRET_CHARS_MAX})] | None,
        Field(json_schema_extra={"writeOnly": True}, examples=["an-upstream-secret"]),
    ] = None
    """The secret for the upstream. Stored encrypted, never returned."""
    min_score: Annotated[float, Field(ge=0, le=100)] = 65.0
    """The lowest score that passes, 0 to 100."""
    cold_start: Annotated[
        ColdStart | None,
        Field(
            description="What to do with an agent on rung 0 against which nothing is known; without"
            " it the threshold decides."
        ),
    ] = None
    identity_proof: Literal["required", "asserted"] = "required"
    """`required`: callers prove who they are; `asserted`: naming an agent suffices."""
    settle: Literal["after", "before"] = "after"
    """Whether the payment settles `after` or `before` the upstream answers."""
    max_body_bytes: Annotated[
        int, Field(json_schema_extra={"minimum": 0, "maximum": BODY_BYTES_CEILING})
    ] = MAX_BODY_BYTES
    """The largest request body that is forwarded, in bytes."""
    timeout_ms: Annotated[
        int, Field(json_schema_extra={"minimum": 1, "maximum": TIMEOUT_MS_CEILING})
    ] = TIMEOUT_MS
    """The longest wait for the upstream's response, in milliseconds."""
    pass_response_headers: Annotated[
        tuple[Annotated[str, Field(max_length=128)], ...],
        Field(
            max_length=1000,
            json_schema_extra={"maxItems": EXCEPTIONS_MAX},
            description="Names of upstream header fields that pass though by default they do not.",
            examples=[["x-frame-options"]],
        ),
    ] = ()
    cors_origins: Annotated[
        tuple[Annotated[str, Field(max_length=300)], ...],
        Field(
            max_length=1000,
            json_schema_extra={"maxItems": ORIGINS_MAX},
            description="Origins whose pages may call the wrapper from a browser; `*`: any.",
            examples=[["https://app.example.com"]],
        ),
    ] = ()
    pricing: Annotated[
        tuple[TierTermsBody, ...],
        Field(
            max_length=len(TIERS),
            description="Prices and limits of proven agents by tier; each tier once.",
        ),
    ] = ()
    free_quota: Annotated[
        FreeQuotaBody | None,
        Field(
            description="Calls for nothing: each proven agent of rung 1 or above has its own, and"
            " all others share one quota."
        ),
    ] = None
    enforce: Literal["enforce", "observe"] = "enforce"
    """`observe`: callers whom trust would refuse pass, and the log says so."""

    active: bool = True
    """`false` makes a draft: it is stored, answers nobody, and is activated by a change."""

    def terms(self, text: bytes) -> NewEndpoint:
        """Return what is asked for at a path to be named; `text` is the body's text."""
        exact = exact_number(text, "pricePerCall")
        return NewEndpoint(
            path="",
            price=self.price_per_call if exact is None else exact,
            target_url=self.target_url,
            rate_limit=self.rate_limit,
            protocol=self.payment_protocol,
            network=self.payment_network,
            payout_address=self.payout_address,
            trust_enabled=self.trust_enabled,
            min_score=self.min_score,
            cold_start=self.cold_start,
            identity_proof=self.identity_proof,
            settle=self.settle,
            max_body_bytes=self.max_body_bytes,
            timeout_ms=self.timeout_ms,
            auth_type=self.upstream_auth_type,
            auth_header=self.upstream_auth_header,
            auth_secret=self.upstream_auth_secret,
            pass_response_headers=self.pass_response_headers,
            cors_origins=self.cors_origins,
            pricing=tuple(
                AskedTier(one.min_tier, one.price_per_call, one.rate_limit) for one in self.pricing
            ),
            free_quota=None
            if self.free_quota is None
            else FreeQuota(self.free_quota.calls, self.free_quota.per),
            enforce=self.enforce,
            active=self.active,
        )


class EndpointRequest(EndpointTerms):
    """A new wrapper; the earlier, shorter form leaves the rest out."""

    path: PathPattern
    """Its path: begins with `/`, at most 64 segments; `{name}` and a last `*` match."""
    method: Annotated[
        Text, Field(examples=["GET"], json_schema_extra={"maxLength": METHOD_CHARS_MAX})
    ] = "GET"
    """The HTTP method that it answers."""
    description: (
        Annotated[
            Text,
            Field(
                examples=["Prices of metals."],
                json_schema_extra={"maxLength": DESCRIPTION_CHARS_MAX},
            ),
        ]
        | None
    ) = None
    """Text for people, printable; absent: empty."""

    def new(self, text: bytes) -> NewEndpoint:
        """Return what is asked for, as the use case takes it; `text` is the body's text."""
        return replace(
            self.terms(text),
            path=self.path,
            method=self.method.upper(),
            description=self.description or "",
            is_earlier_form=self.model_fields_set <= _EARLIER_FORM,
        )


def _without_defaults(schema: dict[str, Any]) -> None:
    """Remove defaults from the schema: what a change leaves out stays as it is."""
    for member in schema["properties"].values():
        member.pop("default", None)


class EndpointPatch(EndpointRequest):
    """A change of a wrapper: fields that are left out stay as they are.

    The secret stays too, unless `upstreamAuthType` changes, and it goes to no other host: give it
    again with a `targetUrl` at another host.
    """

    model_config = ConfigDict(json_schema_extra=_without_defaults)

    path: PathPattern = ""
    """Its path: begins with `/`, at most 64 segments; `{name}` and a last `*` match."""
    price_per_call: Annotated[
        Decimal, Field(strict=False, ge=0, max_digits=30, examples=[0.01])
    ] = Decimal(0)
    """US dollars a call, at most six decimals; 0 is free."""
    active: Annotated[
        bool, Field(description="False stops it, as DELETE does; true lets it answer again.")
    ] = True

    def change(self, text: bytes) -> EndpointChange:
        """Return the change, as the use case takes it; `text` is the body's text."""
        asked, given = self.new(text), self.model_fields_set
        values = {
            _RENAMED.get(name, name): getattr(asked, _RENAMED.get(name, name))
            for name in given - {"active"}
        }
        return EndpointChange(values, self.active if "active" in given else None)


_RENAMED = {
    "price_per_call": "price",
    "payment_protocol": "protocol",
    "payment_network": "network",
    "upstream_auth_type": "auth_type",
    "upstream_auth_header": "auth_header",
    "upstream_auth_secret": "auth_secret",
}
"""Fields of the wire that have another name in `NewEndpoint`."""

_TAG = re.compile(r'"([1-9][0-9]{0,8})"')


def revision_of(if_match: str | None) -> int | None:
    """Return the revision that an `If-Match` names; None for `*` and without one."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = _TAG.fullmatch(if_match.strip())
    if found is None:
        problem = Problem(("header", "if-match"), "must be the ETag of a wrapper, or *")
        raise InvalidRequest("The request is not valid; `details` says where.", details=[problem])
    return int(found[1])


def tag(config: WrapperConfig) -> str:
    """Return the `ETag` of a wrapper: its revision."""
    return f'"{config.revision}"'


class TierTermsResponse(ResponseModel):
    """The terms of proven agents of at least a tier."""

    min_tier: TierName
    """The least letter grade that has these terms."""
    price_per_call: UsdText
    """US dollars a call, with six decimals; 0 is free."""
    rate_limit: Count | None
    """Calls a minute for each agent; null: the wrapper's `rateLimit`."""


class FreeQuotaResponse(ResponseModel):
    """The calls that each agent has for nothing."""

    calls: Count
    """How many calls."""
    per: Annotated[str, Field(examples=["day"])]
    """`day` or `month`, of UTC."""


class EndpointResponse(ResponseModel):
    """A wrapper; its upstream secret is never shown."""

    id: RecordId
    """Its id, a UUID."""
    path: PathText
    """The wrapper's path, as agents call it."""
    method: MethodText
    """The HTTP method, in capitals."""
    price_per_call: UsdText
    """US dollars a call, with six decimals; 0 is free."""
    description: Prose
    """Text for people; empty if there is none."""
    rate_limit: Count | None
    """Calls a minute for each agent; null: unlimited."""
    target_url: UrlText
    """The address that calls are forwarded to."""
    payment_protocol: Annotated[str, Field(examples=["x402"])]
    """`x402` or `mpp`."""
    payment_network: Caip2Text
    """Where it is paid, as a CAIP-2 id."""
    payout_address: EvmAddress | None
    """The wallet that is paid; null: the platform's."""
    trust_enabled: bool
    """Whether callers need a score of at least `minScore`."""
    min_score: Annotated[float, Field(examples=[65.0])]
    """The lowest score that passes, 0 to 100."""
    cold_start: Annotated[str, Field(examples=["deny"])] | None
    """What happens to agents about which nothing is known; null: the score decides."""
    identity_proof: Annotated[str, Field(examples=["required"])]
    """`required`: callers prove who they are; `asserted`: naming an agent suffices."""
    settle: Annotated[str, Field(examples=["after"])]
    """Whether the payment settles `after` or `before` the upstream answers."""
    max_body_bytes: Annotated[int, Field(examples=[1048576])]
    """The largest request body that is forwarded, in bytes."""
    timeout_ms: Annotated[int, Field(examples=[30000])]
    """The longest wait for the upstream's response, in milliseconds."""
    upstream_auth_type: Annotated[str, Field(examples=["header"])]
    """`header` sends a secret to the upstream in a header; `none` sends none."""
    upstream_auth_header: HeaderName | None
    """The header that carries the secret; null without one."""
    pass_response_headers: Annotated[list[str], Field(examples=[["x-trace-id"]])]
    """Headers of the upstream that pass besides the usual ones."""
    cors_origins: Annotated[list[str], Field(examples=[["https://shop.example.com"]])]
    """Origins whose pages may call it from a browser."""
    pricing: list[TierTermsResponse]
    """Prices and limits of proven agents by tier, best first."""
    free_quota: FreeQuotaResponse | None
    """The calls that each agent has for nothing; null: none."""
    enforce: Annotated[str, Field(examples=["enforce"])]
    """`observe`: callers whom trust would refuse pass, and the log says so."""
    active: bool
    """Whether it answers calls."""
    created_at: Timestamp
    """When it was created."""
    revision: Annotated[int, Field(examples=[1], description="Counts its changes, from 1.")]


class WarnedEndpointResponse(EndpointResponse):
    """A wrapper, with warnings for its operator."""

    warnings: Sentences
    """What you may not expect of it, in sentences."""


class Deactivated(ResponseModel):
    """The wrapper no longer answers."""

    ok: bool
    """Always true in a success."""
    id: RecordId
    """Its id, a UUID."""
    active: Off
    """Always false."""


def endpoint(config: WrapperConfig) -> EndpointResponse:
    """Return a wrapper as a response."""
    return EndpointResponse(
        id=config.id,
        path=config.path,
        method=config.method,
        price_per_call=usd(config.price),
        description=config.description,
        rate_limit=config.rate_limit,
        target_url=config.target_url,
        payment_protocol=config.protocol,
        payment_network=config.network,
        payout_address=config.payout_address,
        trust_enabled=config.trust_enabled,
        min_score=config.min_score,
        cold_start=config.cold_start,
        identity_proof=config.identity_proof,
        settle=config.settle,
        max_body_bytes=config.max_body_bytes,
        timeout_ms=config.timeout_ms,
        upstream_auth_type="none" if config.auth is None else "header",
        upstream_auth_header=None if config.auth is None else config.auth.header,
        pass_response_headers=list(config.pass_response_headers),
        cors_origins=list(config.cors_origins),
        pricing=[
            TierTermsResponse(
                min_tier=one.min_tier,
                price_per_call=usd(one.price),
                rate_limit=one.rate_limit,
            )
            for one in config.pricing
        ],
        free_quota=None
        if config.free_quota is None
        else FreeQuotaResponse(calls=config.free_quota.calls, per=config.free_quota.per),
        enforce=config.enforce,
        active=config.active,
        created_at=iso(config.created_at),
        revision=config.revision,
    )


def warned(config: WrapperConfig, warnings: Sequence[str]) -> WarnedEndpointResponse:
    """Return a wrapper with its warnings as a response."""
    return WarnedEndpointResponse(**endpoint(config).model_dump(), warnings=list(warnings))


class FieldChangeResponse(ResponseModel):
    """A changed field; of a secret only whether there was one."""

    field: Annotated[str, Field(examples=["minScore"])]
    """The field's name."""
    from_: Annotated[JsonValue, Field(alias="from", description="Its value before.")]
    to: Annotated[JsonValue, Field(description="Its value since.")]


class ActorResponse(ResponseModel):
    """Who made a change: an account, one with the role admin, or the service's own terminal."""

    kind: ActorKindName
    """`operator`, `admin` or `terminal`."""
    operator_id: RecordId | None
    """The account; null for the terminal."""


class QuotedResponse(ResponseModel):
    """What a wrapper asked for a call."""

    price_per_call: UsdText
    """US dollars a call, with six decimals; 0 is free."""
    payment_protocol: Annotated[str, Field(examples=["x402"])]
    """`x402` or `mpp`."""
    payment_network: Caip2Text
    """Where it is paid, as a CAIP-2 id."""
    payout_address: EvmAddress | None
    """The wallet that is paid; null: the platform's."""


class RevisionResponse(ResponseModel):
    """A wrapper from one moment to the next change."""

    revision: Count
    """Its number, from 1."""
    at: Timestamp
    """When it began."""
    until: Annotated[Timestamp | None, Field(description="Null: it is the newest.")]
    action: Annotated[str, Field(examples=["changed"])]
    """What was done: `created`, `changed`, `deactivated` or `resealed`."""
    actor: Annotated[
        ActorResponse | None, Field(description="Null for what is older than the history.")
    ]
    changes: list[FieldChangeResponse]
    """The fields that changed."""
    quoted: Annotated[
        QuotedResponse | None, Field(description="Null: nobody was asked for money in that time.")
    ]


class HistoryResponse(PageResponse):
    """A wrapper's revisions, newest first."""

    items: list[RevisionResponse]
    """The rows of this page."""


def revision(found: Revision) -> RevisionResponse:
    """Return a revision as a response."""
    actor, config = None, found.config
    if found.actor_kind is not None:
        actor = ActorResponse(kind=found.actor_kind, operator_id=found.actor_id)
    quoted = None
    if config.active and config.price and config.target_url:
        quoted = QuotedResponse(
            price_per_call=usd(config.price),
            payment_protocol=config.protocol,
            payment_network=config.network,
            payout_address=config.payout_address,
        )
    return RevisionResponse(
        revision=config.revision,
        at=iso(found.at),
        until=None if found.until is None else iso(found.until),
        action=found.action.removeprefix("endpoint."),
        actor=actor,
        changes=[
            FieldChangeResponse.model_validate({"field": name, "from": before, "to": after})
            for name, before, after in found.changes
        ],
        quoted=quoted,
    )
