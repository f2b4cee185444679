"""Health and discovery (spec 4.1), and the keys of decision tokens (decisions, section 8)."""

from datetime import UTC, datetime, timedelta

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from assay import __version__
from assay.accounts.auth import Credential
from assay.app import App
from assay.common.clock import iso
from assay.server.route import app_of, route
from assay.server.schemas_health import DiscoveryResponse, HealthResponse, JwksResponse

router = APIRouter(tags=["Health and discovery"])


@route(
    router,
    "GET",
    "/operator/health",
    operation="health",
    credential=Credential.NONE,
    answers=HealthResponse,
)
async def health(request: Request) -> HealthResponse:
    """Whether the service is up, and which chains it knows."""
    return _health(app_of(request))


@route(
    router,
    "GET",
    "/api/health",
    operation="api_health",
    credential=Credential.NONE,
    answers=HealthResponse,
)
async def api_health(request: Request) -> HealthResponse:
    """The same, for the public site."""
    return _health(app_of(request))


@route(
    router,
    "GET",
    "/api",
    operation="discovery",
    credential=Credential.NONE,
    answers=DiscoveryResponse,
)
async def discovery(request: Request) -> DiscoveryResponse:
    """Where developers find things."""
    address = app_of(request).settings.address
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
    credential=Credential.NONE,
    answers=JwksResponse,
)
async def jwks(request: Request) -> object:
    """The public keys that decision tokens are verified with. Beyond the specification."""
    app = app_of(request)
    return app.decision_tokens.jwks(app.clock.now())


@route(
    router,
    "GET",
    "/.well-known/security.txt",
    operation="security_txt",
    credential=Credential.NONE,
    answers=None,
    media_types=("text/plain",),
)
async def security_txt(request: Request) -> PlainTextResponse:
    """Where to report a weakness (RFC 9116). Beyond the specification."""
    app = app_of(request)
    lines = [
        *(f"Contact: {contact}" for contact in app.settings.security_contacts),
        f"Expires: {_next_january_or_july(app.clock.now()):%Y-%m-%dT%H:%M:%SZ}",
        "Preferred-Languages: en",
        f"Canonical: {app.settings.address}/.well-known/security.txt",
    ]
    return PlainTextResponse("\n".join(lines) + "\n")


def _next_january_or_july(now: datetime) -> datetime:
    """The first such month that begins in three months or later: the text changes twice a year.

    RFC 9116, section 2.5.5, recommends less than a year.
    """
    earliest = now + timedelta(days=92)
    month = 7 if earliest.month <= 6 else 1  # noqa: PLR2004 - the first half of a year
    return datetime(earliest.year + (month == 1), month, 1, tzinfo=UTC)


def _health(app: App) -> HealthResponse:
    return HealthResponse(
        ok=True,
        status="ok",
        service="assay",
        supported_chains=list(app.networks.slugs),
        default_chain=app.networks.default.slug,
        timestamp=iso(app.clock.now()),
    )
