"""Wrapper configs and their history in requests and responses.

Also describes the calls of wrappers in the OpenAPI document. Source:
interface.md#wrapper-configuration, #wrapper-body, #wrappers.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from assay.common.clock import iso
from assay.common.errors import InvalidRequest, Problem
from assay.common.json import exact_number
from assay.common.numbers import usd
from assay.gate.model import ColdStart
from assay.payments.networks import NETWORK_NAMES
from assay.server.schemas import ErrorResponse, PageResponse, RequestModel, ResponseModel, Timestamp
from assay.wrappers.endpoint_rules import EndpointChange
from assay.wrappers.history import Revision
from assay.wrappers.model import MAX_BODY_BYTES, TIMEOUT_MS, WrapperConfig
from assay.wrappers.service import NewEndpoint

Text = Annotated[str, Field(max_length=10_000)]
"""A bounded text; the use case checks its content."""

_EARLIER_FORM = frozenset(
    {"path", "method", "price_per_call", "description", "rate_limit", "target_url"}
)
"""Source: interface.md#the-earlier-wrapper-form."""


class EndpointRequest(RequestModel):
    """A new wrapper; the earlier, shorter form leaves the rest out."""

    path: Annotated[Text, Field(examples=["/quote"])]
    method: Annotated[Text, Field(examples=["GET"])] = "GET"
    price_per_call: Annotated[Decimal, Field(strict=False, ge=0, max_digits=30, examples=[0.01])]
    description: Text | None = None
    rate_limit: int | None = None
    target_url: Annotated[Text | None, Field(examples=["https://api.example.com/v1"])] = None
    payment_protocol: Literal["x402", "mpp"] = "x402"
    payment_network: Annotated[
        Text | None,
        Field(
            description="Where it is paid; names such as `base-sepolia` are stored as CAIP-2 ids.",
            examples=["eip155:84532"],
            json_schema_extra={"enum": [*NETWORK_NAMES, None]},
        ),
    ] = None
    payout_address: Text | None = None
    trust_enabled: bool = False
    upstream_auth_type: Literal["none", "header"] = "none"
    upstream_auth_header: Text | None = None
    upstream_auth_secret: Annotated[Text | None, Field(json_schema_extra={"writeOnly": True})] = (
        None
    )
    min_score: Annotated[float, Field(ge=0, le=100)] = 65.0
    cold_start: Annotated[
        ColdStart | None,
        Field(
            description="What to do with an agent on rung 0 against which nothing is known; without"
            " it the threshold decides."
        ),
    ] = None
    identity_proof: Literal["required", "asserted"] = "required"
    settle: Literal["after", "before"] = "after"
    max_body_bytes: int = MAX_BODY_BYTES
    timeout_ms: int = TIMEOUT_MS
    pass_response_headers: Annotated[
        tuple[Annotated[str, Field(max_length=128)], ...],
        Field(
            max_length=1000,
            description="Names of upstream header fields that pass though by default they do not.",
            examples=[["x-frame-options"]],
        ),
    ] = ()
    cors_origins: Annotated[
        tuple[Annotated[str, Field(max_length=300)], ...],
        Field(
            max_length=1000,
            description="Origins whose pages may call the wrapper from a browser; `*`: any.",
            examples=[["https://app.example.com"]],
        ),
    ] = ()

    def new(self, text: bytes) -> NewEndpoint:
        """Return what is asked for, as the use case takes it; `text` is the body's text."""
        exact = exact_number(text, "pricePerCall")
        return NewEndpoint(
            path=self.path,
            price=self.price_per_call if exact is None else exact,
            target_url=self.target_url,
            method=self.method.upper(),
            description=self.description or "",
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

    path: Text = ""
    price_per_call: Annotated[Decimal, Field(strict=False, ge=0, max_digits=30)] = Decimal(0)
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


class EndpointResponse(ResponseModel):
    """A wrapper; its upstream secret is never shown."""

    id: str
    path: str
    method: str
    price_per_call: str
    description: str
    rate_limit: int | None
    target_url: str
    payment_protocol: str
    payment_network: str
    payout_address: str | None
    trust_enabled: bool
    min_score: float
    cold_start: str | None
    identity_proof: str
    settle: str
    max_body_bytes: int
    timeout_ms: int
    upstream_auth_type: str
    upstream_auth_header: str | None
    pass_response_headers: list[str]
    cors_origins: list[str]
    active: bool
    created_at: Timestamp
    revision: Annotated[int, Field(description="Counts its changes, from 1.")]


class WarnedEndpointResponse(EndpointResponse):
    """A wrapper, with warnings for its operator."""

    warnings: list[str]


class Deactivated(ResponseModel):
    """The wrapper no longer answers."""

    ok: bool
    id: str
    active: bool


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
        active=config.active,
        created_at=iso(config.created_at),
        revision=config.revision,
    )


