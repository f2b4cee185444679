"""The order of a wrapper call (decisions, section 9).

    match -> body cap -> [402 when nothing is attached] -> trust -> limit -> [payment] -> forward
                         [bought before: handed out]

Nobody is charged for a refusal: money is held before the upstream is called, and taken after it
has answered (or before, where the wrapper says so, and then kept for another try).
"""

import asyncio
from dataclasses import dataclass, replace

from assay.kit.addresses import caller_of
from assay.kit.errors import RequestTimeout
from assay.kit.room import Share
from assay.payments.model import Headers, Held, Quote, Replay, Stored
from assay.payments.ports import PaidRequest
from assay.payments.till import Till
from assay.wrapper.cors import cors_headers, preflight_headers, preflighted_method
from assay.wrapper.held import HeldBodies, Shares
from assay.wrapper.model import (
    Admitted,
    Answer,
    Incoming,
    Journey,
    Matched,
    Paid,
    TrustDenied,
    UpstreamFailed,
    WrapperNotFound,
    WrapperTooLarge,
)
from assay.wrapper.ports import UpstreamReply
from assay.wrapper.routes import Routes
from assay.wrapper.steps.forward import ForwardStep
from assay.wrapper.steps.limit import LimitStep
from assay.wrapper.steps.pay import PayStep
from assay.wrapper.steps.record import RecordStep
from assay.wrapper.steps.trust import TrustStep

HELD_BODY_S = 60.0
"""How long the body of a paid call may take: nobody keeps room from others by dribbling."""

LATE_S = 5.0
"""How much longer than the wrapper's `timeoutMs` an answer that is to be paid for may take in all:
its payment, and its claim, are good for a little longer than that."""

_NO_CONTENT = 204
_REFUSED_FROM = 400
_FAILED_FROM = 500
_CACHING = (b"cache-control", b"expires", b"surrogate-control", b"cdn-cache-control", b"age")


@dataclass(frozen=True, slots=True)
class Steps:
    """The stages, each of which only its own place in the order can call."""

    routes: Routes
    trust: TrustStep
    limit: LimitStep
    pay: PayStep
    forward: ForwardStep
    record: RecordStep


