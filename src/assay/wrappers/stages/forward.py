"""To the upstream and back: what is passed on, what is added, what is dropped.

Requests that come round: from a wrapper that leads back here, or from who says so.

A wrapper whose upstream is a wrapper of this very service would else call itself until every
connection is taken. Source: RFC 9110, section 7.6.3.

Bodies of requests: held for the sake of a payment, sent at once, or passed on as they come.

Source: RFC 9110, section 7; conventions.md#wrapper; payment-safety.md#upstream-responses.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import quote

from assay.common.errors import InvalidRequest, RequestTimeout
from assay.common.http_heads import HeaderPairs
from assay.common.memory_budget import Reservation
from assay.http1.model import (
    Caller,
    PreparedUpstreamRequest,
    Upstream,
    UpstreamFailed,
    UpstreamRequest,
    UpstreamResponse,
    agent_at,
    payer_at,
)
from assay.net.egress.credentials import REQUEST_FIELDS, OwnCredentials, as_gateways_read, via_mark
from assay.payments.model import ClaimedPayment
from assay.payments.ports import upstream_key
from assay.wrappers.cors import PREFIX as CORS_PREFIX
from assay.wrappers.model import (
    AdmittedAgent,
    FastPathCall,
    InboundRequest,
    PayableRequest,
    WrapperConfig,
    WrapperTooLarge,
)
from assay.wrappers.origin import WrapperOrigin
from assay.wrappers.response_fields import ResponseFields, exceptions, is_command

ROUNDS_MAX: Final = 4
"""How often a request may have been here: wrappers of wrappers are odd, but no harm."""


class RequestLoop(InvalidRequest):
    """The request has been here too often, or its caller says so."""

    code = "request_loop"


class Rounds:
    """Counts how often a request names this service in `Via`, and adds one."""

    def __init__(self, address: str) -> None:
        """`address` is this service's own."""
        self._mark = via_mark(address)

    def are_spent(self, headers: HeaderPairs) -> bool:
        """Whether it has been here `ROUNDS_MAX` times, by its own account."""
        ways = (value for name, value in headers if name == b"via")
        return sum(value.count(self._mark) for value in ways) >= ROUNDS_MAX

    def require(self, headers: HeaderPairs) -> None:
        """Raises `RequestLoop` where they are spent."""
        if self.are_spent(headers):
            raise RequestLoop(
                "The request has passed this service too often, as its header Via says: send none,"
                " or let the upstream lead elsewhere."
            )

    def via(self, headers: HeaderPairs) -> bytes:
        """The way of a request so far, and us."""
        ways = [value for name, value in headers if name == b"via"]
        return b", ".join((*ways, b"1.1 " + self._mark))


BUFFERED_BODY_S = 60.0
"""How long the body of a paid call may take: nobody keeps room from others by dribbling."""

SMALL_BODY_BYTES = 64 * 1024
"""A body up to this size is read before the upstream is called, and sent in one go."""


def require_size(size: int | None, bytes_max: int) -> None:
    """Raises `WrapperTooLarge` for more bytes than that."""
    if size is not None and size > bytes_max:
        raise WrapperTooLarge(f"The body is larger than {bytes_max} bytes.", maxBytes=bytes_max)


async def read_body(incoming: InboundRequest, config: WrapperConfig, share: Reservation) -> bytes:
    """The body of a request; what is only announced takes no room.

    Raises `WrapperTooLarge` and `RequestTimeout`.
    """
    bytes_max = config.max_body_bytes
    require_size(incoming.content_length, bytes_max)
    if incoming.content_length == 0:
        return b""
    body = bytearray()
    try:
        async with asyncio.timeout(BUFFERED_BODY_S):
            async for piece in incoming.body(bytes_max):
                body += piece
                await share.take(len(body))
    except TimeoutError:
        message = f"The body did not arrive within {BUFFERED_BODY_S:g} seconds."
        raise RequestTimeout(message) from None
    return bytes(body)


