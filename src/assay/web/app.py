"""App -> ASGI application: the framework for ordinary endpoints, the edge around it."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from assay.kit.errors import InvalidRequest, NotFound, Problem, ServiceError
from assay.web.docs import mount_docs
from assay.web.edge import Edge
from assay.web.errors import envelope, error_headers, fault, status_of
from assay.web.exchange import exchange_of, note_detail
from assay.web.openapi import document
from assay.web.request_parser import MethodNotAllowed
from assay.web.route import app_of
from assay.web.routes import (
    account_data,
    account_security,
    accounts,
    admin,
    agents,
    analytics,
    course,
    endpoints,
    health,
    key_agents,
    personhood,
    proxy,
    service_credentials,
    sessions,
    statement,
    visits,
    webhooks,
)
from assay.web.routes.callbacks import CallbackLane
from assay.web.routes.course import CourseLane
from assay.web.routes.gate import GateLane
from assay.web.routes.wrap import WrapLane
from assay.wiring import App


def build(app: App) -> Edge:
    """The service, ready for any ASGI server. Startup and shutdown are `wiring.assemble`'s."""
    return Edge(
        app, framework(app), (GateLane(app), CourseLane(app), CallbackLane(app)), WrapLane(app)
    )


def openapi_document(app: App) -> dict[str, Any]:
    """What /openapi.json serves."""
    return document(framework(app), app)


def framework(app: App) -> FastAPI:
    """The ordinary endpoints."""
    rooms = (
        health.router,
        agents.build_router(app),
        key_agents.router,
        personhood.router,
        course.build_router(app),
        accounts.router,
        account_security.router,
        account_data.router,
        sessions.router,
        endpoints.router,
        analytics.router,
        statement.router,
        admin.router,
        webhooks.router,
        visits.router,
        service_credentials.router,
        proxy.router,
    )
    made = FastAPI(
        # The routes themselves: an included router hides them, and a 405 must name their methods.
        routes=[one for room in rooms for one in room.routes],
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    made.state.assay = app
    mount_docs(made, lambda: document(made, app))
    made.add_exception_handler(ServiceError, _refused)
    made.add_exception_handler(RequestValidationError, _invalid)
    made.add_exception_handler(HTTPException, _not_served)
    made.add_exception_handler(Exception, _failed)
    return made


async def _refused(request: Request, error: Exception) -> Response:
    """A refusal in the envelope. What is none is a fault of ours, and the edge's to report."""
    if not isinstance(error, ServiceError):
        raise error
    exchange = exchange_of(request.scope)
    note_detail(app_of(request).log, exchange, error)
    headers = {name.decode(): value.decode() for name, value in error_headers(error)}
    return Response(
        envelope(error, exchange.request_id), status_of(error), headers, "application/json"
    )


async def _invalid(request: Request, error: Exception) -> Response:
    """The framework's 422 is our 400 (conventions.md#error-envelope)."""
    if not isinstance(error, RequestValidationError):
        raise error
    details = [Problem(tuple(e["loc"]), str(e["msg"])) for e in error.errors()]
    return await _refused(
        request,
        InvalidRequest("The request is not valid; `details` says where.", details=details[:20]),
    )


async def _not_served(request: Request, error: Exception) -> Response:
    """404 and 405 of the router."""
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == 405:  # noqa: PLR2004 - the framework's own word for it
        methods = _methods_at(request)
        allowed = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
        exchange_of(request.scope).answer_headers.append((b"allow", allowed.encode()))
        return await _refused(request, MethodNotAllowed("This path does not take this method."))
    return await _refused(request, NotFound("There is nothing at this path."))


async def _failed(request: Request, error: Exception) -> Response:
    """A fault, in the envelope; the framework raises it again, and the edge logs it."""
    del error
    return await _refused(request, fault())


def _methods_at(request: Request) -> set[str]:
    """Every method taken at this path: the router itself names only those of one route.

    Of several templates that fit, the first is meant: `/operator/key/verify` is no address.
    """
    fits = [
        one
        for one in request.app.routes
        if isinstance(one, Route) and one.matches(request.scope)[0] is not Match.NONE
    ]
    return {method for one in fits if one.path == fits[0].path for method in one.methods or set()}
