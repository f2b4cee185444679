"""Every operation asks for the credential of interface.md#credentials-by-operation; nothing is
served beside `route`."""

import ast
from collections.abc import AsyncIterator, Mapping
from importlib import import_module
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from assay.accounts.auth import (
    admin,
    api_key,
    api_key_or_token,
    dashboard_token,
    public,
    public_within,
    token_and_password,
    token_for_export,
)
from assay.accounts.model import Scope
from assay.app import App, assemble
from assay.app.web import framework, openapi_document
from assay.identity.auth import agent, api_key_or_agent
from assay.server.route import Auth
from assay.settings import load
from tests.support.promises import SCOPES
from tests.support.syntax import nodes

SOURCES = Path(__file__).parents[2] / "src/assay"

AUTH: Mapping[str, Auth] = {
    "GET /operator/health": public,
    "GET /api": public,
    "GET /api/health": public,
    "GET /.well-known/jwks.json": public,
    "GET /.well-known/security.txt": public,
    "GET /.well-known/api-catalog": public,
    "GET /.well-known/agent-registration.json": public,
    "GET /robots.txt": public,
    "GET /llms.txt": public,
    "GET /livez": public,
    "GET /readyz": public,
    "GET /operator/agent/{agentId}": api_key(Scope.EVALUATE),
    "GET /operator/agent/{agentId}/snapshot": public_within(Scope.EVALUATE),
    "GET /operator/agent/{agentId}/liveness": public_within(Scope.EVALUATE),
    "GET /operator/wallet/{wallet}": public_within(Scope.EVALUATE),
    "GET /operator/resolve-wallet/{wallet}": public_within(Scope.EVALUATE),
    "POST /operator/trigger-sandbox/{agentId}": public_within(Scope.EVALUATE),
    "POST /operator/trigger-sandbox-key/{agentAddress}": public_within(Scope.EVALUATE),
    "GET /operator/agents": public,
    "GET /operator/agent/{agentId}/report": public,
    "GET /operator/agent/{agentId}/history": public,
    "POST /operator/agent/{agentId}/visits": api_key_or_agent(Scope.EVALUATE),
    "DELETE /operator/agent/{agentId}/visits": api_key_or_agent(Scope.EVALUATE),
    "GET /operator/visits": api_key_or_agent(Scope.EVALUATE),
    "POST /operator/agent/{agentId}/credentials": agent,
    "GET /operator/agent/{agentId}/credentials": agent,
    "DELETE /operator/agent/{agentId}/credentials/{credentialId}": agent,
    "POST /operator/key/{agentAddress}/challenge": public,
    "POST /operator/key/verify": public,
    "GET /operator/key/{agentAddress}": api_key(Scope.EVALUATE),
    "GET /operator/key/{agentAddress}/attestation": api_key_or_agent(Scope.EVALUATE),
    "POST /operator/personhood/verify/{agentId}": public,
    "GET /operator/personhood/status/{agentId}": public,
    "GET /operator/personhood/profile/{agentId}": public,
    "DELETE /operator/key/{agentAddress}/session": agent,
    "GET /operator/sandbox/course": public,
    "POST /operator/sandbox/course": agent,
    "GET /operator/sandbox/bait/{word}": public,
    "POST /operator/register": public,
    "POST /operator/login": public,
    "GET /operator/me": dashboard_token,
    "PATCH /operator/me": dashboard_token,
    "GET /operator/me/export": token_for_export,
    "DELETE /operator/me": token_and_password,
    "POST /operator/logout": dashboard_token,
    "GET /operator/sessions": dashboard_token,
    "DELETE /operator/sessions": dashboard_token,
    "DELETE /operator/sessions/{sessionId}": dashboard_token,
    "POST /operator/password": token_and_password,
    "POST /operator/password/reset-request": public,
    "POST /operator/password/reset": public,
    "POST /operator/email/verify-request": dashboard_token,
    "POST /operator/email/verify": public,
    "POST /operator/totp": dashboard_token,
    "POST /operator/totp/confirm": dashboard_token,
    "POST /operator/totp/recovery-codes": token_and_password,
    "POST /operator/totp/disable": token_and_password,
    "GET /operator/keys": dashboard_token,
    "POST /operator/keys/rotate": dashboard_token,
    "GET /operator/keys/{keyId}/gate-policies": dashboard_token,
    "PUT /operator/keys/{keyId}/gate-policies": dashboard_token,
    "DELETE /operator/keys/{keyId}": dashboard_token,
    "GET /operator/endpoints": api_key_or_token(Scope.WRAPPERS),
    "POST /operator/endpoints": api_key_or_token(Scope.WRAPPERS),
    "POST /operator/endpoints/import": api_key_or_token(Scope.WRAPPERS),
    "PATCH /operator/endpoints/{endpointId}": api_key_or_token(Scope.WRAPPERS),
    "GET /operator/endpoints/{endpointId}/history": api_key_or_token(Scope.WRAPPERS),
    "DELETE /operator/endpoints/{endpointId}": api_key_or_token(Scope.WRAPPERS),
    "GET /operator/analytics/stats": dashboard_token,
    "GET /operator/analytics/revenue": dashboard_token,
    "GET /operator/analytics/top-endpoints": dashboard_token,
    "GET /operator/analytics/agents": dashboard_token,
    "GET /operator/analytics/agents/{agentId}": dashboard_token,
    "GET /operator/analytics/logs": dashboard_token,
    "GET /operator/analytics/logs/export": dashboard_token,
    "GET /operator/statement": dashboard_token,
    "GET /operator/statement/export": dashboard_token,
    "GET /operator/statement/transfers": dashboard_token,
    "GET /operator/statement/transfers/export": dashboard_token,
    "GET /operator/admin/statement": admin,
    "POST /operator/webhooks/register": api_key_or_token(Scope.WEBHOOKS),
    "GET /operator/webhooks": api_key_or_token(Scope.WEBHOOKS),
    "GET /operator/webhooks/deliveries": api_key_or_token(Scope.WEBHOOKS),
    "DELETE /operator/webhooks/{webhookId}": api_key_or_token(Scope.WEBHOOKS),
    "POST /operator/webhooks/{webhookId}/verify": api_key_or_token(Scope.WEBHOOKS),
    "POST /operator/proxy/{agentId}": api_key(Scope.PROXY),
    "POST /operator/playground": dashboard_token,
    "GET /operator/admin/stats": admin,
    "GET /operator/admin/operators": admin,
    "GET /operator/admin/operators/{id}": admin,
    "PATCH /operator/admin/operators/{id}": admin,
    "GET /operator/admin/operators/{id}/logs": admin,
    "GET /operator/admin/audit": admin,
}
"""Source: interface.md#credentials-by-operation; for the open question of 5.6,
conventions.md#open-endpoints."""

