"""What is promised of every answer, checked on every answer any HTTP test gets."""

import re
from collections.abc import Awaitable, Callable, Mapping

import httpx2

from assay.app import App
from assay.app.web import openapi_document

Statuses = Mapping[str, frozenset[int]]
"""By method in upper case."""

_ALWAYS = (
    "x-request-id",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "cache-control",
    "content-type",
)


SCOPES: Mapping[str, str] = {
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
    "GET /gate/check": "gate",
    "GET /gate/check/{policy}": "gate",
    "GET /gate/refusal/{policy}": "gate",
    "POST /operator/webhooks/register": "webhooks",
    "GET /operator/webhooks": "webhooks",
    "GET /operator/webhooks/deliveries": "webhooks",
    "POST /operator/webhooks/{webhookId}/verify": "webhooks",
    "DELETE /operator/webhooks/{webhookId}": "webhooks",
    "POST /operator/proxy/{agentId}": "proxy",
    "GET /operator/endpoints": "wrappers",
    "POST /operator/endpoints": "wrappers",
    "POST /operator/endpoints/import": "wrappers",
    "PATCH /operator/endpoints/{endpointId}": "wrappers",
    "GET /operator/endpoints/{endpointId}/history": "wrappers",
    "DELETE /operator/endpoints/{endpointId}": "wrappers",
}
"""The scope of an API key that each operation asks for. Source: conventions.md#account-security."""

Documented = list[tuple[re.Pattern[str], Statuses]]

_known: dict[frozenset[str], Documented] = {}
# Half a second each, and most tests ask for the same: only this setting changes which operations
# need a credential, and so which statuses they have.


def _documented(app: App) -> Documented:
    key = frozenset(app.settings.open_endpoints)
    if key not in _known:
        paths = openapi_document(app)["paths"]
        _known[key] = [
            (
                re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))),
                {m.upper(): frozenset(map(int, op["responses"])) for m, op in item.items()},
            )
            for path, item in sorted(paths.items(), key=lambda pair: pair[0].count("{"))
            if not path.startswith("/wrap/")
        ]
    return _known[key]


_ENVELOPE = frozenset({"error", "code", "message", "requestId"})


def is_page(answer: httpx2.Response) -> bool:
    """Whether it is a page, which only those get who take one."""
    is_html = answer.headers["content-type"] == "text/html; charset=utf-8"
    return is_html and answer.request.headers["accept"] != "application/json"


def promises_of(
    app: App,
) -> Callable[[httpx2.Response], Awaitable[None]]:
    """A response hook that fails the test of an answer nobody was promised."""

    def statuses(method: str, path: str) -> frozenset[int] | None:
        """Of the template that fits best; None for a path that is in no document."""
        # At the check for proxies, GET stands for every method.
        method = "GET" if path.startswith("/gate/") else method
        for pattern, methods in _documented(app):
            if pattern.fullmatch(path):
                return methods.get(method, frozenset({405, 413, 408, 429, 400}))
        return None

    async def check(answer: httpx2.Response) -> None:
        request = answer.request
        if request.url.path.startswith(("/wrap/", "/operator/sandbox/course/")):
            assert answer.headers.get("x-request-id")
            return  # an upstream's answers are not ours to promise, and a step plays an upstream
        promised = statuses(request.method, request.url.path)
        said = f"{request.method} {request.url.path} -> {answer.status_code}"
        assert promised is None or answer.status_code in promised, f"{said} is not documented"
        for name in _ALWAYS[: 5 if answer.status_code == 304 else None]:  # it has no content
            assert answer.headers.get(name), f"{said} has no {name}"
        assert answer.headers.get("x-content-type-options") == "nosniff", said
        assert answer.headers.get("referrer-policy") == "no-referrer", said
        assert "server" not in answer.headers, said
        if answer.status_code >= 400:
            await answer.aread()
            assert is_page(answer) or answer.json().keys() >= _ENVELOPE, said
            assert answer.headers["cache-control"] == "no-store", said
            assert ("allow" in answer.headers) == (answer.status_code == 405), said
            waits = answer.status_code in {429, 503}
            assert ("retry-after" in answer.headers) == waits, said

    return check
