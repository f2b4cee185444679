"""The table from error codes to HTTP statuses, the error envelope, and early refusals.

Source: conventions.md#error-envelope.

Refusals written before any application has seen a request.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from assay.common.errors import ServiceError
from assay.common.ids import new_id
from assay.common.json import JsonValue

STATUS: Mapping[str, int] = MappingProxyType(
    {
        "invalid_request": 400,
        "proof_invalid": 400,
        "request_loop": 400,
        "upgrade_not_supported": 400,
        "token_invalid": 400,
        "payment_required": 402,
        "unauthorized": 401,
        "identity_required": 401,
        "challenge_required": 401,
        "signature_invalid": 401,
        "identity_mismatch": 401,
        "web_bot_auth_refused": 401,
        "totp_required": 401,
        "totp_invalid": 401,
        "forbidden": 403,
        "plan_required": 403,
        "account_suspended": 403,
        "insufficient_scope": 403,
        "invite_invalid": 403,
        "mail_disabled": 403,
        "password_wrong": 403,
        "sign_up_closed": 403,
        "totp_enrolment_required": 403,
        "trust_denied": 403,
        "not_found": 404,
        "agent_not_found": 404,
        "agent_not_evaluated": 404,
        "snapshot_not_found": 404,
        "course_step_not_found": 404,
        "key_not_found": 404,
        "operator_not_found": 404,
        "session_not_found": 404,
        "endpoint_not_found": 404,
        "wrapper_not_found": 404,
        "call_not_found": 404,
        "delivery_not_found": 404,
        "note_not_found": 404,
        "webhook_not_found": 404,
        "not_enrolled": 404,
        "gate_policy_not_found": 404,
        "credential_not_found": 404,
        "method_not_allowed": 405,
        "request_timeout": 408,
        "conflict": 409,
        "email_taken": 409,
        "key_limit_reached": 409,
        "last_admin": 409,
        "totp_conflict": 409,
        "endpoint_overlaps": 409,
        "human_taken": 409,
        "course_step_left": 409,
        "webhook_limit_reached": 409,
        "enrolment_limit_reached": 409,
        "credential_limit_reached": 409,
        "control_unproven": 409,
        "precondition_failed": 412,
        "payload_too_large": 413,
        "request_head_too_large": 431,
        "rate_limited": 429,
        "too_many_connections": 429,
        "quota_exceeded": 429,
        "rate_limit_exceeded": 429,
        "egress_budget": 429,
        "wrapper_upstream_unread": 429,
        "wrapper_upstream_busy": 429,
        "MONTHLY_REQUEST_LIMIT_EXCEEDED": 429,
        "internal_error": 500,
        "wrapper_request_failed": 502,
        "proxy_request_failed": 502,
        "temporarily_unavailable": 503,
        "chain_unavailable": 503,
        "evidence_unavailable": 503,
        "personhood_unavailable": 503,
        "payments_unavailable": 503,
        "settlement_pending": 503,
    }
)
"""Source: interface.md#errors; conventions.md#error-envelope."""


def fault() -> ServiceError:
    """Return the error for a fault of ours, which tells the caller only where to look for it."""
    return ServiceError("Something went wrong on our side; the request id names it in our logs.")


def status_of(error: ServiceError) -> int:
    """Return the HTTP status of a refusal."""
    return STATUS[error.code]


def envelope(error: ServiceError, request_id: str) -> bytes:
    """Return the body of a refusal: slug, code, sentence, extras, request id."""
    body: dict[str, JsonValue] = {
        "error": error.code.lower(),
        "code": error.code,
        "message": error.message,
        **error.extras,
        "requestId": request_id,
    }
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def error_headers(error: ServiceError) -> list[tuple[bytes, bytes]]:
    """Return the extra headers of a refusal: `Retry-After`, and how to authenticate.

    The latter is sent with a 401, and with the 403 of a key that lacks a scope (RFC 6750, section
    3.1).
    """
    headers: list[tuple[bytes, bytes]] = []
    if error.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, error.retry_after_s)).encode()))
    if error.code == "unauthorized":
        headers.append((b"www-authenticate", b'Bearer realm="assay"'))
    scope = error.extras.get("scope") if error.code == "insufficient_scope" else None
    if isinstance(scope, str):
        challenge = f'Bearer realm="assay", error="insufficient_scope", scope="{scope}"'
        headers.append((b"www-authenticate", challenge.encode()))
    return headers


_ALLOW = (b"allow", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")


def refusal(error: ServiceError, *, is_head: bool = False) -> bytes:
    """Return the whole response, in the error envelope; the connection ends after it.

    A HEAD request gets only its head.
    """
    request_id = new_id()
    body = envelope(error, request_id)
    headers = [
        (b"content-type", b"application/json"),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"x-request-id", request_id.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
        *error_headers(error),
    ]
    if error.code == "method_not_allowed":
        headers.append(_ALLOW)
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"".join((STATUS_LINE[status_of(error)], lines, b"\r\n", b"" if is_head else body))
