"""Documents by which agents, crawlers and security researchers find the service.

Their addresses and limits come from settings and constants, never from the request. Sources:
RFC 9116 (security.txt), RFC 9264 and 9727 (API catalog), RFC 9309 (robots.txt), EIP-8004, section
"Endpoint Domain Verification", and https://llmstxt.org (llms.txt).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import Response

from assay.accounts.auth import public
from assay.common.clock import Clock
from assay.common.errors import NotFound
from assay.common.json import JsonObject, JsonValue
from assay.gate.decision_token import TOKEN_TTL
from assay.identity.model import CHALLENGE_TTL, SESSION_TTL
from assay.registries.registration import TYPE
from assay.server.public_documents import TEXT, public_document
from assay.server.route import route, service

router = APIRouter(tags=["Health and discovery"])

CATALOG: Final = "/.well-known/api-catalog"
SECURITY: Final = "/.well-known/security.txt"
AGENT_REGISTRATION: Final = "/.well-known/agent-registration.json"

LINKSET: Final = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
"""Source: RFC 9727, section 4.1; RFC 9264, section 4.2."""

PUBLIC_PATHS: Final = ("/docs", "/llms.txt", "/openapi.json", "/operator/health")
NEEDED_BY_TESTS: Final = "/operator/sandbox/"
"""Agents that are under test have to reach these paths, also through tools that obey robots.txt."""

COSTLY_PATHS: Final = ("/gate/", "/operator/", "/wrap/")
"""Calls below them use chain nodes, evaluations, an operator's allowance or a seller's upstream."""

ABOUT: Final = (
    "Assay tests AI agents and gives each one a grade from AAA to C. APIs ask Assay whether an"
    " agent may call them, and sell calls to agents over x402 and MPP."
)


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """Facts that the service publishes about itself."""

    address: str
    """The service's address, without a slash at the end."""
    wrap_address: str
    """The same of wrappers."""
    security_contacts: Sequence[str]
    """URIs for reports of vulnerabilities, best first; empty if there is none."""
    agent_ids: Sequence[str]
    """The service's own entries in registries: `eip155:8453:0x.../22`."""
    anonymous_per_minute: int
    body_bytes_max: int


@route(
    router,
    "GET",
    SECURITY,
    operation="security_txt",
    auth=public,
    answers=None,
    media_types={"text/plain": "Contact: mailto:security@example.com\n"},
    cached=True,
)
async def security_txt(request: Request) -> Response:
    """Show where to report a weakness (RFC 9116). Beyond the specification.

    404 if the operator has not configured a contact.
    """
    facts = service(request, PublicFacts)
    if not facts.security_contacts:
        raise NotFound("This installation publishes no contact for security reports.")
    # RFC 9116, section 2.5.2, allows no other scheme of the web.
    canonical = f"{facts.address}{SECURITY}" if facts.address.startswith("https://") else None
    lines = (
        *(f"Contact: {contact}" for contact in facts.security_contacts),
        f"Expires: {_next_january_or_july(service(request, Clock).now()):%Y-%m-%dT%H:%M:%SZ}",
        "Preferred-Languages: en",
        *(() if canonical is None else (f"Canonical: {canonical}",)),
    )
    return public_document(request, _lines(*lines), TEXT)


@route(
    router,
    "GET",
    CATALOG,
    operation="api_catalog",
    auth=public,
    answers=None,
    media_types={"application/linkset+json": {"linkset": []}},
    cached=True,
)
async def api_catalog(request: Request) -> Response:
    """Link to the interface, its documentation and its status (RFC 9727).

    Beyond the specification.
    """
    address = service(request, PublicFacts).address
    links: JsonObject = {
        "linkset": [
            {"anchor": f"{address}{CATALOG}", "item": [{"href": f"{address}/api"}]},
            {
                "anchor": f"{address}/api",
                "service-desc": [_link(f"{address}/openapi.json", "application/json")],
                "service-doc": [
                    _link(f"{address}/docs", "text/html"),
                    _link(f"{address}/llms.txt", "text/plain"),
                ],
                "status": [_link(f"{address}/operator/health", "application/json")],
            },
        ]
    }
    # RFC 9727, section 2, requires this header in the response to HEAD.
    headers = {"link": f'<{address}{CATALOG}>; rel="api-catalog"'}
    return public_document(request, json.dumps(links).encode(), LINKSET, headers)


@route(
    router,
    "GET",
    AGENT_REGISTRATION,
    operation="agent_registration",
    auth=public,
    answers=None,
    media_types={"application/json": {"name": "Assay", "registrations": []}},
    cached=True,
)
async def agent_registration(request: Request) -> Response:
    """Show that this host belongs to the service's own agents (EIP-8004).

    404 if the operator has configured none. Beyond the specification.
    """
    facts = service(request, PublicFacts)
    if not facts.agent_ids:
        raise NotFound("This installation is not registered as an agent.")
    file: JsonObject = {
        "type": TYPE,
        "name": "Assay",
        "description": ABOUT,
        "image": f"{facts.address}/favicon.svg",
        "services": [
            {"name": "web", "endpoint": f"{facts.address}/docs"},
            {"name": "OpenAPI", "endpoint": f"{facts.address}/openapi.json"},
        ],
        "x402Support": False,
        "active": True,
        "registrations": [_registration(one) for one in facts.agent_ids],
        "supportedTrust": [],
    }
    return public_document(request, json.dumps(file).encode(), "application/json")


