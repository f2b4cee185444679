"""The order of a wrapper call, paid or free (conventions.md#wrapper).

    [bought before: sent again] -> match -> body cap -> [402 without a payment]
        -> trust -> limit -> [payment] -> forward

Nobody is charged for a refusal. Money is held before the upstream is called, and taken after it has
answered (or before, if the wrapper says so; then the money is kept for another try). A spent
payment is looked up first, because what it bought does not depend on its wrapper's present state.

A served answer is charged: a whole 2xx answer, or a redirect away from this service to what was
bought. Nothing else is charged (ADR 0020). The memory that paid calls hold has a bound (ADR 0008).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from assay.common.addresses import caller_of
from assay.common.dataclass_copy import changed
from assay.common.errors import ServiceError, SourceAway
from assay.common.http_heads import HeaderPairs
from assay.common.memory_budget import Reservation
from assay.http1.model import UpstreamFailed, UpstreamResponse
from assay.identity.model import IdentityMismatch
from assay.payments.model import (
    CUT_SHORT,
    ClaimedPayment,
    PaymentRefused,
    PaymentRequired,
    Quote,
    Replay,
    StoredResponse,
)
from assay.payments.ports import PaidRequest, PresentedPayment
from assay.payments.service import PaymentService, PaymentSpent
from assay.payments.settlement import LATE_S
from assay.wrappers.buffers import BufferBudget, Shares
from assay.wrappers.cors import answer_preflight, cors_headers
from assay.wrappers.discovery import SellerDocuments
from assay.wrappers.model import (
    AdmittedAgent,
    AuthorizedRequest,
    CallRecord,
    InboundRequest,
    PayableRequest,
    RateLimitedRequest,
    RoutedRequest,
    TrustDenied,
    WrapperNotFound,
    WrapperResponse,
)
from assay.wrappers.receipts import SignedReceipts, facts_of
from assay.wrappers.route_table import Routes, stale_header
from assay.wrappers.stages.forward import ForwardStage, read_body, require_size
from assay.wrappers.stages.limit import LimitStage
from assay.wrappers.stages.pay import PayStage
from assay.wrappers.stages.record import RecordStage
from assay.wrappers.stages.trust import TrustStage

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
    """The payment's own end left the upstream less time than the wrapper's."""


class PaidCallService:
    """Serves paid calls, and sends again what was bought."""

    def __init__(
        self,
        forward: ForwardStage,
        payments: PaymentService,
        response_bytes_max: int,
        buffers: BufferBudget,
        receipts: SignedReceipts,
    ) -> None:
        self._forward = forward
        self._payments = payments
        self._receipts = receipts
        self._response_bytes_max = response_bytes_max
        self._buffers = buffers

    async def serve(
        self,
        call_record: CallRecord,
        paid: PayableRequest,
        claimed: ClaimedPayment,
        share: Reservation,
    ) -> WrapperResponse:
        """Forward, settle, answer; any failure before settling releases the payment."""
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
        if not self._is_served(stored):  # so it is not charged
            await self._payments.release(claimed, f"upstream {stored.status}")
            paid_for = claimed.entry.has_paid
            receipts = self._payments.receipt(claimed.entry, is_refusal=True) if paid_for else ()
            return WrapperResponse(stored.status, (*stored.headers, *receipts), stored.body)
        stored = replace(stored, receipt=_facts(call_record, paid, stored))
        if claimed.entry.has_paid:
            call_record.entry = await self._payments.keep(claimed.entry, stored)
        else:
            call_record.entry = await self._payments.settle(claimed, stored)
        call_record.is_sale = True
        return self.bought(call_record, stored)

    def bought(self, call_record: CallRecord, stored: StoredResponse) -> WrapperResponse:
        """Return what was paid for, with its receipts; no shared cache may keep it."""
        entry = call_record.entry
        if entry is None:
            raise TypeError("nothing was bought")
        no_store = any(n == b"cache-control" and b"no-store" in v for n, v in stored.headers)
        headers = [header for header in stored.headers if header[0] not in _CACHING]
        headers.append((b"cache-control", b"private, no-store" if no_store else b"private"))
        headers.extend(self._payments.receipt(entry))
        headers.extend(self._receipts.header(entry, stored))

        async def finish() -> None:
            await self._payments.delivered(entry)

        return WrapperResponse(stored.status, headers, stored.body, delivered=finish)

    def answer_headers(self, paid: PayableRequest, found: HeaderPairs) -> HeaderPairs:
        """Return the upstream's headers as they go back, with those of the limit."""
        config = paid.admitted.matched.config
        return [*self._forward.answer_headers(config, found), *paid.admitted.limits]

    def _is_served(self, stored: StoredResponse) -> bool:
        """Return whether an answer is what was bought, and not about where or whether it is."""
        if stored.status < _REDIRECTED_FROM:
            return True
        if stored.status >= _REFUSED_FROM or stored.status == _NOT_MODIFIED:
            return False
        return self._forward.leads_away(stored.headers)

    async def _forward_whole(
        self, paid: PayableRequest, claimed: ClaimedPayment, share: Reservation
    ) -> StoredResponse:
        """Return the upstream's whole answer, held back until it is paid for."""
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
        """Return the failure with the payment's state: its verifier may have submitted it."""
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
        """Return the body of a whole answer."""
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