class Pipeline:
    """Answers requests below `/wrap/{operatorId}`."""

    def __init__(self, steps: Steps, till: Till, response_bytes_max: int, held: HeldBodies) -> None:
        self._steps = steps
        self._till = till
        self._response_bytes_max = response_bytes_max
        self._held = held

    async def answer(self, journey: Journey) -> Answer:
        """The answer, or a refusal, raised (spec 7.3)."""
        preflight = await self._preflight(journey)
        if preflight is not None:
            return preflight
        matched = await self._match(journey)
        quote = self._steps.pay.quote(matched)
        is_paid = quote is not None and self._steps.pay.is_attached(quote, matched.incoming)
        if journey.refusal is not None and not is_paid:
            raise journey.refusal
        if quote is None:
            return await self._serve_free(journey, matched)
        journey.quote = quote
        shares = self._held.shares(caller_of(matched.incoming.client_address))
        journey.let_go = shares.close
        if not is_paid:
            if self._steps.trust.is_presented(matched):
                await self._trust(journey, matched, None)
            await self._steps.pay.require(await self._bound(quote, matched, shares))
        return await self._serve_paid(journey, matched, quote, shares)

    def record(self, journey: Journey, status: int, response_bytes: int) -> None:
        """Write down how it ended; nothing of it is held any more."""
        if journey.let_go is not None:
            journey.let_go()
        self._steps.record.record(journey, status, response_bytes)

    async def _preflight(self, journey: Journey) -> Answer | None:
        """The answer to a browser that asks before it calls, where the wrapper has origins.

        It is no call: it asks for no payment and no trust, and leaves no row.
        """
        incoming = journey.incoming
        method = preflighted_method(incoming)
        if method is None:
            return None
        try:
            found = await self._steps.routes.find(journey.operator_id, method, incoming.path)
        except WrapperNotFound:
            return None
        config = found.route.config
        if not config.cors_origins:
            return None
        return Answer(_NO_CONTENT, preflight_headers(config, incoming, method), b"")

    async def _match(self, journey: Journey) -> Matched:
        incoming = journey.incoming
        found = await self._steps.routes.find(journey.operator_id, incoming.method, incoming.path)
        route, path = found
        journey.config = route.config
        journey.answer_headers.extend(cors_headers(route.config, incoming))
        if path != incoming.path:
            incoming = journey.incoming = replace(incoming, path=path)
        limit = route.config.max_body_bytes
        if incoming.content_length is not None and incoming.content_length > limit:
            raise WrapperTooLarge(f"The body is larger than {limit} bytes.", maxBytes=limit)
        return Matched(incoming, route)

    async def _trust(self, journey: Journey, matched: Matched, payer: str | None) -> Admitted:
        try:
            trusted = await self._steps.trust.check(matched, payer)
        except TrustDenied as refusal:
            journey.trust = refusal.known
            raise
        journey.trust = trusted.trust
        session = getattr(trusted.trust, "session", None)
        if session is not None:
            journey.answer_headers.append((b"x-agent-session", session.encode()))
        return Admitted(trusted, ())

    async def _admit(self, journey: Journey, matched: Matched, payer: str | None) -> Admitted:
        admitted = await self._trust(journey, matched, payer)
        return await self._steps.limit.admit(admitted.trusted, payer)

    async def _serve_free(self, journey: Journey, matched: Matched) -> Answer:
        admitted = await self._admit(journey, matched, None)
        paid = self._steps.pay.free(admitted)
        reply = await self._steps.forward.send(paid)
        headers = self._answer_headers(paid, reply.headers)
        whole = reply.whole
        return Answer(reply.status, headers, reply.body() if whole is None else whole, reply.close)

    async def _bound(self, quote: Quote, matched: Matched, shares: Shares) -> Quote:
        """The quote with the body, where the demand is to hold for no other."""
        if not self._steps.pay.binds_body(quote):
            return quote
        body = await _read(matched, shares.request)
        return replace(quote, body=body)

    async def _serve_paid(
        self, journey: Journey, matched: Matched, quote: Quote, shares: Shares
    ) -> Answer:
        incoming, pay = matched.incoming, self._steps.pay
        request = PaidRequest(
            method=incoming.method,
            url=_url(quote, incoming),
            headers=incoming.headers,
            body=b"",
            caller=caller_of(incoming.client_address),
            speaker=await self._steps.trust.speaker(incoming),
            make_room=shares.replay.take,
        )
        payment = None
        if not pay.binds_body(quote):  # no body is held for what pays for nothing
            payment = await pay.read(quote, request, journey.payments)
        request = replace(request, body=await _read(matched, shares.request))
        if payment is None:
            bound = replace(quote, body=request.body)
            payment = await pay.read(bound, request, journey.payments)
        bought = await pay.bought(payment, request)
        if bought is not None:
            return self._replayed(journey, bought)
        journey.payer = payment.payer
        admitted = await self._admit(journey, matched, payment.payer)
        await shares.answer.take(self._held.expected(matched.config.id))
        paid = await pay.hold(admitted, payment, request)
        if isinstance(paid, Replay):
            return self._replayed(journey, paid)
        if not isinstance(paid.payment, Held):
            raise TypeError("a paid request without a payment")
        return await self._serve_held(journey, paid, paid.payment, shares.answer)

    def _replayed(self, journey: Journey, replay: Replay) -> Answer:
        journey.payer = replay.entry.payer
        journey.entry, journey.outcome = replay.entry, "replayed"
        return self._bought(journey, replay.stored)

    async def _serve_held(self, journey: Journey, paid: Paid, held: Held, share: Share) -> Answer:
        """Forward, settle, answer; whatever fails before settling releases the payment."""
        journey.entry = held.entry
        try:
            await journey.payments.verified(held.entry.payer)
            stored = await self._forward_whole(paid, held, share)
        except BaseException as error:
            await self._till.release(held, getattr(error, "code", type(error).__name__))
            if held.entry.has_paid:
                journey.answer_headers.extend(self._till.receipt(held.entry, is_refusal=True))
            raise
        if stored.status >= _REFUSED_FROM:  # not served, so not charged
            await self._till.release(held, f"upstream {stored.status}")
            paid_for = held.entry.has_paid
            receipts = self._till.receipt(held.entry, is_refusal=True) if paid_for else ()
            return Answer(stored.status, (*stored.headers, *receipts), stored.body)
        if held.entry.has_paid:
            journey.entry = await self._till.keep(held.entry, stored)
        else:
            journey.entry = await self._till.settle(held, stored)
        return self._bought(journey, stored)

    async def _forward_whole(self, paid: Paid, held: Held, share: Share) -> Stored:
        """The upstream's whole answer, held back until it is paid for."""
        config = paid.admitted.matched.config
        work_s = held.quote.work_s + LATE_S  # a short payment leaves less than `timeoutMs`
        try:
            async with asyncio.timeout(work_s):
                reply = await self._steps.forward.send(paid)
                try:
                    body = await self._whole(reply, share)
                finally:
                    reply.close()
        except TimeoutError:
            message = f"The upstream's answer was not whole after {round(work_s, 1):g} seconds."
            raise UpstreamFailed(message) from None
        self._held.learn(config.id, len(body))
        headers = self._answer_headers(paid, reply.headers)
        caller = caller_of(paid.admitted.matched.incoming.client_address)
        return Stored(reply.status, tuple(headers), body, caller)

    async def _whole(self, reply: UpstreamReply, share: Share) -> bytes:
        """The body of an answer that is one."""
        if reply.status >= _FAILED_FROM:
            message = "The upstream failed; nothing was charged."
            raise UpstreamFailed(message, upstreamStatus=reply.status)
        body = bytearray()
        async for piece in reply.body():
            body += piece
            if len(body) > self._response_bytes_max:
                message = "The upstream's answer is larger than a paid answer may be."
                raise UpstreamFailed(message, maxBytes=self._response_bytes_max)
            share.squeeze(len(body))
        share.keep(len(body))
        return bytes(body)

    def _answer_headers(self, paid: Paid, found: Headers) -> Headers:
        config = paid.admitted.matched.config
        return [*self._steps.forward.answer_headers(config, found), *paid.admitted.limits]

    def _bought(self, journey: Journey, stored: Stored) -> Answer:
        """What was paid for, with its receipt, for nobody's shared cache."""
        entry = journey.entry
        if entry is None:
            raise TypeError("nothing was bought")
        no_store = any(n == b"cache-control" and b"no-store" in v for n, v in stored.headers)
        headers = [header for header in stored.headers if header[0] not in _CACHING]
        headers.append((b"cache-control", b"private, no-store" if no_store else b"private"))
        headers.extend(self._till.receipt(entry))

        async def finish() -> None:
            await self._till.delivered(entry)

        return Answer(stored.status, headers, stored.body, delivered=finish)


async def _read(matched: Matched, share: Share) -> bytes:
    """The body of a request; what is only announced takes no room."""
    incoming, bytes_max = matched.incoming, matched.config.max_body_bytes
    if incoming.content_length == 0:
        return b""
    body = bytearray()
    try:
        async with asyncio.timeout(HELD_BODY_S):
            async for piece in incoming.body(bytes_max):
                body += piece
                await share.take(len(body))
    except TimeoutError:
        message = f"The body did not arrive within {HELD_BODY_S:g} seconds."
        raise RequestTimeout(message) from None
    return bytes(body)


def _url(quote: Quote, incoming: Incoming) -> str:
    return f"{quote.url}?{incoming.query}" if incoming.query else quote.url
