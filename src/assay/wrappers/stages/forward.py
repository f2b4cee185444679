"""Forwards requests to the upstream, and decides what is passed on, added and dropped.

Bodies are held for the sake of a payment, sent at once, or passed on as they come.

A wrapper whose upstream is a wrapper of this service would call itself until every connection is
taken, so `Via` is counted. Source: RFC 9110, sections 7 and 7.6.3; conventions.md#wrapper;
payment-safety.md#upstream-responses.
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

SIGNATURES: Final = frozenset({b"signature", b"signature-input", b"signature-agent"})
"""Proofs of a caller by its domain's key: no upstream gets what it could use elsewhere."""

ROUNDS_MAX: Final = 4
"""How often a request may have been here: wrappers of wrappers are odd, but harmless."""


class RequestLoop(InvalidRequest):
    """The request has been here too often, or its caller says so."""

    code = "request_loop"


class Rounds:
    """Counts how often a request names this service in `Via`, and adds one."""

    def __init__(self, address: str) -> None:
        """Create it; `address` is this service's own."""
        self._mark = via_mark(address)

    def are_spent(self, headers: HeaderPairs) -> bool:
        """Return whether it has been here `ROUNDS_MAX` times, by its own headers."""
        ways = (value for name, value in headers if name == b"via")
        return sum(value.count(self._mark) for value in ways) >= ROUNDS_MAX

    def require(self, headers: HeaderPairs) -> None:
        """Raise `RequestLoop` if they are spent."""
        if self.are_spent(headers):
            raise RequestLoop(
                "The request has passed this service too often, as its header Via says: send none,"
                " or let the upstream lead elsewhere."
            )

    def via(self, headers: HeaderPairs) -> bytes:
        """Return the `Via` of a request with this service added."""
        ways = [value for name, value in headers if name == b"via"]
        return b", ".join((*ways, b"1.1 " + self._mark))


BUFFERED_BODY_S = 60.0
"""Longest time for the body of a paid call: a slow sender must not hold memory."""

SMALL_BODY_BYTES = 64 * 1024
"""A body up to this size is read before the upstream is called, and sent at once."""


def require_size(size: int | None, bytes_max: int) -> None:
    """Raise `WrapperTooLarge` for more bytes than that."""
    if size is not None and size > bytes_max:
        raise WrapperTooLarge(f"The body is larger than {bytes_max} bytes.", maxBytes=bytes_max)


async def read_body(incoming: InboundRequest, config: WrapperConfig, share: Reservation) -> bytes:
    """Return the body of a request; bytes that are only announced take no memory.

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
    """Return the body: in memory already, read now if it is small, or passed on as it comes."""
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
"""Keeps strangers' pages in a browser away from their origin, which operators share."""

_PAYMENT_REQUIRED = 402

IDEMPOTENCY_KEY = b"idempotency-key"

_ASKS_FOR_PASSWORD = re.compile(
    rb"(?:^|[,\s])(?:basic|digest|negotiate|ntlm)(?=[,\s]|$)", re.IGNORECASE
)
"""Schemes for which a browser shows a password dialog in the name of the origin, or answers by
itself. Source: RFC 7617, RFC 7616, RFC 4559."""

_AUTHORITY = re.compile(rb"(?:[A-Za-z][A-Za-z0-9+.-]*:|[/\\]{2})")
"""The beginning of a reference that leaves its origin. Source: RFC 3986, section 4.2; WHATWG URL,
which reads a backslash as a slash."""

_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*+"')


