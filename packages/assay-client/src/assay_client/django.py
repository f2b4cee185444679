"""Django: a middleware that lets only callers through that pass the gate.

    MIDDLEWARE = ["assay_client.django.AssayMiddleware", ...]
    ASSAY = {"base_url": URL, "api_key": KEY, "policy": GatePolicy(min_score=70)}

The decision is in `request.assay_decision`. Both WSGI and ASGI are served.
"""

import importlib
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any

from assay_client.client import Assay, AsyncAssay
from assay_client.middleware import GatePolicy, Passed, Refused, check, headers_of


class AssayMiddleware:
    """Guards every view of a project; `settings.ASSAY` has the client's options and the policy."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        options = dict(importlib.import_module("django.conf").settings.ASSAY)
        self._response: Any = importlib.import_module("django.http").HttpResponse
        self._policy: GatePolicy = options.pop("policy", GatePolicy())
        self._get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            importlib.import_module("asgiref.sync").markcoroutinefunction(self)
            self._async_client = AsyncAssay(**options)
        else:
            self._client = Assay(**options)

    def __call__(self, request: Any) -> Any:
        """Answer one request: an awaitable where Django is asynchronous."""
        headers = headers_of(request.META)
        request.__dict__.pop("headers", None)  # Django keeps what it read of META
        if self._is_async:
            return self._answer(request, headers)
        outcome: Passed | Refused = Passed(None)
        if request.path not in self._policy.open_paths:
            outcome = self._client.run(check(self._client.core, self._policy, headers))
        if isinstance(outcome, Refused):
            return self._refusal(outcome)
        request.assay_decision = outcome.decision
        return self._with(self._get_response(request), outcome)

    async def _answer(self, request: Any, headers: list[tuple[str, str]]) -> Any:
        outcome: Passed | Refused = Passed(None)
        client = self._async_client
        if request.path not in self._policy.open_paths:
            outcome = await client.run(check(client.core, self._policy, headers))
        if isinstance(outcome, Refused):
            return self._refusal(outcome)
        request.assay_decision = outcome.decision
        found: Awaitable[Any] = self._get_response(request)
        return self._with(await found, outcome)

    def _refusal(self, refused: Refused) -> Any:
        return self._response(refused.body, status=refused.status, headers=refused.all_headers)

    def _with(self, response: Any, passed: Passed) -> Any:
        for name, value in passed.headers.items():
            response[name] = value
        return response
