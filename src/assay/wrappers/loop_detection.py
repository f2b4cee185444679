"""Requests that come round: from a wrapper that leads back here, or from who says so.

A wrapper whose upstream is a wrapper of this very service would else call itself until every
connection is taken. Source: RFC 9110, section 7.6.3.
"""

from typing import Final

from assay.common.errors import InvalidRequest
from assay.common.http_heads import HeaderPairs
from assay.net.egress.fields import via_mark

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