def _facts(call_record: CallRecord, paid: PayableRequest, stored: StoredResponse) -> str:
    """Return what the receipt says of this call beside its payment."""
    method, trust = call_record.incoming.method, paid.admitted.trusted.trust
    return facts_of(method, call_record.target, paid.body or b"", stored, trust)


def target_of(call_record: CallRecord) -> str:
    """Return path and query as they were sent: purchases are identified by them."""
    incoming = call_record.incoming
    path = f"/wrap/{call_record.operator_id}{incoming.path}"
    return f"{path}?{incoming.query}" if incoming.query else path


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages; the types let each be called only in its place."""

    routes: Routes
    trust: TrustStage
    limit: LimitStage
    pay: PayStage
    forward: ForwardStage
    record: RecordStage


class Pipeline:
    """Answers requests below `/wrap/{operatorId}`."""

    def __init__(
        self,
        steps: Stages,
        payments: PaymentService,
        response_bytes_max: int,
        buffers: BufferBudget,
        receipts: SignedReceipts,
        documents: SellerDocuments | None = None,
    ) -> None:
        """Without `documents` no seller's prices are listed."""
        self._steps = steps
        self._documents = documents
        self._payments = payments
        self._buffers = buffers
        self._calls = PaidCallService(
            steps.forward, payments, response_bytes_max, buffers, receipts
        )

    async def answer(self, call_record: CallRecord) -> WrapperResponse:
        """Return the answer, or raise a refusal (interface.md#wrapper-errors)."""
        find = self._steps.routes.find
        preflight = await answer_preflight(call_record.operator_id, call_record.incoming, find)
        if preflight is not None:
            return preflight
        target = call_record.target = target_of(call_record)
        presented = await self._payments.presented(call_record.incoming.headers)
        for one in presented:
            spent = await self._payments.find_spent(one.network, one.digest, one.token)
            if spent is not None:
                self._steps.forward.rounds.require(call_record.incoming.headers)
                return await self._serve_again(call_record, spent, target)
        try:
            return await self._serve(call_record, presented, target)
        except WrapperNotFound:
            operator_id, documents = call_record.operator_id, self._documents
            found = documents and await documents.answer(operator_id, call_record.incoming)
            if not found:
                raise
            return found

    def record(self, call_record: CallRecord, status: int, response_bytes: int) -> None:
        """Record how the call ended, and release what it held."""
        if call_record.release is not None:
            call_record.release()
        self._steps.record.record(call_record, status, response_bytes)

    async def _serve(
        self, call_record: CallRecord, presented: Sequence[PresentedPayment], target: str
    ) -> WrapperResponse:
        """Serve a call that buys now or is free, or raise its price."""
        listed = await self._match(call_record)
        is_attached = self._steps.pay.is_any_attached(listed.incoming)
        matched = await self._for_agent(call_record, listed, is_attached=is_attached)
        price, known = listed.config.price, call_record.known
        asked = call_record.quote = await self._steps.pay.quote_for(matched, known, price)
        if asked is None:
            return await self._serve_free(call_record, matched)
        if matched.incoming.method == "HEAD" and matched.config.method != "HEAD":
            # The GET is what is sold: HEAD gets its price, and nothing is forwarded.
            return await self._ask(call_record, matched, replace(asked, method="GET"))
        free = None if is_attached else await self._serve_within_quota(call_record, matched)
        if free is not None:
            return free
        matched, quote = await self._agreed(call_record, matched, asked, presented)
        if not self._steps.pay.is_attached(quote, matched.incoming):
            return await self._ask(call_record, matched, quote)
        try:
            return await self._serve_paid(call_record, matched, quote, presented, target)
        except PaymentRequired as refusal:
            if quote is asked or not isinstance(refusal.__cause__, PaymentRefused):
                raise
            raise await self._payments.refused(asked, refusal.__cause__) from refusal

    async def _match(self, call_record: CallRecord) -> RoutedRequest:
        incoming = call_record.incoming
        found = await self._steps.routes.find(
            call_record.operator_id, incoming.method, incoming.path
        )
        route, path = found
        call_record.config = route.config
        call_record.answer_headers.extend(cors_headers(route.config, incoming))
        stale_s = self._steps.routes.stale_s(call_record.operator_id)
        if stale_s is not None:
            if route.config.price:  # no price is asked that may have changed
                raise SourceAway("Payments cannot be taken now.", retry_after_s=5)
            call_record.answer_headers.append(stale_header(stale_s))
        self._steps.forward.rounds.require(incoming.headers)
        if path != incoming.path:
            incoming = call_record.incoming = replace(incoming, path=path)
        require_size(incoming.content_length, route.config.max_body_bytes)
        return RoutedRequest(incoming, route)

    async def _for_agent(
        self, call_record: CallRecord, matched: RoutedRequest, *, is_attached: bool
    ) -> RoutedRequest:
        """Return the request on the terms of a proven agent's tier; of anybody else, unchanged."""
        config = matched.config
        if config.price and (config.pricing or config.free_quota):
            matched = await self._proven(call_record, matched, is_attached=is_attached)
        return self._steps.pay.for_tier(matched, call_record.known)

    async def _proven(
        self, call_record: CallRecord, matched: RoutedRequest, *, is_attached: bool
    ) -> RoutedRequest:
        """Find out which agent proves itself; return its request with its limit.

        Raises like the trust step. An address over its limit causes no evaluation.
        """
        trust = self._steps.trust
        if call_record.known is not None or not trust.is_presented(matched):
            return matched
        if call_record.refusal is not None:
            found = trust.check_cached(matched)
            if not is_attached or found is None:
                return matched
            trusted = found[0]
        else:
            try:
                trusted = (await self._trust(call_record, matched, None)).trusted
            except IdentityMismatch:
                if not is_attached:  # else its payer may be the agent
                    raise
                return matched
        known = trusted.trust
        if not isinstance(known, AdmittedAgent) or not known.proven:
            return matched
        call_record.known = call_record.trust = known
        return trusted.matched

    async def _serve_within_quota(
        self, call_record: CallRecord, matched: RoutedRequest
    ) -> WrapperResponse | None:
        """Serve a call of the free quota; None if there is none, or nothing is left of it."""
        config = matched.config
        is_open = not config.trust_enabled or config.enforce == "observe"
        if config.free_quota is None or not (is_open or self._steps.trust.is_presented(matched)):
            return None
        if call_record.refusal is not None:
            raise call_record.refusal
        trusted = (await self._trust(call_record, matched, None)).trusted
        call = await self._steps.pay.spend_free(config, trusted.trust)
        if call is None:
            return None
        try:
            admitted = await self._steps.limit.admit(trusted, None)
        except ServiceError:
            await self._steps.pay.give_back(call)
            raise
        return await self._forwarded(admitted, None)

    async def _trust(
        self, call_record: CallRecord, matched: RoutedRequest, payer: str | None
    ) -> RateLimitedRequest:
        if call_record.known is not None:
            return RateLimitedRequest(AuthorizedRequest(matched, call_record.known), ())
        try:
            trusted = await self._steps.trust.check(matched, payer)
        except TrustDenied as refusal:
            call_record.trust = refusal.known
            raise
        call_record.trust = trusted.trust
        session = getattr(trusted.trust, "session", None)
        if session is not None:
            call_record.answer_headers.append((b"x-agent-session", session.encode()))
        return RateLimitedRequest(trusted, ())

    async def _admit(
        self, call_record: CallRecord, matched: RoutedRequest, payer: str | None
    ) -> RateLimitedRequest:
        admitted = await self._trust(call_record, matched, payer)
        return await self._steps.limit.admit(admitted.trusted, payer)

    async def _serve_free(
        self, call_record: CallRecord, matched: RoutedRequest, body: bytes | None = None
    ) -> WrapperResponse:
        """Forward it; `body` is the request's body, if it has been read."""
        if call_record.refusal is not None:
            raise call_record.refusal
        require_size(None if body is None else len(body), matched.config.max_body_bytes)
        return await self._forwarded(await self._admit(call_record, matched, None), body)

    async def _forwarded(self, admitted: RateLimitedRequest, body: bytes | None) -> WrapperResponse:
        """Return the upstream's answer to a call that costs nothing."""
        paid = replace(self._steps.pay.free(admitted), body=body)
        reply = await self._steps.forward.send(paid)
        headers = self._calls.answer_headers(paid, reply.headers)
        content = reply.body() if reply.whole is None else reply.whole
        return WrapperResponse(reply.status, headers, content, reply.close)

    async def _ask(
        self, call_record: CallRecord, matched: RoutedRequest, quote: Quote
    ) -> WrapperResponse:
        """Raise the 402 that says how to pay, or an earlier refusal of the caller."""
        if call_record.refusal is not None:
            raise call_record.refusal
        if self._steps.trust.is_presented(matched):
            await self._trust(call_record, matched, None)
        if self._steps.pay.binds_body(quote):  # the challenge must be for this body only
            body = await read_body(
                matched.incoming, matched.config, self._shares(call_record).request
            )
            quote = changed(quote, body=body)
        raise await self._payments.demand(quote)

    async def _agreed(
        self,
        call_record: CallRecord,
        matched: RoutedRequest,
        asked: Quote,
        presented: Sequence[PresentedPayment],
    ) -> tuple[RoutedRequest, Quote]:
        """Return the terms that are paid: those of now, or earlier ones whose quotes are valid."""
        pay = self._steps.pay
        if presented and not any(pay.is_payable(asked, one) for one in presented):
            for one in presented:
                earlier = await pay.on_earlier_terms(matched, one)
                if earlier is not None:
                    return earlier
            matched = await self._proven(call_record, matched, is_attached=True)
            quoted = await pay.on_tier_quotes(matched, call_record.known, presented)
            return quoted or (matched, asked)
        return matched, asked

    async def _serve_paid(
        self,
        call_record: CallRecord,
        matched: RoutedRequest,
        quote: Quote,
        presented: Sequence[PresentedPayment],
        target: str,
    ) -> WrapperResponse:
        incoming, pay, shares = matched.incoming, self._steps.pay, self._shares(call_record)
        request = await self._request(incoming, shares, quote.url, target)
        own = [one for one in presented if one.protocol == quote.network.protocol]
        request = changed(request, presented=own[0] if own else None)
        payment = None
        if not pay.binds_body(quote):  # hold no body for a payment that pays for nothing
            payment = await pay.read(quote, request, call_record.payments)
        body = await read_body(incoming, matched.config, shares.request)
        request = changed(request, body=body)
        if payment is None:
            payment = await pay.read(changed(quote, body=body), request, call_record.payments)
        call_record.payer = payment.payer
        admitted = await self._admit(call_record, matched, payment.payer)
        await shares.answer.take(self._buffers.expected(matched.config.id))
        paid = await pay.hold(admitted, payment, request)
        if isinstance(paid, Replay):
            return self._replayed(call_record, paid)
        if not isinstance(paid.payment, ClaimedPayment):
            raise TypeError("a paid request without a payment")
        return await self._calls.serve(call_record, paid, paid.payment, shares.answer)

    async def _serve_again(
        self, call_record: CallRecord, spent: PaymentSpent, target: str
    ) -> WrapperResponse:
        """Serve what a payment has bought, by its claim: the wrapper may have changed since.

        If the payment has bought something else, it is refused on the present terms. If the wrapper
        is free now, the payment is ignored.
        """
        incoming, entry, body = call_record.incoming, spent.entry, None
        config, found = await self._steps.routes.as_claimed(entry, incoming.method, incoming.path)
        if entry.operator_id == call_record.operator_id:  # else not a call of it
            call_record.config = config
            call_record.answer_headers.extend(cors_headers(config, incoming))
        quote = self._steps.pay.quote_of(entry, config, incoming)
        shares = self._shares(call_record)
        await call_record.payments.signed(entry.payer)
        try:
            body = await read_body(incoming, config, shares.request)
            request = await self._request(incoming, shares, quote.url, target)
            request = replace(request, body=body)
            replay = await self._payments.find_bought(spent, request)
            if replay is not None:
                return self._replayed(call_record, replay)
            call_record.payer = entry.payer
            if found is None:
                return await self._unserved(call_record, spent, quote, request)
            matched = RoutedRequest(replace(incoming, path=found.path), found.route)
            admitted = await self._admit(call_record, matched, entry.payer)
            await shares.answer.take(self._buffers.expected(config.id))
            claimed = await self._payments.resume(spent, quote, request)
            if isinstance(claimed, Replay):
                return self._replayed(call_record, claimed)
            paid = PayableRequest(admitted, claimed, body)
            return await self._calls.serve(call_record, paid, claimed, shares.answer)
        except PaymentRefused as refusal:
            call_record.config = None
            call_record.answer_headers.clear()
            matched = await self._match(call_record)
            asked = self._steps.pay.quote(matched)
            if asked is None:
                return await self._serve_free(call_record, matched, body)
            raise await self._payments.refused(asked, refusal) from refusal

    async def _unserved(
        self, call_record: CallRecord, spent: PaymentSpent, quote: Quote, request: PaidRequest
    ) -> WrapperResponse:
        """Return a failure for a settled payment that cannot be served, with its receipt."""
        claimed = await self._payments.resume(spent, quote, request)
        if isinstance(claimed, Replay):
            return self._replayed(call_record, claimed)
        await self._payments.release(claimed, "wrapper_not_found")
        call_record.entry = claimed.entry
        call_record.answer_headers.extend(self._payments.receipt(claimed.entry, is_refusal=True))
        raise WrapperNotFound("This call was paid for, and its wrapper cannot be called any more.")

    def _replayed(self, call_record: CallRecord, replay: Replay) -> WrapperResponse:
        call_record.payer = replay.entry.payer
        call_record.entry, call_record.outcome = replay.entry, "replayed"
        return self._calls.bought(call_record, replay.stored)

    async def _request(
        self, incoming: InboundRequest, shares: Shares, url: str, target: str
    ) -> PaidRequest:
        """Return the request as payments know it, without its body."""
        return PaidRequest(
            method=incoming.method,
            url=f"{url}?{incoming.query}" if incoming.query else url,
            headers=incoming.headers,
            body=b"",
            caller=caller_of(incoming.client_address),
            speaker=await self._steps.trust.speaker(incoming),
            make_room=shares.replay.take,
            target=target,
        )

    def _shares(self, call_record: CallRecord) -> Shares:
        """Return memory for what the call holds back; it is released at its end."""
        shares = self._buffers.shares(caller_of(call_record.incoming.client_address))
        call_record.release = shares.close
        return shares
