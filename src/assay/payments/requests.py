"""A request with a payment, and whether it is the one that its payment was claimed for.

What was bought is known by wrapper, method, path, query and body. Our own public address is no part
of it: it may change, and two processes may be reached at two, while a payment is under way. Pure.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from assay.common.http_heads import HeaderPairs
from assay.payments.model import LedgerEntry, Protocol, Quote

_SLASH = re.compile(r"%2[fF]")
_LABEL = b"assay.request.2\0"


@dataclass(frozen=True, slots=True)
class PresentedPayment:
    """A payment as its sender words it, taken apart but believed in nothing."""

    protocol: Protocol
    network: str
    """Id of the network it says it is made on."""
    amount: int
    pay_to: str
    """In lower case."""
    expires_s: float
    """Seconds since 1970 after which it cannot be spent."""
    digest: str
    """As in `Payment`."""
    token: str
    """As in `Payment`."""
    parsed: object
    """What its own protocol made of it."""

    def pays(self, quote: Quote) -> bool:
        """Whether it says that it pays exactly what is asked for, where it is asked for."""
        asked = (quote.network.id, quote.amount, quote.pay_to)
        return (self.network, self.amount, self.pay_to) == asked


async def _any_size(_size: int) -> None:
    """Room for whatever comes."""


@dataclass(frozen=True)  # without slots, for `common.dataclass_copy.changed`
class PaidRequest:
    """The request a payment is attached to."""

    method: str
    url: str
    headers: HeaderPairs
    body: bytes
    caller: str = ""
    """The network address it came from, or that address's network."""
    speaker: str | None = None
    """The address whose session it carries."""
    make_room: Callable[[int], Awaitable[None]] = _any_size
    """Waits until an answer of so many bytes may be held in memory. Raises `Unavailable`."""
    target: str = ""
    """Path and query as they were sent, below our public address; `url` is that address and it."""
    presented: PresentedPayment | None = None
    """The payment, where it has been taken apart already."""


def request_digest(wrapper_id: str, request: PaidRequest) -> str:
    """SHA-256 over what is bought."""
    return _digest(_LABEL, wrapper_id, request.method, request.target, body=request.body)


def is_same_request(entry: LedgerEntry, request: PaidRequest) -> bool:
    """Whether the entry's payment was claimed for this request, whatever our address was then.

    Older entries named the public address, and the path as it was forwarded: they are known again
    as long as that address is still ours.
    """
    if entry.request_digest == request_digest(entry.wrapper_id, request):
        return True
    path, mark, query = request.url.partition("?")
    urls = (request.url, _SLASH.sub("/", path) + mark + query)
    said = (entry.wrapper_id, request.method)
    return entry.request_digest in {_digest(b"", *said, url, body=request.body) for url in urls}


def _digest(label: bytes, *said: str, body: bytes) -> str:
    head = b"\0".join(part.encode("utf-8", "surrogateescape") for part in said)
    whole = label + head + b"\0" + hashlib.sha256(body).digest()
    return hashlib.sha256(whole).hexdigest()
