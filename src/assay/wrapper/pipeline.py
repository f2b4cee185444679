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
from assay.kit.room import Room, Share
from assay.payments.model import Headers, Held, Quote, Replay, Stored
from assay.payments.ports import PaidRequest
from assay.payments.till import Till
from assay.wrapper.model import (
    Admitted,
    Answer,
    Incoming,
    Journey,
    Matched,
    Paid,
    TrustDenied,
    UpstreamFailed,
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


@dataclass(frozen=True, slots=True)
class Shares:
    """Memory for what a paid call holds back: the request's body, and the answer's until it is out.

    Of two rooms: who has an answer never waits for room for a body, so nobody waits in a circle.
    """

    request: Share
    answer: Share

    def close(self) -> None:
        """Nothing is held any more."""
        self.request.close()
        self.answer.close()


class Pipeline:
    """Answers requests below `/wrap/{operatorId}`."""

    def __init__(
        self, steps: Steps, till: Till, response_bytes_max: int, held_bytes_max: int
    ) -> None:
        """Of the bodies of requests, and of those of answers, so much is held at once."""
        self._steps = steps
        self._till = till
        self._response_bytes_max = response_bytes_max
        self._requests, self._answers = Room(held_bytes_max), Room(held_bytes_max)

    async def answer(self, journey: Journey) -> Answer:
        """The answer, or a refusal, raised (spec 7.3)."""
        matched = await self._match(journey)
        quote = self._steps.pay.quote(matched)
        if quote is None:
            return await self._serve_free(journey, matched)
        journey.quote = quote
        caller = caller_of(matched.incoming.client_address)
        shares = Shares(Share(self._requests, caller), Share(self._answers, caller))
        journey.let_go = shares.close
        if not self._steps.pay.is_attached(quote, matched.incoming):
            if self._steps.trust.is_presented(matched):
                await self._trust(journey, matched, None)
            await self._steps.pay.require(await self._bound(quote, matched, shares))
        return await self._serve_paid(journey, matched, quote, shares)

    def record(self, journey: Journey, status: int, response_bytes: int) -> None:
        """Write down how it ended; nothing of it is held any more."""
        if journey.let_go is not None:
            journey.let_go()
        self._steps.record.record(journey, status, response_bytes)

    async def _match(self, journey: Journey) -> Matched:
        incoming = journey.incoming
        route = await self._steps.routes.find(journey.operator_id, incoming.method, incoming.path)
        journey.config = route.config
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
            make_room=shares.answer.take,
        )
        payment = None
        if not pay.binds_body(quote):  # no body is held for what pays for nothing
            payment = await pay.read(quote, request)
        request = replace(request, body=await _read(matched, shares.request))
        if payment is None:
            payment = await pay.read(replace(quote, body=request.body), request)
        bought = await pay.bought(payment, request)
        if bought is not None:
            return self._replayed(journey, bought)
        journey.payer = payment.payer
        admitted = await self._admit(journey, matched, payment.payer)
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
            stored = await self._forward_whole(paid, share)
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

    async def _forward_whole(self, paid: Paid, share: Share) -> Stored:
        """The upstream's whole answer, held back until it is paid for."""
        reply = await self._steps.forward.send(paid)
        try:
            if reply.status >= _FAILED_FROM:
                raise UpstreamFailed(
                    "The upstream failed; nothing was charged.", upstreamStatus=reply.status
                )
            body = await self._whole(reply, share)
        finally:
            reply.close()
        headers = self._answer_headers(paid, reply.headers)
        caller = caller_of(paid.admitted.matched.incoming.client_address)
        return Stored(reply.status, tuple(headers), body, caller)

    async def _whole(self, reply: UpstreamReply, share: Share) -> bytes:
        """The body of an answer; there is room for all that is said of it before it is read."""
        bytes_max = self._response_bytes_max
        await share.take(min(_length(reply), bytes_max))
        body = bytearray()
        async for piece in reply.body():
            body += piece
            if len(body) > bytes_max:
                message = "The upstream's answer is larger than a paid answer may be."
                raise UpstreamFailed(message, maxBytes=bytes_max)
            await share.grow(len(body))
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
    """The body of a request; there is room for all that is said of it before it is read."""
    incoming, bytes_max = matched.incoming, matched.config.max_body_bytes
    if incoming.content_length == 0:
        return b""
    await share.take(incoming.content_length or 0)
    body = bytearray()
    try:
        async with asyncio.timeout(HELD_BODY_S):
            async for piece in incoming.body(bytes_max):
                body += piece
                await share.grow(len(body))
    except TimeoutError:
        message = f"The body did not arrive within {HELD_BODY_S:g} seconds."
        raise RequestTimeout(message) from None
    share.keep(len(body))
    return bytes(body)


def _length(reply: UpstreamReply) -> int:
    """How much is to come; 0 where the upstream does not say."""
    if reply.whole is not None:
        return len(reply.whole)
    declared = next((value for name, value in reply.headers if name == b"content-length"), b"")
    return int(declared[:20]) if declared.isdigit() else 0


def _url(quote: Quote, incoming: Incoming) -> str:
    return f"{quote.url}?{incoming.query}" if incoming.query else quote.url