async def _body_to_send(paid: PayableRequest) -> tuple[bytes | AsyncIterator[bytes], int | None]:
    """The body: in hand already, read now because it is small, or passed on as it comes."""
    if paid.body is not None:
        return paid.body, len(paid.body)
    incoming, bytes_max = (
        paid.admitted.matched.incoming,
        paid.admitted.matched.config.max_body_bytes,
    )
    length = incoming.content_length
    if length == 0:
        return b"", 0
    if length is not None and length <= SMALL_BODY_BYTES:
        whole = b"".join([piece async for piece in incoming.body(bytes_max)])
        return whole, len(whole)
    return incoming.body(bytes_max), length


SANDBOX = (
    (b"content-security-policy", b"sandbox allow-scripts allow-forms"),
    (b"x-content-type-options", b"nosniff"),
)
"""Pages of strangers, opened in a browser, get no part of their origin: operators share one."""

_PAYMENT_REQUIRED = 402

IDEMPOTENCY_KEY = b"idempotency-key"

_ASKS_FOR_PASSWORD = re.compile(
    rb"(?:^|[,\s])(?:basic|digest|negotiate|ntlm)(?=[,\s]|$)", re.IGNORECASE
)
"""Schemes for which a browser shows a password dialog in the name of the origin, or answers by
itself. Source: RFC 7617, RFC 7616, RFC 4559."""

_AUTHORITY = re.compile(rb"(?:[A-Za-z][A-Za-z0-9+.-]*:|[/\\]{2})")
"""How a reference begins that does not stay at the origin it came from. Source: RFC 3986,
section 4.2; WHATWG URL, which reads a backslash as a slash."""

_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*+"')


