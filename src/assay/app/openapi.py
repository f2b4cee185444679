"""Describes the interface as an OpenAPI 3.1 document, generated from the code's types."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from assay.accounts import schemas as accounts
from assay.admin import schemas as admin
from assay.app import App
from assay.evaluation import schemas_visits as service_credentials
from assay.gate import routes as gate
from assay.gate import routes_check as gate_check
from assay.gate.schemas import GatePoliciesRequest, GateRequest, GateResponse
from assay.key_agents import schemas as key_agents
from assay.personhood import schemas as personhood
from assay.playground import schemas as proxy
from assay.server.schemas import ErrorResponse
from assay.webhooks import schemas as webhooks
from assay.wrappers import schemas as endpoints

VERSION = "1.0.0"
"""The version label of the interface. Source: interface.md#versioning."""

WRAPPED = "/wrap/{operatorId}/{path}"

SECURITY_SCHEMES = {
    "operatorKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "An operator's API key, `svc_op_...`.",
    },
    "dashboardToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "From POST /operator/login.",
    },
    "agentAddress": {
        "type": "apiKey",
        "in": "header",
        "name": "x-agent-address",
        "description": "The agent's address.",
    },
    "agentSession": {
        "type": "apiKey",
        "in": "header",
        "name": "x-agent-session",
        "description": "The agent's session, from a signed challenge.",
    },
}

TAGS = (
    ("Health and discovery", "Whether the service is up, and where to find what."),
    ("Trust", "Profiles, evaluations and the gate."),
    ("Key agents", "Agents without an on-chain identity prove an address by signing."),
    ("Conduct", "The obstacle course: how an agent behaves as a caller."),
    ("Personhood", "A human proves to stand behind an agent."),
    ("Wrappers", "An operator's APIs, as agents reach and pay for them."),
    ("Analytics", "An operator's calls, money and agents, counted."),
    ("Webhooks", "Receive events about evaluations."),
    ("Proxy and playground", "Calls made for operators, through guarded egress."),
    ("Admin", "The platform as its admins see and change it."),
    ("Accounts and keys", "Operators, their dashboard tokens and their API keys."),
)

HEADERS = {
    "x-request-id": "Names the request in our logs; the caller's own when well formed.",
    "ratelimit-limit": "Requests a minute that this caller may make.",
    "ratelimit-remaining": "Of those, how many are left now.",
    "ratelimit-reset": "Seconds until all of them are there again.",
    "retry-after": "Seconds to wait before asking again.",
    "allow": "The methods this path takes.",
    "www-authenticate": "How to authenticate.",
    "etag": "The revision: of a wrapper for `If-Match`, of a document for `If-None-Match`.",
    "x-agent-session": "A session that began with this request, for one hour.",
}
"""Headers of responses, by name."""

_ALWAYS = ("x-request-id", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset")
_TAGGED = frozenset({"create_endpoint", "change_endpoint"})
_BEGINS_A_SESSION = "verify"
_SOMETIMES = {
    "401": ("www-authenticate",),
    "405": ("allow",),
    "429": ("retry-after",),
    "503": ("retry-after",),
}

_BODIES = (
    accounts.RegisterRequest,
    accounts.LoginRequest,
    accounts.RenameRequest,
    accounts.RotateRequest,
    accounts.PasswordChangeRequest,
    accounts.ResetLinkRequest,
    accounts.PasswordResetRequest,
    accounts.VerifyEmailRequest,
    accounts.PasswordRequest,
    accounts.TotpConfirmRequest,
    accounts.SecondFactorRequest,
    accounts.DeleteAccountRequest,
    key_agents.VerifyRequest,
    personhood.ProofRequest,
    endpoints.EndpointRequest,
    endpoints.EndpointPatch,
    admin.ChangeRequest,
    webhooks.WebhookRequest,
    proxy.ProxyRequest,
    proxy.PlaygroundRequest,
    service_credentials.CredentialRequest,
    GateRequest,
    GatePoliciesRequest,
)


def document(framework: FastAPI, app: App) -> dict[str, Any]:
    """Return the whole document; raw handlers add their operations to the framework's."""
    made = get_openapi(
        title="Assay",
        version=VERSION,
        openapi_version="3.1.0",
        summary="Trust grades for AI agents, AAA to C.",
        description="Errors share one envelope: a stable slug, a code and one sentence.",
        routes=framework.routes,
        tags=[{"name": name, "description": said} for name, said in TAGS],
        servers=[{"url": app.settings.address}],
    )
    made["paths"][gate.GateHandler.route] = {"post": gate.operation()}
    made["paths"] |= gate_check.operations()
    made["paths"][WRAPPED] = endpoints.operations()
    for item in made["paths"].values():
        for operation in item.values():
            operation["responses"].pop("422", None)  # refused with 400: app/web.py
            if item is not made["paths"][WRAPPED]:  # its answers are the upstreams'
                _name_headers(operation)
    if not app.wrapper_origin.is_shared:
        made["paths"][WRAPPED]["servers"] = [{"url": app.wrapper_origin.address}]
    schemas = made["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas |= _schemas()
    made["components"]["securitySchemes"] = SECURITY_SCHEMES
    made["components"]["headers"] = {
        name: {"description": said, "schema": {"type": _type_of(name)}}
        for name, said in HEADERS.items()
    }
    return made


def _name_headers(operation: dict[str, Any]) -> None:
    """Add the headers of the application and of the agent's proof to each response."""
    begins = operation["operationId"] == _BEGINS_A_SESSION or any(
        "agentSession" in needed for needed in operation["security"]
    )
    for status, response in operation["responses"].items():
        names = (*_ALWAYS, *_SOMETIMES.get(status, ()), *(("x-agent-session",) if begins else ()))
        is_tagged = operation["operationId"] in _TAGGED or "304" in operation["responses"]
        if status in {"200", "304"} and is_tagged:
            names = (*names, "etag")
        response["headers"] = {n: {"$ref": f"#/components/headers/{n}"} for n in names}


def _type_of(header: str) -> str:
    return "integer" if header.startswith(("ratelimit-", "retry-")) else "string"


def _schemas() -> Mapping[str, Any]:
    """Return the schemas that are read or written without the framework's help."""
    template = "#/components/schemas/{model}"
    _, bodies = models_json_schema(
        [(body, "validation") for body in _BODIES], ref_template=template
    )
    _, answers = models_json_schema(
        [(shape, "serialization") for shape in (GateResponse, ErrorResponse)], ref_template=template
    )
    return {**bodies["$defs"], **answers["$defs"]}
