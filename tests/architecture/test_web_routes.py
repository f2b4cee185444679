"""Every operation asks for the credential of interface.md#credentials-by-operation; nothing is
served beside `route`."""

import ast
from collections.abc import AsyncIterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from assay.accounts.scopes import SCOPES
from assay.app import App, assemble
from assay.app.web import framework, openapi_document
from assay.settings import load

SOURCES = Path(__file__).parents[2] / "src/assay"

NONE: list[set[str]] = []
OP_KEY, JWT = [{"operatorKey"}], [{"dashboardToken"}]
EITHER = [{"operatorKey"}, {"dashboardToken"}]
AGENT = [{"agentAddress", "agentSession"}]
BOTH = [{"operatorKey", "agentAddress", "agentSession"}]

CREDENTIALS: Mapping[str, list[set[str]]] = {
    "GET /operator/health": NONE,
    "GET /api": NONE,
    "GET /api/health": NONE,
    "GET /.well-known/jwks.json": NONE,
    "GET /.well-known/security.txt": NONE,
    "GET /operator/agent/{agentId}": OP_KEY,
    "GET /operator/agent/{agentId}/snapshot": NONE,
    "GET /operator/agent/{agentId}/liveness": NONE,
    "GET /operator/wallet/{wallet}": NONE,
    "GET /operator/resolve-wallet/{wallet}": NONE,
    "POST /operator/trigger-sandbox/{agentId}": NONE,
    "POST /operator/trigger-sandbox-key/{agentAddress}": NONE,
    "POST /operator/agent/{agentId}/visits": [*OP_KEY, *AGENT],
    "DELETE /operator/agent/{agentId}/visits": [*OP_KEY, *AGENT],
    "GET /operator/visits": [*OP_KEY, *AGENT],
    "POST /operator/agent/{agentId}/credentials": AGENT,
    "GET /operator/agent/{agentId}/credentials": AGENT,
    "DELETE /operator/agent/{agentId}/credentials/{credentialId}": AGENT,
    "POST /operator/gate/{agentId}": BOTH,
    "POST /operator/key/{agentAddress}/challenge": NONE,
    "POST /operator/key/verify": NONE,
    "GET /operator/key/{agentAddress}": OP_KEY,
    "GET /operator/key/{agentAddress}/attestation": [*OP_KEY, *AGENT],
    "POST /operator/personhood/verify/{agentId}": NONE,
    "GET /operator/personhood/status/{agentId}": NONE,
    "GET /operator/personhood/profile/{agentId}": NONE,
    "DELETE /operator/key/{agentAddress}/session": AGENT,
    "GET /operator/sandbox/course": NONE,
    "POST /operator/sandbox/course": AGENT,
    "GET /operator/sandbox/bait/{word}": NONE,
    "POST /operator/register": NONE,
    "POST /operator/login": NONE,
    "GET /operator/me": JWT,
    "PATCH /operator/me": JWT,
    "GET /operator/me/export": JWT,
    "DELETE /operator/me": JWT,
    "POST /operator/logout": JWT,
    "GET /operator/sessions": JWT,
    "DELETE /operator/sessions": JWT,
    "DELETE /operator/sessions/{sessionId}": JWT,
    "POST /operator/password": JWT,
    "POST /operator/password/reset-request": NONE,
    "POST /operator/password/reset": NONE,
    "POST /operator/email/verify-request": JWT,
    "POST /operator/email/verify": NONE,
    "POST /operator/totp": JWT,
    "POST /operator/totp/confirm": JWT,
    "POST /operator/totp/recovery-codes": JWT,
    "POST /operator/totp/disable": JWT,
    "GET /operator/keys": JWT,
    "POST /operator/keys/rotate": JWT,
    "DELETE /operator/keys/{keyId}": JWT,
    "GET /operator/endpoints": EITHER,
    "POST /operator/endpoints": EITHER,
    "PATCH /operator/endpoints/{endpointId}": EITHER,
    "GET /operator/endpoints/{endpointId}/history": EITHER,
    "DELETE /operator/endpoints/{endpointId}": EITHER,
    "GET /operator/analytics/stats": JWT,
    "GET /operator/analytics/revenue": JWT,
    "GET /operator/analytics/top-endpoints": JWT,
    "GET /operator/analytics/agents": JWT,
    "GET /operator/analytics/agents/{agentId}": JWT,
    "GET /operator/analytics/logs": JWT,
    "GET /operator/analytics/logs/export": JWT,
    "GET /operator/statement": JWT,
    "GET /operator/statement/export": JWT,
    "GET /operator/statement/transfers": JWT,
    "GET /operator/statement/transfers/export": JWT,
    "GET /operator/admin/statement": JWT,
    "POST /operator/webhooks/register": EITHER,
    "GET /operator/webhooks": EITHER,
    "GET /operator/webhooks/deliveries": EITHER,
    "DELETE /operator/webhooks/{webhookId}": EITHER,
    "POST /operator/webhooks/{webhookId}/verify": EITHER,
    "POST /operator/proxy/{agentId}": OP_KEY,
    "POST /operator/playground": JWT,
    "GET /operator/admin/stats": JWT,
    "GET /operator/admin/operators": JWT,
    "GET /operator/admin/operators/{id}": JWT,
    "PATCH /operator/admin/operators/{id}": JWT,
    "GET /operator/admin/operators/{id}/logs": JWT,
    "GET /operator/admin/audit": JWT,
    **{
        f"{method} /wrap/{{operatorId}}/{{path}}": [set[str](), *AGENT]
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
    },
}
"""Source: interface.md#credentials-by-operation; for the open question of 5.6,
conventions.md#open-endpoints."""