class ForwardStage:
    """Sends a request that may be sent."""

    def __init__(
        self, upstream: Upstream, origin: WrapperOrigin, credentials: OwnCredentials
    ) -> None:
        self._upstream = upstream
        self._origin = origin
        self._credentials = credentials
        self._returned = ResponseFields()
        scheme, _, host = origin.address.partition("://")
        self._ours = (
            (b"x-forwarded-proto", scheme.encode()),
            (b"x-forwarded-host", host.partition("/")[0].encode()),
        )
        self.rounds = Rounds(origin.app_address)

    def prepare(self, paid: PayableRequest) -> PreparedUpstreamRequest:
        """A request without a body, but for the lines that `lines_of` a trip adds."""
        headers = self._request_headers(paid)
        return self._upstream.prepare(self._request(paid, headers, b"", 0))

    async def send(self, paid: PayableRequest) -> UpstreamResponse:
        """The upstream's answer.

        Raises `UpstreamFailed`, `WrapperTooLarge` while sending, and where nothing was sent:
        `UpstreamBusy` and `common.errors.Unavailable`.
        """
        matched = paid.admitted.matched
        body, length = await _body_to_send(paid)
        incoming = matched.incoming
        headers = [
            *self._request_headers(paid),
            (b"x-forwarded-for", incoming.client_address.encode("ascii", "replace")),
            (b"x-assay-request-id", incoming.request_id.encode()),
        ]
        reply = await self._upstream.send(self._request(paid, headers, body, length))
        if reply.status == _PAYMENT_REQUIRED:
            reply.close()
            raise asks_itself()
        return reply

    def answer_headers(
        self, config: WrapperConfig, found: HeaderPairs
    ) -> list[tuple[bytes, bytes]]:
        """The upstream's headers as they go back, and ours but for those of the limit."""
        dropped = _named_by_connection(found)
        passes, excepted = self._returned.passes, exceptions(config.pass_response_headers)
        headers = [
            h
            for h in found
            if (passes(h[0]) or (excepted and as_gateways_read(h[0]) in excepted))
            and h[0] not in dropped
            and (h[0] != b"content-type" or not is_command(h[1]))
        ]
        if any(name in _REWRITTEN for name, _ in headers):
            headers = [
                (name, self._rewritten(name, value, config))
                for name, value in headers
                if not self._is_kept_back(name, value)
            ]
        headers.extend(SANDBOX)
        if config.rate_limit is not None:  # what is left of it is ours to say
            headers = [h for h in headers if not h[0].startswith(b"ratelimit")]
        if config.cors_origins:  # and so is who may read it
            headers = [h for h in headers if not h[0].startswith(CORS_PREFIX)]
        return headers

    def leads_away(self, headers: HeaderPairs) -> bool:
        """Whether an answer's `Location` is no place of a wrapper, where it is called and paid for.

        A relative one is, and so is the wrappers' own address.
        """
        place = next((value for name, value in headers if name == b"location"), b"").strip()
        if _AUTHORITY.match(place) is None:
            return False
        return not place.startswith(self._origin.address.encode() + b"/wrap/")

    def _is_kept_back(self, name: bytes, value: bytes) -> bool:
        """Whether a header on the list does not pass because of its value, or of our origin."""
        if name == b"set-cookie":
            return self._origin.is_shared
        if name != b"www-authenticate":
            return False
        return b"payment" in value.lower() or (self._origin.is_shared and asks_for_password(value))

    def _request(
        self,
        paid: PayableRequest,
        headers: HeaderPairs,
        body: bytes | AsyncIterator[bytes],
        length: int | None,
    ) -> UpstreamRequest:
        matched = paid.admitted.matched
        target, incoming = matched.route.target, matched.incoming
        return UpstreamRequest(
            method=incoming.method,
            target=target,
            path_and_query=_path(target.path_and_query, self._path_and_query(incoming)),
            headers=headers,
            body=body,
            content_length=length,
            timeout_s=matched.config.timeout_ms / 1000,
            account=matched.config.operator_id,
            caller=_caller(paid),
        )

    def _path_and_query(self, incoming: InboundRequest) -> str:
        query = incoming.query
        if query:
            query = self._credentials.query(query)
        return incoming.path if query is None else f"{incoming.path}?{query}"

    def _request_headers(self, paid: PayableRequest) -> HeaderPairs:
        """All but those that differ between two requests of the same bytes."""
        incoming = paid.admitted.matched.incoming
        dropped = _named_by_connection(incoming.headers)
        added = paid.admitted.matched.route.upstream_header
        sent = REQUEST_FIELDS.passes
        headers = [h for h in incoming.headers if sent(h[0]) and h[0] not in dropped]
        headers = self._credentials.headers(headers)
        if added is not None:
            own = as_gateways_read(added[0])
            headers = [header for header in headers if as_gateways_read(header[0]) != own]
            headers.append(added)
        if isinstance(paid.payment, ClaimedPayment):
            headers = _with_idempotency_key(headers, upstream_key(paid.payment.entry))
        headers.extend(self._ours)
        headers.append((b"via", self.rounds.via(incoming.headers)))
        trust = paid.admitted.trusted.trust
        if isinstance(trust, AdmittedAgent):
            headers.append((b"x-assay-agent", trust.agent_id.encode()))
            headers.append((b"x-assay-tier", trust.tier.encode()))
            headers.append((b"x-assay-score", b"%.2f" % trust.score))
            headers.append((b"x-assay-identity-proven", b"true" if trust.proven else b"false"))
        return headers

    def _rewritten(self, name: bytes, value: bytes, config: WrapperConfig) -> bytes:
        """What points at the upstream points at us; a cookie stays below its operator's path."""
        prefix = f"/wrap/{config.operator_id}".encode()
        target = config.target_url.encode()
        base = b"/".join((b"", *target.split(b"/")[3:]))  # empty, or the target's own path
        if name == b"set-cookie":
            return _cookie_below(value, prefix, base)
        if name not in {b"location", b"content-location"}:
            return value
        if value[:1] != b"/":
            return _moved(value, target, self._origin.address.encode() + prefix)
        # A second slash begins a host; who knows the public path already means that.
        is_ours = value[1:2] in {b"/", b"\\"} or value.startswith(prefix + b"/")
        return value if is_ours else _moved(value, base, prefix)


