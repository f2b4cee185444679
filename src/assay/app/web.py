"""App -> ASGI application: the framework for ordinary endpoints, the edge around it."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from assay.accounts import routes as accounts
from assay.accounts import routes_security as account_security
from assay.accounts import routes_sessions as sessions
from assay.admin import routes as admin
from assay.admin import routes_account_data as account_data
from assay.analytics import routes as analytics
from assay.app import App
from assay.app import routes_health as health
from assay.app.application import Application
from assay.app.openapi import document
from assay.caller_behaviour import routes as course
from assay.caller_behaviour.routes import ScenarioHandler
from assay.common.errors import InvalidRequest, MethodNotAllowed, NotFound, Problem, ServiceError
from assay.evaluation import routes as agents
from assay.evaluation import routes_credentials as service_credentials
from assay.evaluation import routes_visits as visits
from assay.gate.routes import GateHandler
from assay.key_agents import routes as key_agents
from assay.payments import routes_statement as statement
from assay.personhood import routes as personhood
from assay.playground import routes as proxy
from assay.probing.routes_callbacks import CallbackHandler
from assay.server import docs
from assay.server.errors import envelope, error_headers, fault, status_of
from assay.server.request_context import exchange_of, note_detail
from assay.server.route import app_of
from assay.webhooks import routes as webhooks
from assay.wrappers import routes_configs as endpoints
from assay.wrappers.routes_calls import WrapHandler


def build(app: App) -> Application:
    """The service, ready for any ASGI server. Startup and shutdown are `wiring.assemble`'s."""
    return Application(
        app,
        framework(app),
        (GateHandler(app), ScenarioHandler(app), CallbackHandler(app)),
        WrapHandler(app),
    )


def openapi_document(app: App) -> dict[str, Any]:
    """What /openapi.json serves."""
    return document(framework(app), app)


def framework(app: App) -> FastAPI:
    """The ordinary endpoints; their routes are built once a process and know no service."""
    rooms = (
        health.router,
        agents.build_router(frozenset(app.settings.open_endpoints)),
        key_agents.router,
        personhood.router,
        course.router,
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
        docs.router,
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
    made.state.evaluation_limits = agents.EvaluationLimits(app)
    made.state.course_limit = course.run_limit(app)
    made.state.reference = docs.Reference(lambda: document(made, app))
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