BY_HAND: Mapping[str, list[set[str]]] = {
    "POST /operator/gate/{agentId}": [{"operatorKey", "agentAddress", "agentSession"}],
    "GET /gate/check": [{"operatorKey", "agentAddress", "agentSession"}],
    "GET /gate/check/{policy}": [{"operatorKey", "agentAddress", "agentSession"}],
    "GET /gate/refusal/{policy}": [{"operatorKey", "agentAddress", "agentSession"}],
    **{
        f"{method} /wrap/{{operatorId}}/{{path}}": [set[str](), {"agentAddress", "agentSession"}]
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
    },
}
"""Operations that the framework does not see."""

OPEN_QUESTION = {
    "GET /operator/agent/{agentId}/snapshot",
    "GET /operator/agent/{agentId}/liveness",
    "GET /operator/wallet/{wallet}",
    "GET /operator/resolve-wallet/{wallet}",
    "POST /operator/trigger-sandbox/{agentId}",
    "POST /operator/trigger-sandbox-key/{agentAddress}",
}

PAGES = {
    *("/openapi.json", "/openapi.yaml", "/docs", "/docs/{name}", "/favicon.svg"),
    *("/", "/agents", "/agents/{chain}/{agent_id}", "/badge/{chain}/{agent_id}.svg"),
    *("/probes", "/probes/{name}", "/methodology", "/pages/{name}"),
}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with assemble(load(data_dir=tmp_path, log_level="error")) as made:
        yield made