SCOPED = {
    "GET /operator/agent/{agentId}": "evaluate",
    "GET /operator/agent/{agentId}/snapshot": "evaluate",
    "GET /operator/agent/{agentId}/liveness": "evaluate",
    "GET /operator/wallet/{wallet}": "evaluate",
    "GET /operator/resolve-wallet/{wallet}": "evaluate",
    "POST /operator/trigger-sandbox/{agentId}": "evaluate",
    "POST /operator/trigger-sandbox-key/{agentAddress}": "evaluate",
    "GET /operator/key/{agentAddress}": "evaluate",
    "GET /operator/key/{agentAddress}/attestation": "evaluate",
    "POST /operator/agent/{agentId}/visits": "evaluate",
    "DELETE /operator/agent/{agentId}/visits": "evaluate",
    "GET /operator/visits": "evaluate",
    "POST /operator/gate/{agentId}": "gate",
    "POST /operator/webhooks/register": "webhooks",
    "GET /operator/webhooks": "webhooks",
    "GET /operator/webhooks/deliveries": "webhooks",
    "POST /operator/webhooks/{webhookId}/verify": "webhooks",
    "DELETE /operator/webhooks/{webhookId}": "webhooks",
    "POST /operator/proxy/{agentId}": "proxy",
    "GET /operator/endpoints": "wrappers",
    "POST /operator/endpoints": "wrappers",
    "PATCH /operator/endpoints/{endpointId}": "wrappers",
    "GET /operator/endpoints/{endpointId}/history": "wrappers",
    "DELETE /operator/endpoints/{endpointId}": "wrappers",
}
"""The scope of an API key that each operation asks for. Source: conventions.md#account-security."""

OPEN_QUESTION = {
    "GET /operator/agent/{agentId}/snapshot",
    "GET /operator/agent/{agentId}/liveness",
    "GET /operator/wallet/{wallet}",
    "GET /operator/resolve-wallet/{wallet}",
    "POST /operator/trigger-sandbox/{agentId}",
    "POST /operator/trigger-sandbox-key/{agentAddress}",
}

PAGES = {"/openapi.json", "/docs", "/docs/reference.js", "/docs/reference.css"}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with assemble(load(data_dir=tmp_path, log_level="error")) as made:
        yield made


def credentials(document: Mapping[str, Any]) -> dict[str, list[set[str]]]:
    return {
        f"{method.upper()} {path}": [set(needed) for needed in operation["security"]]
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }


async def test_every_operation_asks_for_the_credential_of_the_specification(app: App) -> None:
    assert credentials(openapi_document(app)) == CREDENTIALS


async def test_the_setting_closes_the_endpoints_of_the_open_question_and_no_other(
    tmp_path: Path,
) -> None:
    settings = load(data_dir=tmp_path, log_level="error", open_endpoints=())
    async with assemble(settings) as closed:
        asked = credentials(openapi_document(closed))
    assert asked == {
        name: OP_KEY if name in OPEN_QUESTION else needed for name, needed in CREDENTIALS.items()
    }


async def test_every_operation_that_takes_an_api_key_names_its_scope_and_no_other_does(
    tmp_path: Path,
) -> None:
    settings = load(data_dir=tmp_path, log_level="error", open_endpoints=())
    async with assemble(settings) as closed:
        asked = credentials(openapi_document(closed))
    with_key = {name for name, needed in asked.items() if any("operatorKey" in n for n in needed)}
    assert {name: scope.value for name, scope in SCOPES.items()} == SCOPED
    assert with_key == set(SCOPED)


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
    assert len(routes) >= 20
    for path in routes:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
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
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
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
    assert asked == provided.keys()