def _with_idempotency_key(
    headers: list[tuple[bytes, bytes]], key: str
) -> list[tuple[bytes, bytes]]:
    """The headers with the payment's key in the place of whatever the caller sent as one.

    What is bought once is to be done once, and who pays again has bought again: a caller's own key
    could say otherwise. Source: draft-ietf-httpapi-idempotency-key-header-07.
    """
    kept = [header for header in headers if as_gateways_read(header[0]) != IDEMPOTENCY_KEY]
    return [*kept, (IDEMPOTENCY_KEY, key.encode())] if key else kept


_AFTER_PATH = (b"/", b"?", b"#")
_REWRITTEN = frozenset({b"set-cookie", b"location", b"content-location", b"www-authenticate"})


def _caller(paid: PayableRequest) -> Caller:
    """Whom the call is counted for at its upstream: its payer, its agent, else its address."""
    incoming, trust = paid.admitted.matched.incoming, paid.admitted.trusted.trust
    if isinstance(paid.payment, ClaimedPayment):
        return payer_at(paid.payment.entry.payer, incoming.client_address)
    if isinstance(trust, AdmittedAgent) and trust.proven:
        return agent_at(trust.address, incoming.client_address)
    return incoming.caller


def lines_of(call: FastPathCall) -> bytes:
    """The headers of a prepared request that are this trip's own."""
    return b"x-forwarded-for: %b\r\nx-assay-request-id: %b\r\n" % (
        call.client_address.encode("ascii", "replace"),
        call.request_id.encode(),
    )


def asks_itself() -> UpstreamFailed:
    """What an upstream's own 402 is: it would be taken for ours.

    Source: payment-safety.md#upstream-responses.
    """
    return UpstreamFailed("The upstream itself asks for payment.", detail="upstream 402")


def _path(base: str, path_and_query: str) -> bytes:
    """The target's own path, then the request's, exactly as it came."""
    path = base.rstrip("/") + path_and_query
    if path.isascii():
        return path.encode("ascii")
    return quote(path.encode("latin-1"), safe="/?%:@!$&'()*+,;=-._~[]").encode("ascii")


def _named_by_connection(headers: HeaderPairs) -> frozenset[bytes]:
    """Headers that `Connection` says end here."""
    named = [value for name, value in headers if name == b"connection"]
    if not named:
        return frozenset()
    return frozenset(part.strip().lower() for value in named for part in value.split(b","))


def asks_for_password(challenge: bytes) -> bool:
    """Whether a browser would ask its user for a password, in the name of our origin."""
    bare = _QUOTED.sub(b"", challenge)
    return b'"' in bare or _ASKS_FOR_PASSWORD.search(bare) is not None


def _moved(value: bytes, place: bytes, to: bytes) -> bytes:
    """What begins with one place, at the other."""
    rest = value[len(place) :]
    return to + rest if value.startswith(place) and rest[:1] in {b"", *_AFTER_PATH} else value


def _cookie_below(value: bytes, prefix: bytes, base: bytes) -> bytes:
    """Operators share our origin, so a cookie's Path goes below its own and Domain is dropped.

    A path above the target's own is all of the wrapper's.
    """
    parts = [part.strip() for part in value.split(b";")]
    kept = [p for p in parts[1:] if not p.lower().startswith((b"domain", b"path"))]
    path = next((p.partition(b"=")[2] for p in parts[1:] if p.lower().startswith(b"path")), b"/")
    path = path.rstrip(b"/") if path.startswith(b"/") else b""
    below = b"" if (base + b"/").startswith(path + b"/") else _moved(path, base, b"")
    return b"; ".join([parts[0], *kept, b"Path=" + prefix + below])