class ForwardStage:
    """Sends requests that may be sent."""

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
        """Return a request without a body, to which `lines_of` a call adds its lines."""
        headers = self._request_headers(paid)
        return self._upstream.prepare(self._request(paid, headers, b"", 0))

    async def send(self, paid: PayableRequest) -> UpstreamResponse:
        """Return the upstream's answer.

        Raises `UpstreamFailed`, `WrapperTooLarge` while sending, and if nothing was sent
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
        """Return the upstream's headers as they go back, with ours, without the limit's."""
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
        if config.rate_limit is not None:  # this service sets the rest of it
            headers = [h for h in headers if not h[0].startswith(b"ratelimit")]
        if config.cors_origins:  # and who may read it
            headers = [h for h in headers if not h[0].startswith(CORS_PREFIX)]
        return headers

    def leads_away(self, headers: HeaderPairs) -> bool:
        """Return whether an answer's `Location` leads to no wrapper, where it would be paid for.

        A relative address leads to one, and so does the wrappers' own address.
        """
        place = next((value for name, value in headers if name == b"location"), b"").strip()
        if _AUTHORITY.match(place) is None:
            return False
        return not place.startswith(self._origin.address.encode() + b"/wrap/")

    def _is_kept_back(self, name: bytes, value: bytes) -> bool:
        """Return whether a listed header does not pass because of its value, or our origin."""
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
        """Return all headers but those that differ between two requests of the same bytes."""
        incoming = paid.admitted.matched.incoming
        dropped = _named_by_connection(incoming.headers)
        added = paid.admitted.matched.route.upstream_header
        sent = REQUEST_FIELDS.passes
        headers = [
            (name, value)
            for name, value in incoming.headers
            if sent(name) and name not in dropped and as_gateways_read(name) not in SIGNATURES
        ]
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
        """Return a header's value with the upstream's place replaced by the wrappers'.

        A cookie stays below its operator's path.
        """
        prefix = f"/wrap/{config.operator_id}".encode()
        target = config.target_url.encode()
        base = b"/".join((b"", *target.split(b"/")[3:]))  # empty, or the target's own path
        if name == b"set-cookie":
            return _cookie_below(value, prefix, base)
        if name not in {b"location", b"content-location"}:
            return value
        if value[:1] != b"/":
            return _moved(value, target, self._origin.address.encode() + prefix)
        # A second slash begins a host; a caller that knows the public path means that.
        is_ours = value[1:2] in {b"/", b"\\"} or value.startswith(prefix + b"/")
        return value if is_ours else _moved(value, base, prefix)


def _with_idempotency_key(
    headers: list[tuple[bytes, bytes]], key: str
) -> list[tuple[bytes, bytes]]:
    """Return the headers with the payment's key instead of the caller's own.

    What is bought once must be done once, and a second payment buys again: a caller's own key could
    say otherwise. Source: draft-ietf-httpapi-idempotency-key-header-07.
    """
    kept = [header for header in headers if as_gateways_read(header[0]) != IDEMPOTENCY_KEY]
    return [*kept, (IDEMPOTENCY_KEY, key.encode())] if key else kept


_AFTER_PATH = (b"/", b"?", b"#")
_REWRITTEN = frozenset({b"set-cookie", b"location", b"content-location", b"www-authenticate"})


def _caller(paid: PayableRequest) -> Caller:
    """Return whom the call counts for at its upstream: its payer, its agent, else its address."""
    incoming, trust = paid.admitted.matched.incoming, paid.admitted.trusted.trust
    if isinstance(paid.payment, ClaimedPayment):
        return payer_at(paid.payment.entry.payer, incoming.client_address)
    if isinstance(trust, AdmittedAgent) and trust.limit_key:
        return agent_at(trust.address, incoming.client_address)
    return incoming.caller


def lines_of(call: FastPathCall) -> bytes:
    """Return the headers of a prepared request that belong to this call only."""
    return b"x-forwarded-for: %b\r\nx-assay-request-id: %b\r\n" % (
        call.client_address.encode("ascii", "replace"),
        call.request_id.encode(),
    )


def asks_itself() -> UpstreamFailed:
    """Return the failure for an upstream's own 402, which callers would take for ours.

    Source: payment-safety.md#upstream-responses.
    """
    return UpstreamFailed("The upstream itself asks for payment.", detail="upstream 402")


def _path(base: str, path_and_query: str) -> bytes:
    """Return the target's own path, and then the request's, exactly as it came."""
    path = base.rstrip("/") + path_and_query
    if path.isascii():
        return path.encode("ascii")
    return quote(path.encode("latin-1"), safe="/?%:@!$&'()*+,;=-._~[]").encode("ascii")


def _named_by_connection(headers: HeaderPairs) -> frozenset[bytes]:
    """Return the headers that `Connection` ends here."""
    named = [value for name, value in headers if name == b"connection"]
    if not named:
        return frozenset()
    return frozenset(part.strip().lower() for value in named for part in value.split(b","))


def asks_for_password(challenge: bytes) -> bool:
    """Return whether a browser would ask its user for a password in our origin's name."""
    bare = _QUOTED.sub(b"", challenge)
    return b'"' in bare or _ASKS_FOR_PASSWORD.search(bare) is not None


def _moved(value: bytes, place: bytes, to: bytes) -> bytes:
    """Return a text that begins with one place, moved to the other."""
    rest = value[len(place) :]
    return to + rest if value.startswith(place) and rest[:1] in {b"", *_AFTER_PATH} else value


def _cookie_below(value: bytes, prefix: bytes, base: bytes) -> bytes:
    """Return a cookie whose Path is below its operator's; its Domain is dropped.

    Operators share our origin. A path above the target's own becomes all of the wrapper's.
    """
    parts = [part.strip() for part in value.split(b";")]
    kept = [p for p in parts[1:] if not p.lower().startswith((b"domain", b"path"))]
    path = next((p.partition(b"=")[2] for p in parts[1:] if p.lower().startswith(b"path")), b"/")
    path = path.rstrip(b"/") if path.startswith(b"/") else b""
    below = b"" if (base + b"/").startswith(path + b"/") else _moved(path, base, b"")
    return b"; ".join([parts[0], *kept, b"Path=" + prefix + below])
