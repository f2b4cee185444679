"""The proxy and the playground.

Source: interface.md#proxy-and-playground-results, #proxy-and-playground.
"""

import json
from http import HTTPStatus
from typing import Annotated, Literal

from pydantic import Field

from assay.common.numbers import usd
from assay.playground.model import HEADERS_MAX, METHODS, ProxyCall, ProxyReply, ProxyResult
from assay.playground.service import DryRun, PlaygroundResult, PlaygroundTrial
from assay.server.errors import envelope
from assay.server.schemas import (
    HttpStatus,
    Milliseconds,
    Off,
    RequestModel,
    ResponseModel,
    RouteName,
    TierName,
    UsdText,
)
from assay.wrappers.model import TrustDenied

Address = Annotated[str, Field(min_length=1, max_length=8192)]
Method = Annotated[
    str, Field(max_length=16, examples=["GET"], json_schema_extra={"enum": [*sorted(METHODS)]})
]
Headers = Annotated[
    dict[str, str],
    Field(
        max_length=200,
        examples=[{"accept": "application/json"}],
        json_schema_extra={"maxProperties": HEADERS_MAX},
    ),
]

FREE = usd(0)
"""Neither the proxy nor the playground charges for a call."""


class ProxyRequest(RequestModel):
    """The request to send, and its target."""

    target_url: Annotated[Address, Field(examples=["https://api.example.com/v1/quote"])]
    """The address to call."""
    method: Method = "GET"
    """The HTTP method."""
    headers: Headers | None = None
    """Headers to send, at most 64; null: none."""
    body: str | None = None
    """The request body as text; null: none."""

    def call(self) -> ProxyCall:
        """Return the call for the use case."""
        return ProxyCall(self.target_url, self.method.upper(), self.headers or {}, self.body)


class ProxyResponse(ResponseModel):
    """The target's answer, and the agent's grade."""

    status_code: HttpStatus
    """The HTTP status."""
    response_headers: Annotated[
        dict[str, str], Field(examples=[{"content-type": "application/json"}])
    ]
    """Headers of the response, by name in lower case."""
    response_body: Annotated[str, Field(examples=['{"price": 12.5}'])]
    """The body of the response; cut where `truncated`."""
    response_body_encoding: Literal["utf-8", "base64"]
    """`utf-8`: as it is; `base64`: the body is not text."""
    truncated: Off
    """Whether the body was longer and was cut."""
    response_ms: Milliseconds
    """How long the response took, in milliseconds."""
    cost_charged: UsdText
    """What the call cost, in US dollars with six decimals."""
    route: RouteName
    """How to treat the agent: `prod`, `prod_throttled`, `sandbox` or `sandbox_only`."""
    tier_resolved: TierName
    """The agent's letter grade; null if it has none."""


class PlaygroundRequest(RequestModel):
    """What to try: a path of your own wrappers, or an absolute URL."""

    path: Annotated[Address, Field(examples=["/quote"])]
    """A path of your wrappers, or an absolute URL."""
    agent_id: Annotated[str, Field(min_length=1, max_length=100, examples=["22"])]
    """The agent on whose behalf to call."""
    method: Method = "GET"
    """The HTTP method."""
    headers: Headers | None = None
    """Headers to send, at most 64; null: none."""
    body: str | None = None
    """The request body as text; null: none."""
    chain: Annotated[str | None, Field(max_length=64, examples=["ethereum"])] = None
    """The agent's network, by its slug; absent: the default."""
    dry_run: Off = False
    """Whether to look everything up and call nothing."""

    def trial(self) -> PlaygroundTrial:
        """Return the trial for the use case."""
        call = ProxyCall(self.path, self.method.upper(), self.headers or {}, self.body)
        return PlaygroundTrial(self.agent_id, call)


class PlaygroundResponse(ResponseModel):
    """The answer; in a dry run status, statusText and time are null."""

    ok: bool
    """Whether the status is 200 to 299, or it is a dry run."""
    status_code: HttpStatus | None
    """The HTTP status; null in a dry run."""
    status_text: Annotated[str, Field(examples=["OK"])] | None
    """The status in words; null in a dry run."""
    response_headers: Annotated[
        dict[str, str], Field(examples=[{"content-type": "application/json"}])
    ]
    """Headers of the response, by name in lower case."""
    response_body: Annotated[str, Field(examples=['{"price": 12.5}'])]
    """The body of the response; cut where `truncated`."""
    response_body_encoding: Literal["utf-8", "base64"]
    """`utf-8`: as it is; `base64`: the body is not text."""
    truncated: Off
    """Whether the body was longer and was cut."""
    response_ms: Milliseconds | None
    """How long the response took, in milliseconds; null in a dry run."""
    cost_charged: UsdText
    """What the call cost, in US dollars with six decimals."""
    route: RouteName | None
    """How to treat the agent: `prod`, `prod_throttled`, `sandbox` or `sandbox_only`."""
    tier_resolved: TierName | None
    """The agent's letter grade; null if it has none."""


def proxied(found: ProxyResult) -> ProxyResponse:
    """Return the proxy's result as a response."""
    reply, grade = found.reply, found.decision.grade
    return ProxyResponse(
        status_code=reply.status,
        response_headers=dict(reply.headers),
        response_body=reply.body,
        response_body_encoding=reply.encoding,
        truncated=reply.truncated,
        response_ms=reply.elapsed_ms,
        cost_charged=FREE,
        route=grade.route,
        tier_resolved=grade.tier,
    )


def tried(found: PlaygroundResult, request_id: str) -> PlaygroundResponse:
    """Return the playground's result; a refusal by trust is an answer like the wrapper's."""
    grade = found.decision.grade
    reply = found.reply or _denied(found, request_id)
    return PlaygroundResponse(
        ok=HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES,
        status_code=reply.status,
        status_text=_phrase(reply.status),
        response_headers=dict(reply.headers),
        response_body=reply.body,
        response_body_encoding=reply.encoding,
        truncated=reply.truncated,
        response_ms=reply.elapsed_ms,
        cost_charged=FREE,
        route=grade.route,
        tier_resolved=grade.tier,
    )


def dry(found: DryRun) -> PlaygroundResponse:
    """Return a dry run as a response (interface.md#proxy-and-playground-results)."""
    known = "this path and method are registered" if found.registered else "nothing is registered"
    document = {
        "dryRun": True,
        "message": f"Nothing was called; {known}.",
        "agentId": found.agent_id,
        "chain": found.chain,
        "tier": found.tier,
        "route": found.route,
        "pricePerCall": None if found.price is None else usd(found.price),
        "endpointRegistered": found.registered,
        "trustProfile": {
            "onchainScore": found.onchain_score,
            "feedbackCount": str(found.feedback_count),
            "routingDecision": found.route,
        },
    }
    return PlaygroundResponse(
        ok=True,
        status_code=None,
        status_text=None,
        response_headers={},
        response_body=json.dumps(document),
        response_body_encoding="utf-8",
        truncated=False,
        response_ms=None,
        cost_charged=FREE,
        route=found.route,
        tier_resolved=found.tier,
    )


def _denied(found: PlaygroundResult, request_id: str) -> ProxyReply:
    """Return exactly the refusal that a caller of the wrapper would get."""
    body = envelope(TrustDenied.of(found.decision), request_id).decode()
    headers = {"content-type": "application/json"}
    return ProxyReply(HTTPStatus.FORBIDDEN, headers, body, "utf-8", False, 0.0)  # noqa: FBT003


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
