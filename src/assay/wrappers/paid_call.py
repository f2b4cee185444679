"""Serving a call whose payment is claimed: forward, settle, answer.

Charged is what was served: a whole answer of the 2xx, or a redirect that leads away from this
service, to what was bought. Nothing is charged for anything else (ADR 0020).
"""

import asyncio

from assay.common.addresses import caller_of
from assay.common.http_heads import HeaderPairs
from assay.common.memory_budget import Reservation
from assay.http1.model import UpstreamFailed, UpstreamResponse
from assay.payments.model import CUT_SHORT, ClaimedPayment, StoredResponse
from assay.payments.service import PaymentService
from assay.payments.settlement import LATE_S
from assay.wrappers.buffer_budget import BufferBudget
from assay.wrappers.model import CallRecord, PayableRequest, WrapperResponse
from assay.wrappers.stages.forward import ForwardStage

_REDIRECTED_FROM = 300
_NOT_MODIFIED = 304
_REFUSED_FROM = 400
_FAILED_FROM = 500
_CACHING = (b"cache-control", b"expires", b"surrogate-control", b"cdn-cache-control", b"age")

_PAID = (
    "The payment has settled: send the same request with the same payment again; it is not charged"
    " twice."
)
_NOT_TAKEN = (
    "This service has not taken the payment, and checks on the chain whether anybody else has: "
)
_AGAIN = "send the same request with the same payment again."
_ANOTHER = "it ends too soon to be sent again, so ask for another 402 and pay that."


class _CutShort(UpstreamFailed):
    """The payment's own end left the upstream less than its time."""


class PaidCallService:
    """Serves what is paid for, and hands out what was bought."""

    def __init__(
        self,
        forward: ForwardStage,
        payments: PaymentService,
        response_bytes_max: int,
        buffers: BufferBudget,
    ) -> None:
        self._forward = forward
        self._payments = payments
        self._response_bytes_max = response_bytes_max
        self._buffers = buffers

    async def serve(
        self,
        call_record: CallRecord,
        paid: PayableRequest,
        claimed: ClaimedPayment,
        share: Reservation,
    ) -> WrapperResponse:
        """Forward, settle, answer; whatever fails before settling releases the payment."""
        call_record.entry = claimed.entry
        try:
            await call_record.payments.verified(claimed.entry.payer)
            stored = await self._forward_whole(paid, claimed, share)
        except BaseException as error:
            is_cut = isinstance(error, _CutShort)
            reason = CUT_SHORT if is_cut else getattr(error, "code", type(error).__name__)
            await self._payments.release(claimed, reason)
            if claimed.entry.has_paid:
                call_record.answer_headers.extend(
                    self._payments.receipt(claimed.entry, is_refusal=True)
                )
            if isinstance(error, UpstreamFailed):
                raise self._with_payment(error, claimed, paid) from error
            raise
        if not self._is_served(stored):  # and so not charged
            await self._payments.release(claimed, f"upstream {stored.status}")
            paid_for = claimed.entry.has_paid
            receipts = self._payments.receipt(claimed.entry, is_refusal=True) if paid_for else ()
            return WrapperResponse(stored.status, (*stored.headers, *receipts), stored.body)
        if claimed.entry.has_paid:
            call_record.entry = await self._payments.keep(claimed.entry, stored)
        else:
            call_record.entry = await self._payments.settle(claimed, stored)
        call_record.is_sale = True
        return self.bought(call_record, stored)

    def bought(self, call_record: CallRecord, stored: StoredResponse) -> WrapperResponse:
        """What was paid for, with its receipt, for nobody's shared cache."""
        entry = call_record.entry
        if entry is None:
            raise TypeError("nothing was bought")
        no_store = any(n == b"cache-control" and b"no-store" in v for n, v in stored.headers)
        headers = [header for header in stored.headers if header[0] not in _CACHING]
        headers.append((b"cache-control", b"private, no-store" if no_store else b"private"))
        headers.extend(self._payments.receipt(entry))

        async def finish() -> None:
            await self._payments.delivered(entry)

        return WrapperResponse(stored.status, headers, stored.body, delivered=finish)

    def answer_headers(self, paid: PayableRequest, found: HeaderPairs) -> HeaderPairs:
        """The upstream's headers as they go back, with those of the limit."""
        config = paid.admitted.matched.config
        return [*self._forward.answer_headers(config, found), *paid.admitted.limits]

    def _is_served(self, stored: StoredResponse) -> bool:
        """Whether an answer is what was bought, rather than a word about where or whether it is."""
        if stored.status < _REDIRECTED_FROM:
            return True
        if stored.status >= _REFUSED_FROM or stored.status == _NOT_MODIFIED:
            return False
        return self._forward.leads_away(stored.headers)

    async def _forward_whole(
        self, paid: PayableRequest, claimed: ClaimedPayment, share: Reservation
    ) -> StoredResponse:
        """The upstream's whole answer, held back until it is paid for."""
        config = paid.admitted.matched.config
        work_s = claimed.quote.work_s + LATE_S  # a short payment leaves less than `timeoutMs`
        try:
            async with asyncio.timeout(work_s):
                reply = await self._forward.send(paid)
                try:
                    body = await self._whole(reply, share)
                finally:
                    reply.close()
        except TimeoutError:
            message = f"The upstream's answer was not whole after {round(work_s, 1):g} seconds."
            is_cut = claimed.quote.work_s < config.timeout_ms / 1000
            raise (_CutShort if is_cut else UpstreamFailed)(message) from None
        self._buffers.learn(config.id, len(body))
        headers = self.answer_headers(paid, reply.headers)
        caller = caller_of(paid.admitted.matched.incoming.client_address)
        return StoredResponse(reply.status, tuple(headers), body, caller)

    def _with_payment(
        self, error: UpstreamFailed, claimed: ClaimedPayment, paid: PayableRequest
    ) -> UpstreamFailed:
        """The failure, with what is known of the payment: who verified it may have submitted it."""
        work_s = paid.admitted.matched.config.timeout_ms / 1000
        sentence = _PAID
        if not claimed.entry.has_paid:
            sentence = _NOT_TAKEN + (
                _AGAIN if self._payments.is_good(claimed, work_s) else _ANOTHER
            )
        return UpstreamFailed(
            f"{error.message} {sentence}",
            detail=error.detail,
            retry_after_s=error.retry_after_s,
            **error.extras,
        )

    async def _whole(self, reply: UpstreamResponse, share: Reservation) -> bytes:
        """The body of an answer that is one."""
        if reply.status >= _FAILED_FROM:
            raise UpstreamFailed("The upstream failed.", upstreamStatus=reply.status)
        body = bytearray()
        async for piece in reply.body():
            body += piece
            if len(body) > self._response_bytes_max:
                message = "The upstream's answer is larger than a paid answer may be."
                raise UpstreamFailed(message, maxBytes=self._response_bytes_max)
            share.overcommit(len(body))
        share.keep(len(body))
        return bytes(body)


def target_of(call_record: CallRecord) -> str:
    """Path and query as they were sent: what was bought is known by them."""
    incoming = call_record.incoming
    path = f"/wrap/{call_record.operator_id}{incoming.path}"
    return f"{path}?{incoming.query}" if incoming.query else path
