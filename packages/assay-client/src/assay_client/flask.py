"""Flask: a decorator that lets only callers through that pass the gate.

    agents = FlaskGate(Assay(URL, api_key=KEY), GatePolicy(min_score=70))

    @app.get("/quote")
    @agents.required
    def quote(): ...   # the decision is in flask.g.assay_decision

To guard a whole application: `app.wsgi_app = WsgiGate(app.wsgi_app, client, policy)`.
"""

import importlib
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from typing_extensions import ParamSpec

from assay_client.client import Assay
from assay_client.middleware import GatePolicy, Refused, check_environ

P = ParamSpec("P")
R = TypeVar("R")


class FlaskGate:
    """Guards view functions; the policy is fixed here, and no caller can change it."""

    def __init__(self, client: Assay, policy: GatePolicy | None = None) -> None:
        self._client, self._policy = client, policy or GatePolicy()
        self._flask: Any = importlib.import_module("flask")

    def required(self, view: Callable[P, R]) -> Callable[P, Any]:
        """Return the view, which runs only for callers that pass; others get 4xx or 503."""

        @wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> Any:
            outcome = check_environ(self._client, self._policy, self._flask.request.environ)
            if isinstance(outcome, Refused):
                refused = outcome.all_headers
                return self._flask.Response(outcome.body, outcome.status, dict(refused))
            self._flask.g.assay_decision = outcome.decision
            response = self._flask.make_response(
                self._flask.current_app.ensure_sync(view)(*args, **kwargs)
            )
            response.headers.update(outcome.headers)
            return response

        return guarded
