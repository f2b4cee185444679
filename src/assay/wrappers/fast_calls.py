"""Sends free requests that need no waiting at once, through the same stages as all others.

What the bytes of a request decide is computed once and remembered in a `FastPathRequest`. What
time, a revocation or another request may change is checked again for each request. Source:
conventions.md#wrapper; measurements.md#forwarding-requests.
"""

from dataclasses import dataclass, replace

from assay.analytics.model import CallKind
from assay.common.http_heads import HeaderPairs
from assay.http1.model import PreparedUpstreamRequest, ResponseHead, ResponseSink, UpstreamExchange
from assay.wrappers.cors import cors_headers, preflighted_method
from assay.wrappers.model import (
    FastPathCall,
    InboundRequest,
    RateLimitedRequest,
    RoutedRequest,
    Trust,
)
from assay.wrappers.origin import WrapperOrigin, host_of
from assay.wrappers.pipeline import Stages
from assay.wrappers.stages.forward import asks_itself, lines_of
from assay.wrappers.stages.limit import caller_by, limit_lines
from assay.wrappers.stages.trust import AgentClaim

_PAYMENT_REQUIRED = 402


@dataclass(slots=True)
class FastPathRequest:
    """A request that may come again, and what was found out about it."""

    operator_id: str
    path: str
    """The path as it came; `matched` has the path that is forwarded."""
    matched: RoutedRequest
    trust: Trust
    claim: AgentClaim | None
    prepared: PreparedUpstreamRequest
    kind: CallKind
    cors: HeaderPairs = ()
    """The CORS headers of every answer."""


class FastCalls:
    """Forwards what needs no waiting; `Pipeline.answer` handles everything else."""

    def __init__(self, steps: Stages, origin: WrapperOrigin) -> None:
        self._steps = steps
        self._origin = origin

    def prepare(self, operator_id: str, incoming: InboundRequest) -> FastPathRequest | None:
        """Return a free wrapper's request of an agent that passed a moment ago, else None.

        `incoming` has no body. Nothing is counted or sent; `begin` decides each time whether it may
        be.
        """
        steps, sent_path = self._steps, incoming.path
        if not self._is_plain(incoming):
            return None
        route_match = steps.routes.find_cached(operator_id, incoming.method, sent_path)
        if route_match is None or route_match.route.config.price:
            return None
        if route_match.route.config.pricing:  # its limit depends on the agent
            return None
        route, path = route_match
        if path != sent_path:
            incoming = replace(incoming, path=path)
        matched = RoutedRequest(incoming, route)
        found = steps.trust.check_cached(matched)
        if found is None:
            return None
        trusted, claim = found
        paid = steps.pay.free(RateLimitedRequest(trusted, ()))
        prepared = steps.forward.prepare(paid)
        kind = steps.record.kind_of_free(matched, trusted.trust)
        cors = cors_headers(route.config, incoming)
        return FastPathRequest(
            operator_id, sent_path, matched, trusted.trust, claim, prepared, kind, cors
        )

    def _is_plain(self, incoming: InboundRequest) -> bool:
        """Return whether it is a call of wrappers without payment, and not a preflight."""
        if not self._origin.is_shared and not self._origin.serves_wrappers(
            host_of(incoming.headers)
        ):
            return False
        if self._steps.forward.rounds.are_spent(incoming.headers):  # the ordinary path says so
            return False
        if self._steps.pay.is_any_attached(incoming):  # it may have bought something here before
            return False
        return preflighted_method(incoming) is None

    def known_cors(self, operator_id: str, incoming: InboundRequest) -> HeaderPairs:
        """Return the CORS headers of a refusal before its wrapper is looked up. No I/O."""
        method = preflighted_method(incoming) or incoming.method
        route = self._steps.routes.last_known(operator_id, method, incoming.path)
        return () if route is None else cors_headers(route.config, incoming)

    def begin(
        self, carried: FastPathRequest, call: FastPathCall, sink: ResponseSink
    ) -> tuple[UpstreamExchange, bytes] | None:
        """Send it if its wrapper, its trust and its limit allow that now; else return None.

        The same wrapper must answer, the same decision must hold, and a kept connection must exist.
        Returns the exchange, and the lines of the limit for the answer's head.
        """
        matched, steps = carried.matched, self._steps
        incoming, route = matched.incoming, matched.route
        found = steps.routes.route_cached(carried.operator_id, incoming.method, carried.path)
        if found is not route or not steps.trust.still_holds(carried.claim):
            return None
        exchange = carried.prepared.reserve(sink, call.caller)
        if exchange is None:
            return None
        limit, lines = route.config.rate_limit, steps.routes.stale_lines
        if limit is not None:
            who = carried.trust.limit_key or caller_by(call.client_address)
            left, reset_s = steps.limit.count(route.config, who)
            if left < 0:
                exchange.release()
                return None
            lines += limit_lines(limit, left, reset_s)
        return (exchange, lines) if exchange.begin(lines_of(call)) else None

    def answer_headers(self, carried: FastPathRequest, head: ResponseHead) -> HeaderPairs:
        """Return the upstream's headers as they go back, without the limit's.

        Raises `UpstreamFailed`.
        """
        if head.status == _PAYMENT_REQUIRED:
            raise asks_itself()
        headers = self._steps.forward.answer_headers(carried.matched.config, head.headers)
        return [*headers, *carried.cors]

    def record(self, carried: FastPathRequest, call: FastPathCall) -> None:
        """Record how the call ended."""
        self._steps.record.record_free(carried.kind, call)
