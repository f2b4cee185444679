"""Requests plain enough for the fast lane; anything stranger takes the ordinary one."""

import re
from typing import NamedTuple

from assay.http1.callers import anonymous_at
from assay.http1.request_parser import RequestParser
from assay.server.request_context import given_request_id
from assay.wrappers.model import InboundRequest
from assay.wrappers.routes_calls import incoming_of

_METHODS = frozenset({b"GET", b"HEAD", b"OPTIONS", b"DELETE"})
_TARGET = re.compile(
    rb"/wrap/([^/?#]*)(/[\x21\x24-\x3e\x40-\x7e\x22]*)(?:\?([\x21\x22\x24-\x7e]*))?"
)
"""Operator, path and query."""

_ORDINARY = (b"transfer-encoding", b"content-length", b"expect")
"""Headers of requests that have a body, or want more than an answer."""


_NOBODY = anonymous_at("")
"""Who calls differs between two of the same requests: the trip says it."""


class PlainRequest(NamedTuple):
    """A request without a body; `incoming` is without what differs between two of the same."""

    operator_id: str
    incoming: InboundRequest
    request_id: str | None
    """The caller's own, where it has sent a good one."""


def read_plain(requests: RequestParser) -> PlainRequest | None:
    """The request whose head was just parsed, where it is a plain one."""
    method, raw = requests.method, requests.headers
    found = _TARGET.fullmatch(requests.target)
    if method not in _METHODS or found is None or requests.version != "1.1":
        return None
    headers: dict[str, str] = {}
    for name, value in raw:
        if name in _ORDINARY:
            return None
        headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    incoming = incoming_of(
        method=method.decode("ascii"),
        path=found[2].decode("ascii"),
        query=None if found[3] is None else found[3].decode("ascii"),
        raw=raw,
        headers=headers,
        client="",
        request_id="",
        content_length=0,
        caller=_NOBODY,
    )
    return PlainRequest(found[1].decode("ascii"), incoming, given_request_id(headers))
