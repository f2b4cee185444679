"""Describes the interface as an OpenAPI 3.1 document, generated from the code's types.

Descriptions and examples stand at the fields. The example of a body is composed of those of its
fields. What operations share is a component, so that the document stays small.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from assay import __version__
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
from assay.server.errors import STATUS
from assay.server.schemas import ErrorResponse
from assay.webhooks import schemas as webhooks
from assay.wrappers import schemas as endpoints
from assay.wrappers import schemas_calls, schemas_import

VERSION = "1.0.0"
"""The version label of the interface. Source: interface.md#versioning."""

WRAPPED = "/wrap/{operatorId}/{path}"

SECURITY_SCHEMES = {
    "operatorKey": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "The word `Bearer`, a blank, and an operator's API key, `svc_op_...`.",
    },
    "dashboardToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A dashboard token: an operator's log-in by POST /operator/login.",
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
    ("Public reports", "Grades of registered agents, for anybody to read."),
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

_AGENT_HEADERS = (
    ("x-agent-address", "The agent's address.", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"),
    ("x-agent-session", "The agent's session, from a signed challenge.", "c2Vzc2lvbg.c2ln"),
)
"""The headers of the agent's security schemes. They are parameters as well: most importers send no
more than one scheme of an operation."""

REFUSALS: Mapping[str, str] = {
    "400": "The input is invalid.",
    "401": "The credential or the agent's proof is missing, invalid, expired or revoked.",
    "402": "The call has to be paid: the body and the headers say how.",
    "403": "The plan, role, scope, account or grade does not allow it.",
    "404": "It does not exist.",
    "405": "The path does not take this method.",
    "408": "The request did not arrive in time.",
    "409": "It conflicts with what there is.",
    "412": "It has changed since: `If-Match` names an earlier revision.",
    "413": "The request body is too large.",
    "429": "Too many requests: `Retry-After` says how long to wait.",
    "500": "An internal error.",
    "502": "The upstream did not answer.",
    "503": "It is temporarily unavailable.",
}
"""Meanings of the statuses of refusals. Source: interface.md#status-codes."""

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
    schemas_import.EndpointImport,
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
        license_info={"name": "Apache 2.0", "identifier": "Apache-2.0"},
        routes=framework.routes,
        tags=[{"name": name, "description": said} for name, said in TAGS],
        servers=[{"url": app.settings.address}],
    )
    made["info"]["x-product-version"] = __version__
    made["paths"][gate.GateHandler.route] = {"post": gate.operation()}
    made["paths"] |= gate_check.operations()
    made["paths"][WRAPPED] = schemas_calls.operations()
    components = made["components"]
    schemas = components["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas |= _schemas()
    components["responses"] = {}
    for path, operation in _operations(made):
        operation["responses"].pop("422", None)  # refused with 400: app/web.py
        if path != WRAPPED:  # its answers are the upstreams'
            _name_headers(operation)
        _name_agent(operation)
        _show_bodies(operation, schemas)
        _share_refusals(operation, components["responses"], is_wrapper=path == WRAPPED)
    components["parameters"] = _shared_parameters(made)
    if not app.wrapper_origin.is_shared:
        made["paths"][WRAPPED]["servers"] = [{"url": app.wrapper_origin.address}]
    components["securitySchemes"] = SECURITY_SCHEMES
    components["headers"] = {
        name: {"description": said, "schema": {"type": _type_of(name)}}
        for name, said in HEADERS.items()
    }
    return made


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Return an example of a schema: its own, or one composed of its members' examples.

    None if it has none, which is valid where null is. Members that may be absent are left out then.
    """
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    for own in (schema.get("examples"), schema.get("enum"), [schema.get("default")]):
        if own and own[0] is not None:
            return own[0]
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], schemas)
    match schema.get("type"):
        case "object":
            return _composed(schema, schemas)
        case "array":
            return [example_of(schema["items"], schemas)]
        case kind:
            return schema.get("const", True if kind == "boolean" else None)


def _composed(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    members = schema.get("properties", {}).items()
    composed = {name: example_of(member, schemas) for name, member in members}
    needed = schema.get("required", ())
    return {name: one for name, one in composed.items() if one is not None or name in needed}


def _operations(made: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in made["paths"].items():
        for operation in item.values():
            yield path, operation


def _name_agent(operation: dict[str, Any]) -> None:
    """Add the headers in which an agent proves its address to the parameters."""
    if any("agentSession" in needed for needed in operation["security"]):
        operation.setdefault("parameters", []).extend(
            {
                "name": name,
                "in": "header",
                "required": False,
                "description": said,
                "schema": {"type": "string", "examples": [shown]},
            }
            for name, said, shown in _AGENT_HEADERS
        )


def _show_bodies(operation: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """Add an example to the body of the request, and to those of the responses."""
    bodies = [("", operation.get("requestBody", {})), *operation["responses"].items()]
    for status, body in bodies:
        shown = body.get("content", {}).get("application/json")
        if shown is None:
            continue
        shown["example"] = example_of(shown["schema"], schemas)
        if status in REFUSALS:
            code = next(code for code, number in STATUS.items() if number == int(status))
            body["description"] = REFUSALS[status]
            said = {"error": code, "code": code, "message": REFUSALS[status]}
            body["content"] = {"application/json": {**shown, "example": shown["example"] | said}}


def _share_refusals(operation: dict[str, Any], shared: dict[str, Any], *, is_wrapper: bool) -> None:
    """Replace the refusals of an operation by references to components."""
    responses = operation["responses"]
    for status in sorted(responses.keys() & REFUSALS.keys()):
        begins = "x-agent-session" in responses[status].get("headers", ())
        kind = "OfWrapper" if is_wrapper else "WithSession" if begins else ""
        name = HTTPStatus(int(status)).phrase.title().replace(" ", "") + kind
        shared[name] = responses[status]
        responses[status] = {"$ref": f"#/components/responses/{name}"}


def _shared_parameters(made: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace parameters that several operations have by references; return the components."""
    used = [one for _, operation in _operations(made) for one in operation.get("parameters", ())]
    counts = Counter(json.dumps(one) for one in used)
    whole = {json.dumps(one): one for one in used}
    names: dict[str, str] = {}
    for text in (text for text, count in counts.items() if count > 1):
        name = whole[text]["name"]
        same = sum(taken.partition(".")[0] == name for taken in names.values())
        names[text] = f"{name}.{same + 1}" if same else name
    for _, operation in _operations(made):
        if "parameters" in operation:
            operation["parameters"] = [
                {"$ref": f"#/components/parameters/{names[text]}"} if text in names else one
                for one in operation["parameters"]
                for text in (json.dumps(one),)
            ]
    return {name: whole[text] for text, name in names.items()}


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