@route(
    router,
    "GET",
    "/robots.txt",
    operation="robots_txt",
    auth=public,
    answers=None,
    media_types={"text/plain": "User-agent: *\n"},
    cached=True,
)
async def robots_txt(request: Request) -> Response:
    """Allow crawlers the documents, and not the calls that cost something (RFC 9309).

    Beyond the specification.
    """
    below = urlsplit(service(request, PublicFacts).address).path
    lines = (
        "User-agent: *",
        *(f"Allow: {below}{path}" for path in (*PUBLIC_PATHS, NEEDED_BY_TESTS)),
        *(f"Disallow: {below}{path}" for path in COSTLY_PATHS),
    )
    return public_document(request, _lines(*lines), TEXT)


@route(
    router,
    "GET",
    "/llms.txt",
    operation="llms_txt",
    auth=public,
    answers=None,
    media_types={"text/plain": "# Assay\n"},
    cached=True,
)
async def llms_txt(request: Request) -> Response:
    """Explain the service to a language model (llmstxt.org). Beyond the specification."""
    facts = service(request, PublicFacts)
    text = _GUIDE.format(
        about=ABOUT,
        address=facts.address,
        wrap_address=facts.wrap_address,
        per_minute=facts.anonymous_per_minute,
        body_bytes=facts.body_bytes_max,
        challenge_minutes=CHALLENGE_TTL // timedelta(minutes=1),
        session_minutes=SESSION_TTL // timedelta(minutes=1),
        token_minutes=TOKEN_TTL // timedelta(minutes=1),
    )
    return public_document(request, text.encode(), TEXT)


def _lines(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _link(href: str, media_type: str) -> JsonValue:
    return {"href": href, "type": media_type}


def _registration(agent: str) -> JsonValue:
    registry, _, agent_id = agent.rpartition("/")
    shown = int(agent_id) if agent_id.isdigit() else agent_id
    return {"agentId": shown, "agentRegistry": registry}


def _next_january_or_july(now: datetime) -> datetime:
    """Return the first January or July that is three months away or more.

    The text changes twice a year. RFC 9116, section 2.5.5, recommends an end within a year.
    """
    earliest = now + timedelta(days=92)
    month = 7 if earliest.month <= 6 else 1  # noqa: PLR2004 - the first half of a year
    return datetime(earliest.year + (month == 1), month, 1, tzinfo=UTC)


_GUIDE: Final = """\
# Assay

> {about}

Requests and responses are JSON. A refusal is a JSON object with `error`, `code`, `message` and \
`requestId`; some add `details` or what to send next. Without a credential you may send \
{per_minute} requests a minute from one address: `ratelimit-remaining` says how many are left, and \
`retry-after` when to try again. A request body may have {body_bytes} bytes. The chain of an agent \
id is the query parameter `chain` or the header `x-chain`.

You are an agent, and want to prove your address:

1. `POST /operator/key/{{agentAddress}}/challenge` returns `challenge`, which is valid once, for \
{challenge_minutes} minutes.
2. Sign exactly this text with the key of the address, as an EIP-191 personal message.
3. `POST /operator/key/verify` with `agentAddress`, `challenge` and `signature`. The response \
header `x-agent-session` is valid for {session_minutes} minutes.
4. Send `x-agent-address` and `x-agent-session` with later requests, and `x-agent-id` if you are \
registered as an ERC-8004 agent.

You have an API, and want to know whether an agent may call it:

1. `POST /operator/register` returns an API key, unless this installation is closed.
2. `POST /operator/gate/{{agentId}}` with `Authorization: Bearer` and your key, and the agent's \
`x-agent-address` and `x-agent-session`. The answer says `allow`, and why.
3. `decisionToken` in the answer is valid for {token_minutes} minutes. Anybody can verify it with \
the keys at `/.well-known/jwks.json`.

You want to call an API that is sold here, a wrapper:

1. Call `{wrap_address}/wrap/{{operatorId}}/{{path}}`, the address that its seller gave you. A \
price is answered with 402, a grade that is too low with 403.
2. x402: the terms are in `PAYMENT-REQUIRED` (version 2) and in the body (version 1). Sign them, \
and send the same request again with `PAYMENT-SIGNATURE` or `X-PAYMENT`. The receipt is in \
`PAYMENT-RESPONSE`.
3. MPP: the challenge is in `WWW-Authenticate`. Send the same request again with the credential in \
`Authorization`. The receipt is in `Payment-Receipt`. A seller may list its prices in \
`{wrap_address}/wrap/{{operatorId}}/openapi.json`.

## Documents

- [OpenAPI document]({address}/openapi.json): every operation, its credential and its schemas
- [Reference]({address}/docs): the same as a page
- [API catalog]({address}/.well-known/api-catalog): links to these documents, as a link set

## Public operations

- [Health]({address}/operator/health): whether the service is up, and the chains it knows
- [Keys]({address}/.well-known/jwks.json): the public keys that verify decision tokens
- [Course]({address}/operator/sandbox/course): how to test yourself as a caller

## Optional

- [Crawlers]({address}/robots.txt): what automatic readers may request
- [Liveness]({address}/livez): whether this process answers
"""
"""Source: https://llmstxt.org: a title, a summary, text without headings, and lists of links."""
