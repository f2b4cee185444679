"""Upstreams of named operators by themselves: what is opened to them serves nobody else."""

from collections.abc import Set as AbstractSet

from assay.http1.model import PreparedUpstreamRequest, Upstream, UpstreamRequest, UpstreamResponse


class UpstreamsByOperator:
    """Implements `http1.model.Upstream` over two of them.

    A kept connection to an opened address is found by its host name. So named operators have a
    pool of their own: nobody else's request for the same name is ever sent on its connections.
    """

    def __init__(self, everybody: Upstream, named: Upstream, operators: AbstractSet[str]) -> None:
        self._everybody = everybody
        self._named = named
        self._operators = operators

    def prepare(self, request: UpstreamRequest) -> PreparedUpstreamRequest:
        return self._of(request).prepare(request)

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        return await self._of(request).send(request)

    def _of(self, request: UpstreamRequest) -> Upstream:
        return self._named if request.account in self._operators else self._everybody
