"""The layer between a stock client library and the visit's `EgressClient`.

The libraries end a whole session when one of its requests fails, and blur the reason: a 503 and a
dropped connection both become "internal error". So the library gets a 502 of our own for a failed
request, and the real failure is recorded for the call that caused it.
"""

from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal

from assay.common.json import has_values_beyond, is_nested_beyond
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    Limits,
    OutboundRequest,
)
from assay.probing.ports import AgentCallFailed, BudgetExhausted
from assay.probing.probe_client import JSON_DEPTH_MAX, JSON_VALUES_MAX, retry_after_s

LIMITS = Limits(connect_s=2.0, total_s=4.0)
"""What one request of a conversation may cost."""

_OWN_FAILURE = EgressResponse(502, (), b"", truncated=False, elapsed_ms=0.0)

_HTTP_SPEAKS = frozenset({401, 402, 403, 407, 429, 503})
"""Statuses that say more than any protocol error in their body: payment, authentication,
waiting."""

_GATEWAY_SPEAKS = frozenset({502, 504})
"""Statuses by which a proxy reports that the agent behind it is unavailable. Source: RFC 9110,
section 15.6.3 and 15.6.5."""

_SERVER_ERROR = 500

_KINDS: dict[Failure, Literal["timeout", "protocol"]] = {
    Failure.TIMEOUT: "timeout",
    Failure.PROTOCOL: "protocol",
}


@dataclass(slots=True)
class TransportLog:
    """What the transport recorded during one call."""

    status: int | None = None
    failure: Failure | None = None
    exhausted: bool = False
    wait_s: float | None = None
    """Longest wait for one answer of this call, if it differs from `LIMITS`."""
    retry_s: float | None = None


_call: ContextVar[TransportLog] = ContextVar("assay_agent_call")
# The libraries run a request in the caller's context, also in tasks of their own, so concurrent
# calls over one session each find their own log here.


def note_call(wait_s: float | None = None) -> TransportLog:
    """Begin a call and return the log of its transport events in this context."""
    log = TransportLog(wait_s=wait_s)
    _call.set(log)
    return log


class RecordingTransport:
    """An `EgressClient` that never fails, and records failures instead."""

    def __init__(self, http: EgressClient) -> None:
        self._http = http

    async def send(self, request: OutboundRequest, limits: Limits = LIMITS) -> EgressResponse:
        """Return the reply, or a 502 of our own."""
        log = _call.get(None) or TransportLog()
        if log.exhausted or log.failure is not None:
            # The call has already failed. The libraries would try older protocols and resumptions,
            # and a service that delays us would do so for each of them.
            return _OWN_FAILURE
        if log.wait_s is not None:
            limits = replace(limits, total_s=log.wait_s)
        try:
            reply = await self._http.send(request, limits)
        except EgressError as error:
            log.failure = error.failure
            return _OWN_FAILURE
        except BudgetExhausted:
            log.exhausted = True
            return _OWN_FAILURE
        if reply.truncated or not is_readable(reply.body):
            log.failure = Failure.PROTOCOL
            return _OWN_FAILURE
        log.status = reply.status
        log.retry_s = retry_after_s(reply)
        return reply


def is_readable(body: bytes) -> bool:
    """Return whether the libraries' parsers can read it safely.

    They would also read UTF-16 and UTF-32, in which brackets cannot be counted, and which JSON
    between systems may not use. Source: RFC 8259, section 8.1.
    """
    return (
        b"\0" not in body
        and not has_values_beyond(body, JSON_VALUES_MAX)
        and not is_nested_beyond(body, JSON_DEPTH_MAX)
    )


def failed(
    log: TransportLog, error: Exception, code: int | None
) -> AgentCallFailed | BudgetExhausted:
    """Return the call's failure, from the transport's log, then from the library's error.

    `code` is the protocol error the agent answered with, if the library knows it.
    """
    detail = f"{type(error).__name__}: {error}"[:300]
    if log.exhausted:
        return BudgetExhausted()
    if log.failure is not None:
        return AgentCallFailed(_KINDS.get(log.failure, "unreachable"), detail)
    if log.status in _GATEWAY_SPEAKS:
        return AgentCallFailed("unreachable", detail)
    if log.status is not None and log.status >= _SERVER_ERROR and log.status not in _HTTP_SPEAKS:
        return AgentCallFailed("protocol", detail)
    number = log.status if log.status in _HTTP_SPEAKS else code
    kind = "protocol" if number is None else "error"
    return AgentCallFailed(kind, detail, number, retry_s=log.retry_s)
