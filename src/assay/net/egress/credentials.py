"""Recognises our own credentials in outbound requests and removes them.

All outbound paths share this list: wrappers, the proxy and the playground. A credential of ours
works at our API until it expires, so any other party that receives it can act as its owner. The
caller's own credentials for the target pass unchanged. Pure. Source: egress.md#proxy-hygiene; RFC
9110, section 11.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from assay.net.egress.credential_search import CANDIDATES_MAX, Search, may_be_in
from assay.net.egress.fields import as_gateways_read

SESSION_COOKIE: Final = "assay_session"
"""Cookie of a dashboard session. Only this service may receive it."""

CREDENTIAL_FIELDS: Final = frozenset(
    {b"x-agent-session", b"x-agent-signature", b"x-agent-challenge", b"x-payment"}
    | {b"payment-signature", b"payment-authorization"}
)
"""Names that carry a credential for us, as headers, cookies or query parameters.
Source: interface.md#wrappers, #agent-identity; x402.md#documents."""

_COOKIES: Final = CREDENTIAL_FIELDS | {
    as_gateways_read(prefix + SESSION_COOKIE.encode()) for prefix in (b"", b"__host-", b"__secure-")
}

_PAIR = re.compile(r"(^|[&;])([^&;]*)")
"""A query's separator and pair; some servers separate pairs by semicolons."""

PAIRS_MAX: Final = 200
"""Cookies or parameters inspected one by one; if there are more and one is ours, none is sent."""


class OwnCredentials:
    """Recognises API keys, dashboard tokens, agent sessions, signatures and payments."""

    def __init__(self, is_dashboard_token: Callable[[str], bool]) -> None:
        """Create it; `is_dashboard_token` tells whether a compact JWS names us as its issuer."""
        self._is_dashboard_token = is_dashboard_token

    def headers(self, headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Return the headers (lower-case names) whose values hold no credential of ours.

        Sessions are recognised by their form and dashboard tokens by their issuer, so that expired
        ones and those of an older key are found too. Base64 of `Basic` and percent-encoding are
        decoded.
        """
        values = b" ".join([value for _, value in headers])
        if not may_be_in(values):
            return list(headers)
        search = Search(self._is_dashboard_token)
        if search.finds_named_in(values):
            kept = ((name, self._header(name, value, search)) for name, value in headers)
            return [(name, value) for name, value in kept if value is not None]
        return [one for one in headers if one[0] != b"authorization" or not _is_payment(one[1])]

    def is_in(self, text: str) -> bool:
        """Return whether a text holds a credential of ours."""
        return Search(self._is_dashboard_token).finds_in(_octets(text))

    def header(self, name: bytes, value: bytes) -> bytes | None:
        """Return the header's value without credentials of ours; None if nothing of it may be sent.

        `name` is lower case. Only `Cookie` is sent in part.
        """
        return self._header(name, value, Search(self._is_dashboard_token))

    def cookie(self, value: bytes) -> bytes | None:
        """Return the value of `Cookie` without our cookies; None if none is left."""
        return self._cookie(value, Search(self._is_dashboard_token))

    def query(self, query: str) -> str | None:
        """Return a query without parameters that carry our credentials; None if none is left."""
        octets = _octets(query)
        search = Search(self._is_dashboard_token)
        if not may_be_in(octets) or not search.finds_named_in(octets):
            return query
        pairs = _PAIR.findall(query)
        if len(pairs) > PAIRS_MAX:
            return None
        kept = [p for p in pairs if not search.is_own_pair(_octets(p[1]), CREDENTIAL_FIELDS)]
        if len(kept) == len(pairs):
            return query
        return "".join(map("".join, kept))[len(kept[0][0]) :] if kept else None

    def _header(self, name: bytes, value: bytes, search: Search) -> bytes | None:
        if name == b"cookie":
            return self._cookie(value, search)
        if name == b"authorization" and _is_payment(value):
            return None
        return None if search.finds_in(value) else value

    def _cookie(self, value: bytes, search: Search) -> bytes | None:
        if not search.finds_named_in(value):
            return value
        pairs = value.split(b";", PAIRS_MAX)
        if len(pairs) > PAIRS_MAX:
            return None
        kept = [pair for pair in pairs if not search.is_own_pair(pair, _COOKIES)]
        if len(kept) == len(pairs):
            return value
        return b";".join(kept).strip() or None


def _is_payment(authorization: bytes) -> bool:
    """Return whether one of the credentials in it has the scheme `Payment`."""
    between = authorization.lower().split(b"payment", CANDIDATES_MAX)
    if len(between) > CANDIDATES_MAX:
        return True
    begins = [i == 0 and not text.strip() for i, text in enumerate(between)]
    pairs = zip(begins, between, between[1:], strict=False)
    return any(
        (begin or before.rstrip().endswith(b",")) and not after[:1].strip()
        for begin, before, after in pairs
    )


def _octets(text: str) -> bytes:
    """Return a target's text as bytes; a request line never held characters beyond Latin-1."""
    return text.encode("latin-1", "replace")
