"""The interface as an OpenAPI 3.1 document, generated from the code's own types."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from assay.web.routes import gate
from assay.web.wire import accounts, key_agents
from assay.web.wire.gate import GateBody, GateShape
from assay.wiring import App

VERSION = "1.0.0"
"""The interface's version label. Source: spec, section 9."""

SECURITY_SCHEMES = {
    "operatorKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "An operator's API key, `svc_op_...` (spec 5.1).",
    },
    "dashboardToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "From POST /operator/login (spec 5.2).",
    },
    "agentAddress": {
        "type": "apiKey",
        "in": "header",
        "name": "x-agent-address",
        "description": "The agent's address (spec 5.3).",
    },
    "agentSession": {
        "type": "apiKey",
        "in": "header",
        "name": "x-agent-session",
        "description": "The agent's session, from a signed challenge (spec 5.3).",
    },
}

_BODIES = (
    accounts.RegisterBody,
    accounts.LoginBody,
    accounts.RenameBody,
    accounts.RotateBody,
    key_agents.VerifyBody,
    GateBody,
)


def document(framework: FastAPI, app: App) -> dict[str, Any]:
    """The whole document; lanes add their own operations to the framework's."""
    made = get_openapi(
        title="Assay",
        version=VERSION,
        openapi_version="3.1.0",
        summary="Trust grades for AI agents, AAA to C.",
        description="Errors share one envelope: a stable slug, a code and one sentence.",
        routes=framework.routes,
        servers=[{"url": app.settings.address}],
    )
    for item in made["paths"].values():
        for operation in item.values():
            operation["responses"].pop("422", None)  # refused as 400, see web/app.py
    made["paths"][gate.GateLane.route] = {"post": gate.operation()}
    schemas = made["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas |= _schemas()
    made["components"]["securitySchemes"] = SECURITY_SCHEMES
    return made


def _schemas() -> Mapping[str, Any]:
    """The shapes that are read or written without the framework's help."""
    template = "#/components/schemas/{model}"
    _, bodies = models_json_schema(
        [(body, "validation") for body in _BODIES], ref_template=template
    )
    _, answers = models_json_schema([(GateShape, "serialization")], ref_template=template)
    return {**bodies["$defs"], **answers["$defs"]}