def warned(config: WrapperConfig, warnings: Sequence[str]) -> WarnedEndpointResponse:
    """Return a wrapper with its warnings as a response."""
    return WarnedEndpointResponse(**endpoint(config).model_dump(), warnings=list(warnings))


def operations() -> dict[str, Any]:
    """Return the OpenAPI operations of wrapper calls: one for each method, all alike."""
    error = {
        "application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorResponse.__name__}"}}
    }
    refusals = {str(s): {"description": "A refusal.", "content": error} for s in _REFUSALS}
    text = {"type": "string"}
    headers = [
        {"name": name, "in": "header", "required": False, "schema": text, "description": said}
        for name, said in _CALLER_HEADERS.items()
    ]
    places = [
        {"name": name, "in": "path", "required": True, "schema": text, "description": said}
        for name, said in (
            ("operatorId", "Whose API it is."),
            ("path", "The wrapper's path; it may hold further slashes."),
        )
    ]
    return {
        method: {
            "tags": ["Wrappers"],
            "operationId": f"wrap_{method}",
            "summary": f"Call a wrapped API by {method.upper()}",
            "description": "Payment, trust, rate limit, then the upstream's own answer.",
            "security": [{}, {"agentAddress": [], "agentSession": []}],
            "parameters": [*places, *headers],
            "responses": {
                "default": {"description": "The upstream's answer."},
                **refusals,
            },
        }
        for method in ("get", "post", "put", "patch", "delete")
    }


_REFUSALS = (400, 401, 402, 403, 404, 408, 413, 429, 502, 503)
"""Source: interface.md#wrapper-errors; conventions.md#wrapper."""

_CALLER_HEADERS = {
    "x-payment": "An x402 payment, version 1 (or 2).",
    "payment-signature": "An x402 payment, version 2.",
    "x-agent-id": "The registered agent that calls.",
    "x-chain": "The chain of x-agent-id.",
}
"""Source: interface.md#wrappers."""


class FieldChangeResponse(ResponseModel):
    """A changed field; of a secret only whether there was one."""

    field: str
    from_: Annotated[JsonValue, Field(alias="from", description="Its value before.")]
    to: Annotated[JsonValue, Field(description="Its value since.")]


class ActorResponse(ResponseModel):
    """Who made a change: an account, one with the role admin, or the service's own terminal."""

    kind: str
    operator_id: str | None


class QuotedResponse(ResponseModel):
    """What a wrapper asked for a call."""

    price_per_call: str
    payment_protocol: str
    payment_network: str
    payout_address: str | None


class RevisionResponse(ResponseModel):
    """A wrapper from one moment to the next change."""

    revision: int
    at: Timestamp
    until: Annotated[Timestamp | None, Field(description="Null: it is the newest.")]
    action: str
    actor: Annotated[
        ActorResponse | None, Field(description="Null for what is older than the history.")
    ]
    changes: list[FieldChangeResponse]
    quoted: Annotated[
        QuotedResponse | None, Field(description="Null: nobody was asked for money in that time.")
    ]


class HistoryResponse(PageResponse):
    """A wrapper's revisions, newest first."""

    items: list[RevisionResponse]


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
