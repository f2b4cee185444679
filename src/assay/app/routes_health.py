"""Health and discovery (interface.md#health-and-discovery), and the keys of decision tokens.

Source: conventions.md#gate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from assay import __version__
from assay.accounts.auth import public
from assay.app.readiness import ReadinessCheck
from assay.chains.networks import Networks
from assay.common.clock import Clock, iso
from assay.common.errors import Unavailable
from assay.gate.decision_token import DecisionTokens
from assay.server.route import route, service
from assay.server.schemas import (
    DiscoveryResponse,
    HealthResponse,
    JwksResponse,
    ProcessResponse,
)

router = APIRouter(tags=["Health and discovery"])


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """Facts that the service publishes about itself."""

    address: str
    """The service's address, without a slash at the end."""
    security_contacts: Sequence[str]


@route(
    router,
    "GET",
    "/operator/health",
    operation="health",
    auth=public,
    answers=HealthResponse,
)
async def health(request: Request) -> HealthResponse:
    """Show whether the service is up, and which chains it knows."""
    return await _health(request)


@route(
    router,
    "GET",
    "/livez",
    operation="livez",
    auth=public,
    answers=ProcessResponse,
)
async def livez() -> ProcessResponse:
    """Show that the process answers, whatever else is down. Beyond the specification."""
    return ProcessResponse()


@route(
    router,
    "GET",
    "/readyz",
    operation="readyz",
    auth=public,
    answers=ProcessResponse,
)
async def readyz(request: Request) -> ProcessResponse:
    """Show whether the process can serve: 503 if callers should go to another one.

    Beyond the specification.
    """
    if not (await service(request, ReadinessCheck).read()).is_ready:
        raise Unavailable("This process cannot serve now.", retry_after_s=1)
    return ProcessResponse()


@route(
    router,
    "GET",
    "/api/health",
    operation="api_health",
    auth=public,
    answers=HealthResponse,
)
async def api_health(request: Request) -> HealthResponse:
    """Show the same for the public site."""
    return await _health(request)


@route(
    router,
    "GET",
    "/api",
    operation="discovery",
    auth=public,
    answers=DiscoveryResponse,
)
async def discovery(request: Request) -> DiscoveryResponse:
    """Show where developers find things."""
    address = service(request, PublicFacts).address
    return DiscoveryResponse(
        service="assay",
        version=__version__,
        health=f"{address}/operator/health",
        openapi=f"{address}/openapi.json",
        docs=f"{address}/docs",
        jwks=f"{address}/.well-known/jwks.json",
    )


@route(
    router,
    "GET",
    "/.well-known/jwks.json",
    operation="jwks",
    auth=public,
    answers=JwksResponse,
)
async def jwks(request: Request) -> object:
    """List the public keys that verify decision tokens. Beyond the specification."""
    return service(request, DecisionTokens).jwks(service(request, Clock).now())


@route(
    router,
    "GET",
    "/.well-known/security.txt",
    operation="security_txt",
    auth=public,
    answers=None,
    media_types={"text/plain": "Contact: mailto:security@example.com\n"},
)
async def security_txt(request: Request) -> PlainTextResponse:
    """Show where to report a weakness (RFC 9116). Beyond the specification."""
    facts = service(request, PublicFacts)
    lines = [
        *(f"Contact: {contact}" for contact in facts.security_contacts),
        f"Expires: {_next_january_or_july(service(request, Clock).now()):%Y-%m-%dT%H:%M:%SZ}",
        "Preferred-Languages: en",
        f"Canonical: {facts.address}/.well-known/security.txt",
    ]
    return PlainTextResponse("\n".join(lines) + "\n")


def _next_january_or_july(now: datetime) -> datetime:
    """Return the first January or July that is three months away or more.

    The text changes twice a year. RFC 9116, section 2.5.5, recommends an end within a year.
    """
    earliest = now + timedelta(days=92)
    month = 7 if earliest.month <= 6 else 1  # noqa: PLR2004 - the first half of a year
    return datetime(earliest.year + (month == 1), month, 1, tzinfo=UTC)


async def _health(request: Request) -> HealthResponse:
    networks = service(request, Networks)
    found = await service(request, ReadinessCheck).read()
    return HealthResponse(
        ok=True,
        status="ok",
        service="assay",
        supported_chains=list(networks.slugs),
        default_chain=networks.default.slug,
        timestamp=iso(service(request, Clock).now()),
        degraded=[*(name for name in found.reasons if name == "database"), *found.degraded],
    )
