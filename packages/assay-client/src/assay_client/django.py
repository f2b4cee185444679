"""Django: a middleware that lets only callers through that pass the gate.

    MIDDLEWARE = ["assay_client.django.AssayMiddleware", ...]
    ASSAY = {"base_url": URL, "api_key": KEY, "policy": GatePolicy(min_score=70)}

The decision is in `request.assay_decision`. Under ASGI, Django runs the middleware in a thread.
"""

import importlib
import weakref
from collections.abc import Callable
from typing import Any

from assay_client.client import Assay
from assay_client.middleware import GatePolicy, Passed, Refused, check, headers_of


class AssayMiddleware:
    """Guards every view of a project; `settings.ASSAY` has the client's options and the policy."""

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        options = dict(importlib.import_module("django.conf").settings.ASSAY)
        self._response: Any = importlib.import_module("django.http").HttpResponse
        self._policy: GatePolicy = options.pop("policy", GatePolicy())
        self._get_response = get_response
        self._client = Assay(**options)
        weakref.finalize(self, self._client.close)  # Django tells nobody when it ends

    def __call__(self, request: Any) -> Any:
        """Answer one request."""
        headers = headers_of(request.META)
        request.__dict__.pop("headers", None)  # Django keeps what it read of META
        outcome: Passed | Refused = Passed(None)
        if request.path not in self._policy.open_paths:
            outcome = self._client.run(check(self._client.core, self._policy, headers))
        if isinstance(outcome, Refused):
            refused = outcome.all_headers
            return self._response(outcome.body, status=outcome.status, headers=refused)
        request.assay_decision = outcome.decision
        response = self._get_response(request)
        for name, value in outcome.headers.items():
            response[name] = value
        return response
