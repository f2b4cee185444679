"""Records every call of a wrapper as one row of the call log."""

from collections.abc import Callable

from assay.analytics.model import CallKind, CallLogEntry
from assay.common.clock import Clock
from assay.wrappers.model import (
    AdmittedAgent,
    CallRecord,
    FastPathCall,
    InboundRequest,
    RoutedRequest,
    Trust,
    WrapperConfig,
)

PATH_CHARS_MAX = 300


class RecordStage:
    """Records how a call ended; never waits."""

    def __init__(self, add: Callable[[CallLogEntry], None], clock: Clock) -> None:
        self._add = add
        self._clock = clock

    def record(self, call_record: CallRecord, status: int, response_bytes: int) -> None:
        """Add one row; a request that no wrapper answered belongs to nobody and leaves none."""
        config = call_record.config
        if config is None:
            return
        incoming, entry = call_record.incoming, call_record.entry
        paid = entry is not None and entry.has_paid and call_record.outcome != "replayed"
        self._add(
            CallLogEntry(
                kind=_kind(config, incoming, call_record.trust, call_record.payer),
                at=self._clock.now(),
                request_id=incoming.request_id,
                client=incoming.client_address,
                status=status,
                outcome=call_record.outcome,
                latency_us=self._since_us(call_record.begun_s),
                response_bytes=response_bytes,
                request_bytes=incoming.content_length or 0,
                cost=entry.amount if entry is not None and paid else 0,
                payment_id=entry.id if entry else None,
                is_sale=call_record.is_sale,
            )
        )

    @staticmethod
    def kind_of_free(matched: RoutedRequest, trust: Trust) -> CallKind:
        """Return what free requests without a body have in common."""
        return _kind(matched.config, matched.incoming, trust, None)

    def record_free(self, kind: CallKind, call: FastPathCall) -> None:
        """Add the row of such a request; positional arguments, because every request calls it."""
        latency_us = self._since_us(call.begun_s)
        self._add(
            CallLogEntry(
                kind,
                self._clock.now(),
                call.request_id,
                call.client_address,
                call.status,
                call.outcome,
                latency_us,
                call.bytes_out,
            )
        )

    def _since_us(self, begun_s: float) -> int:
        return int((self._clock.monotonic_s() - begun_s) * 1e6)


def _kind(
    config: WrapperConfig, incoming: InboundRequest, trust: Trust | None, payer: str | None
) -> CallKind:
    kind = CallKind(
        config.operator_id,
        config.id,
        incoming.method,
        incoming.path[:PATH_CHARS_MAX],
        payer=payer,
    )
    if isinstance(trust, AdmittedAgent):
        kind.agent_id, kind.agent_address = trust.agent_id, trust.address
        kind.identity_proven = trust.proven
        kind.tier, kind.score = trust.tier, trust.score
        kind.chain, kind.route = trust.chain, trust.route
    if trust is not None:
        kind.would_deny = trust.would_deny
    return kind
