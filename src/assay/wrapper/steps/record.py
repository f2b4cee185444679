"""Every call of a wrapper becomes one row of the call log."""

from collections.abc import Callable

from assay.calls.model import Call
from assay.kit.clock import Clock
from assay.wrapper.model import Journey, Known, Matched, Trust
from assay.wrapper.ports import Trip

PATH_CHARS_MAX = 300


class RecordStep:
    """Writes down how a journey ended; waits for nothing."""

    def __init__(self, add: Callable[[Call], None], clock: Clock) -> None:
        self._add = add
        self._clock = clock

    def record(self, journey: Journey, status: int, response_bytes: int) -> None:
        """One row; a request that no wrapper answered belongs to nobody and leaves none."""
        config = journey.config
        if config is None:
            return
        incoming, trust, entry = journey.incoming, journey.trust, journey.entry
        known = trust if isinstance(trust, Known) else None
        paid = entry is not None and entry.has_paid and journey.outcome != "replayed"
        self._add(
            Call(
                operator_id=config.operator_id,
                wrapper_id=config.id,
                at=self._clock.now(),
                request_id=incoming.request_id,
                method=incoming.method,
                path=incoming.path[:PATH_CHARS_MAX],
                agent_id=known.agent_id if known else None,
                agent_address=known.address if known else None,
                identity_proven=known is not None and known.proven,
                payer=journey.payer,
                client=incoming.client_address,
                tier=known.tier if known else None,
                score=known.score if known else None,
                status=status,
                outcome=journey.outcome,
                latency_us=int((self._clock.monotonic_s() - journey.begun_s) * 1e6),
                cost=entry.amount if entry is not None and paid else 0,
                payment_id=entry.id if entry else None,
                request_bytes=incoming.content_length or 0,
                response_bytes=response_bytes,
                chain=known.chain if known else None,
                route=known.route if known else None,
            )
        )

    def record_free(self, matched: Matched, trust: Trust, trip: Trip) -> None:
        """One row of a free request without a body."""
        config, incoming = matched.config, matched.incoming
        known = trust if isinstance(trust, Known) else None
        self._add(
            Call(
                operator_id=config.operator_id,
                wrapper_id=config.id,
                at=self._clock.now(),
                request_id=trip.request_id,
                method=incoming.method,
                path=incoming.path[:PATH_CHARS_MAX],
                agent_id=known.agent_id if known else None,
                agent_address=known.address if known else None,
                identity_proven=known is not None and known.proven,
                payer=None,
                client=trip.client_address,
                tier=known.tier if known else None,
                score=known.score if known else None,
                status=trip.status,
                outcome=trip.outcome,
                latency_us=int((self._clock.monotonic_s() - trip.begun_s) * 1e6),
                cost=0,
                payment_id=None,
                request_bytes=0,
                response_bytes=trip.bytes_out,
                chain=known.chain if known else None,
                route=known.route if known else None,
            )
        )
