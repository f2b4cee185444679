"""The calls of wrappers in the OpenAPI document. Source: interface.md#wrappers."""

from typing import Any

from assay.server.schemas import ErrorResponse


def operations() -> dict[str, Any]:
    """Return the OpenAPI operations of wrapper calls: one for each method, all alike."""
    error = {
        "application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorResponse.__name__}"}}
    }
    refusals = {str(s): {"description": "A refusal.", "content": error} for s in _REFUSALS}
    text = {"type": "string"}
    headers = [
        {"name": name, "in": "header", "required": False, "schema": text, "description": said}
        for name, said in _CALLER_HEADERS.items()
    ]
    places = [
        {"name": name, "in": "path", "required": True, "schema": text, "description": said}
        for name, said in (
            ("operatorId", "The id of the account whose API it is."),
            ("path", "The wrapper's path; it may hold further slashes."),
        )
    ]
    return {
        method: {
            "tags": ["Wrappers"],
            "operationId": f"wrap_{method}",
            "summary": f"Call a wrapped API by {method.upper()}",
            "description": "Payment, trust, rate limit, then the upstream's own answer.",
            "security": [{}, {"agentAddress": [], "agentSession": []}],
            "parameters": [*places, *headers],
            "responses": {
                "default": {"description": "The upstream's response, with its own status."},
                **refusals,
            },
        }
        for method in ("get", "post", "put", "patch", "delete")
    }


_REFUSALS = (400, 401, 402, 403, 404, 408, 413, 429, 502, 503)
"""Source: interface.md#wrapper-errors; conventions.md#wrapper."""

_CALLER_HEADERS = {
    "x-payment": "An x402 payment, version 1 (or 2).",
    "payment-signature": "An x402 payment, version 2.",
    "x-agent-id": "The registered agent that calls.",
    "x-chain": "The chain of x-agent-id.",
}
"""Source: interface.md#wrappers."""
