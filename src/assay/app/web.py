"""Builds the ASGI application: the framework for ordinary operations, ours around it."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from assay.accounts import routes as accounts
from assay.accounts.auth import AdminRule
from assay.admin import routes as admin
from assay.analytics import routes as analytics
from assay.app import App
from assay.app import routes_discovery as discovery
from assay.app import routes_health as health
from assay.app.application import Application
from assay.app.log import Log
from assay.app.openapi import document
from assay.caller_behaviour import routes as course
from assay.caller_behaviour.routes import ScenarioHandler
from assay.common.clock import Clock
from assay.common.errors import InvalidRequest, MethodNotAllowed, NotFound, Problem, ServiceError
from assay.evaluation import routes as agents
from assay.evaluation import routes_public as public_agents
from assay.evaluation import routes_visits as visits
from assay.evaluation.public_agents import PublicAccess, PublicAgents
from assay.evaluation.store_evaluations import SqlEvaluationStore
from assay.evaluation.store_listing import SqlListedAgents
from assay.gate import routes_check as gate_check
from assay.gate.decision import valid_until
from assay.gate.model import COLD_PER_MINUTE
from assay.gate.routes import GateHandler, GateHandlerDependencies
from assay.gate.routes_check import GateCheckHandler
from assay.key_agents import routes as key_agents
from assay.pages import routes as pages
from assay.payments import routes as statement
from assay.personhood import routes as personhood
from assay.playground import routes as proxy
from assay.probing.routes_callbacks import CallbackHandler
from assay.server import docs
from assay.server.errors import envelope, error_headers, fault, status_of
from assay.server.rate_limits import rate_limit
from assay.server.request_context import exchange_of, note_detail
from assay.server.route import provide, service
from assay.webhooks import routes as webhooks
from assay.wrappers import routes_configs as endpoints
from assay.wrappers.routes_calls import WrapHandler, WrapHandlerDependencies


def build(app: App) -> Application:
    """Return the service for any ASGI server. `app.assemble` starts it up and shuts it down."""
    return Application(
        app,
        framework(app),
        (
            GateHandler(_gate(app)),
            GateCheckHandler(
                _gate(app),
                rate_limit("gate cold", COLD_PER_MINUTE, app.clock, app.quota_lease),
            ),
            ScenarioHandler(app.course, app.settings.course_elsewhere_url),
            CallbackHandler(app.callbacks),
        ),
        _wrap(app),
    )


def openapi_document(app: App) -> dict[str, Any]:
    """Return what `/openapi.json` serves."""
    return document(framework(app), app)


def framework(app: App) -> FastAPI:
    """Build the framework's application; its routes are built once a process, without a service."""
    rooms = (
        health.router,
        discovery.router,
        agents.build_router(frozenset(app.settings.open_endpoints)),
        public_agents.router,
        key_agents.router,
        personhood.router,
        course.router,
        accounts.router,
        gate_check.router,
        admin.account_router,
        endpoints.router,
        analytics.router,
        statement.router,
        admin.router,
        webhooks.router,
        visits.router,
        proxy.router,
        docs.router,
        pages.router,
    )
    made = FastAPI(
        # The routes themselves: an included router hides them, and a 405 names their methods.
        routes=[one for room in rooms for one in room.routes],
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    provide(
        made.state, services(app) | {docs.Reference: docs.Reference(lambda: document(made, app))}
    )
    made.add_exception_handler(ServiceError, _refused)
    made.add_exception_handler(RequestValidationError, _invalid)
    made.add_exception_handler(HTTPException, _not_served)
    made.add_exception_handler(Exception, _failed)
    return made


def services(app: App) -> dict[type[object], object]:
    """Return everything that routes look up, by its type."""
    settings, clock = app.settings, app.clock
    parts = (
        *(app.account_data, app.admin, app.allowance, app.analytics, app.api_keys, app.baits),
        *(app.challenges, app.costs, app.course, app.decision_tokens, app.endpoints),
        *(app.explainer, app.gate, app.identity, app.key_profiles, app.liveness, app.logins),
        *(app.networks, app.operators, app.passwords, app.personhoods, app.playground),
        *(app.profiles, app.proxy),
        *(app.resolver, app.second_factors, app.sessions, app.sign_ups, app.statements),
        *(app.subjects, app.transfer_pages, app.visits.credentials, app.visits.enrolments),
        *(app.webhooks, AdminRule(needs_totp=settings.admin_totp == "required")),
        agents.EvaluationLimits(
            *(app.sessions, clock, app.quota_lease),
            per_caller=settings.sandbox_per_minute,
            per_agent=settings.sandbox_per_agent_minute,
        ),
        agents.OnDemandEvaluations(
            *(app.evaluator, app.profiles, app.explainer, app.probes),
            settings.sandbox_evaluation_s,
        ),
        PublicAccess(settings.public_pages),
        PublicAgents(
            (SqlListedAgents(app.database), SqlEvaluationStore(app.database)),
            *(app.profiles, app.explainer, app.probes, valid_until),
        ),
        course.CourseEntrance.at(settings.address, clock, app.quota_lease),
        key_agents.AttestationPlan(settings.upgrade_address),
        app.readiness,
        pages.PageFacts(
            settings.address,
            discovery.ABOUT,
            agents.evaluate_now if "trigger-sandbox" in settings.open_endpoints else None,
        ),
        discovery.PublicFacts(
            *(settings.address, settings.wrap_address),
            *(settings.security_contact, settings.service_agent_ids),
            *(settings.anonymous_per_minute, settings.body_bytes_max),
        ),
        admin.StatsSources(
            *(app.costs, app.call_log, lambda: app.event_outbox.undelivered, app.write_back),
            *(app.networks, app.gas.accounts, app.settling),
        ),
    )
    return {Clock: clock, Log: app.log, **{type(one): one for one in parts}}


def _gate(app: App) -> GateHandlerDependencies:
    return GateHandlerDependencies(
        gate=app.gate,
        keys=app.api_keys,
        identity=app.identity,
        web_bot_auth=app.web_bot_auth,
        networks=app.networks,
        tokens=app.decision_tokens,
        write_back=app.write_back,
        clock=app.clock,
        body_bytes_max=app.settings.body_bytes_max,
        takes_asserted=app.settings.identity_proof == "asserted",
        writes_every_answer=app.settings.solana_feedback_on == "every-gate",
    )


def _wrap(app: App) -> WrapHandler:
    settings = app.settings
    return WrapHandler(
        WrapHandlerDependencies(
            pipeline=app.wrappers,
            direct=app.direct,
            origin=app.wrapper_origin,
            payments=app.payments,
            sessions=app.sessions,
            log=app.log,
            clock=app.clock,
            quota_lease=app.quota_lease,
            unread_bytes=settings.wrapper_unread_mib * 1024 * 1024,
            per_minute=settings.wrapper_per_minute,
            keyed_per_minute=settings.keyed_per_minute,
        )
    )


async def _refused(request: Request, error: Exception) -> Response:
    """Render a refusal in the envelope; other errors are faults, which the application reports."""
    if not isinstance(error, ServiceError):
        raise error
    exchange = exchange_of(request.scope)
    note_detail(service(request, Log), exchange, error)
    headers = {name.decode(): value.decode() for name, value in error_headers(error)}
    return Response(
        envelope(error, exchange.request_id), status_of(error), headers, "application/json"
    )


async def _invalid(request: Request, error: Exception) -> Response:
    """Render the framework's 422 as our 400 (conventions.md#error-envelope)."""
    if not isinstance(error, RequestValidationError):
        raise error
    details = [Problem(tuple(e["loc"]), str(e["msg"])) for e in error.errors()]
    return await _refused(
        request,
        InvalidRequest("The request is not valid; `details` says where.", details=details[:20]),
    )


async def _not_served(request: Request, error: Exception) -> Response:
    """Render 404 and 405 of the router."""
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == 405:  # noqa: PLR2004 - the framework's own word for it
        methods = _methods_at(request)
        allowed = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
        exchange_of(request.scope).answer_headers.append((b"allow", allowed.encode()))
        return await _refused(request, MethodNotAllowed("This path does not take this method."))
    return await _refused(request, NotFound("There is nothing at this path."))


async def _failed(request: Request, error: Exception) -> Response:
    """Render a fault in the envelope; the framework raises it again, the application logs it."""
    del error
    return await _refused(request, fault())


def _methods_at(request: Request) -> set[str]:
    """Return every method of this path: the router itself names only those of one route.

    If several templates fit, the first counts: `/operator/key/verify` is not an address.
    """
    fits = [
        one
        for one in request.app.routes
        if isinstance(one, Route) and one.matches(request.scope)[0] is not Match.NONE
    ]
    return {method for one in fits if one.path == fits[0].path for method in one.methods or set()}