def declared(app: App) -> dict[str, Auth]:
    """What each operation of the framework runs before itself."""
    found: dict[str, Auth] = {}
    for route in framework(app).routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            (method,), (depends,) = route.methods, route.dependencies
            assert isinstance(depends.dependency, Auth), route.path
            found[f"{method} {route.path}"] = depends.dependency
    return found


def documented(app: App) -> dict[str, list[set[str]]]:
    return {
        f"{method.upper()} {path}": [set(needed) for needed in operation["security"]]
        for path, item in openapi_document(app)["paths"].items()
        for method, operation in item.items()
    }


def security(auths: Mapping[str, Auth]) -> dict[str, list[set[str]]]:
    return {name: [set(needed) for needed in auth.security] for name, auth in auths.items()}


async def test_every_operation_asks_for_the_credential_of_the_specification(app: App) -> None:
    assert declared(app) == AUTH
    assert documented(app) == security(AUTH) | BY_HAND


async def test_the_setting_closes_the_endpoints_of_the_open_question_and_no_other(
    tmp_path: Path,
) -> None:
    settings = load(data_dir=tmp_path, log_level="error", open_endpoints=())
    async with assemble(settings) as closed:
        asked, shown = declared(closed), documented(closed)
    assert asked == AUTH | dict.fromkeys(OPEN_QUESTION, api_key(Scope.EVALUATE))
    assert shown == security(asked) | BY_HAND


async def test_every_operation_that_takes_an_api_key_names_its_scope_and_no_other_does(
    tmp_path: Path,
) -> None:
    settings = load(data_dir=tmp_path, log_level="error", open_endpoints=())
    async with assemble(settings) as closed:
        asked, shown = declared(closed), documented(closed)
    with_key = {name for name, needed in shown.items() if any("operatorKey" in n for n in needed)}
    assert with_key == set(SCOPES)
    assert {name for name, auth in asked.items() if "API key" in auth.name} == {
        name for name in SCOPES if "/gate/" not in name
    }
    for name, auth in asked.items():
        assert name not in SCOPES or f"API key: {SCOPES[name]}" in auth.name


async def test_only_the_pages_are_served_undeclared(app: App) -> None:
    """No credential, no route: what `route` did not declare has no `security`."""
    undeclared = {
        route.path  # type: ignore[attr-defined]
        for route in framework(app).routes
        if "security" not in (getattr(route, "openapi_extra", None) or {})
    }
    assert undeclared == PAGES


async def test_nothing_stands_between_the_edge_and_the_routes(app: App) -> None:
    """One framework middleware costs more than the rest together (ADR 0006)."""
    assert framework(app).user_middleware == []


def test_routes_are_declared_by_route_alone() -> None:
    routes = sorted(SOURCES.rglob("routes*.py"))
    assert len(routes) >= 15
    for path in routes:
        if path.parent.name == "pages":
            continue  # what it serves is among `PAGES`
        for node in nodes(path.read_text("utf-8")):
            if isinstance(node, ast.Attribute):
                assert node.attr not in {
                    "add_api_route",
                    "get",
                    "post",
                    "put",
                    "patch",
                    "delete",
                    "api_route",
                } or not (isinstance(node.value, ast.Name) and node.value.id == "router"), path.name


def looked_up() -> set[tuple[str, str]]:
    """Each `service(request, Type)` in the sources: the module, and the name of the type there."""
    found: set[tuple[str, str]] = set()
    for path in SOURCES.rglob("*.py"):
        for node in nodes(path.read_text("utf-8")):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "service"
            ):
                module = ".".join(("assay", *path.relative_to(SOURCES).with_suffix("").parts))
                assert isinstance(node.args[1], ast.Name), f"{module}: name the type itself"
                found.add((module, node.args[1].id))
    return found


async def test_every_service_that_a_route_looks_up_is_provided_and_no_other(app: App) -> None:
    provided = framework(app).state.services
    asked = {getattr(import_module(module), name) for module, name in looked_up()}
    assert len(asked) >= 30
    assert asked == provided.keys(), "`services` in app/web.py says what is provided"
