"""FastAPI: a dependency that lets only callers through that pass the gate.

agent = protect(app, AsyncAssay(URL, api_key=KEY), GatePolicy(min_score=70))

@app.get("/quote")
async def quote(decision: Annotated[Decision, Depends(agent)]) -> ...
"""

from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request, Response

from assay_client.client import AsyncAssay
from assay_client.errors import AssayError
from assay_client.middleware import (
    AsgiApp,
    AsgiScope,
    GatePolicy,
    Receive,
    Refused,
    Send,
    check,
    without_claims,
)
from assay_client.models import Decision


class GateRefused(AssayError):
    """The caller is refused; `protect` has it answered."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(f"The gate refused the caller with {refused.status}.")
        self.refused = refused


class StripClaims:
    """ASGI middleware that removes `X-Assay-*` headers, which no caller may send."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if "headers" in scope:
            scope = {**scope, "headers": without_claims(scope["headers"])}
        await self._app(scope, receive, send)


def protect(
    app: FastAPI, client: AsyncAssay, policy: GatePolicy | None = None
) -> Callable[[Request, Response], Awaitable[Decision | None]]:
    """Return a dependency whose value is the decision; other callers get 4xx or 503.

    The value is None only where the policy fails open. The decision is also in
    `request.state.assay_decision`.
    """
    chosen = policy or GatePolicy()

    async def agent(request: Request, response: Response) -> Decision | None:
        headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in request.headers.raw]
        outcome = await client.run(check(client.core, chosen, headers))
        if isinstance(outcome, Refused):
            raise GateRefused(outcome)
        response.headers.update(outcome.headers)
        request.state.assay_decision = outcome.decision
        return outcome.decision

    async def refuse(_: Request, error: Exception) -> Response:
        if not isinstance(error, GateRefused):
            raise error
        refused = error.refused
        return Response(refused.body, refused.status, dict(refused.all_headers))

    app.add_middleware(StripClaims)
    app.add_exception_handler(GateRefused, refuse)
    return agent
