"""Buying of a service that sells what nothing free of it shows.

Source: evidence.md#paid-services; ADR 0038.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from assay.common.json import JsonObject
from assay.control.scope import scope_of
from assay.net.egress.ports import EgressClient, EgressResponse, Limits, OutboundRequest

_PAYMENT_REQUIRED: Final = 402
_OURS: Final = frozenset({"accept", "cache-control", "pragma"})
"""Headers that tell a visit's own memory what to do; a customer's client sends none of them."""


@dataclass(frozen=True, slots=True)
class Sale:
    """A service that sells, as a visit found it: its 402 was judged and pays the agent's wallet."""

    subject_key: str
    service: str
    payee: str
    """The agent's registered wallet, in lower case."""
    owner: str
    demand: EgressResponse


class Purse(Protocol):
    """A wallet of one visit, which holds no more than the visit may spend."""

    @property
    def calls_left(self) -> int:
        """Calls that can still be paid for, at the price of the first demand."""
        ...

    def pay(self, demand: EgressResponse) -> Mapping[str, str] | None:
        """The headers that pay what a 402 asks; None where it asks for more, or for another payee.

        What they move counts as spent, whether the seller takes it or not.
        """
        ...


class PaidCalls(Protocol):
    """Pays sellers within the operator's limits. Nothing here raises."""

    async def open(self, sale: Sale) -> Purse | None:
        """A wallet with money in it; None where no limit leaves room, or it cannot be had now."""
        ...

    async def keep(self, purse: Purse, bought: JsonObject, *, is_proven: bool) -> None:
        """Keep what was bought, a transcript; with `is_proven` nothing more is."""
        ...

    async def known(self, sale: Sale) -> JsonObject | None:
        """The transcript of what was bought last at this address of this payee, by whatever id."""
        ...


class PayingHttp:
    """The `EgressClient` of a customer: pays what one origin asks for, once a call."""

    def __init__(self, http: EgressClient, purse: Purse, url: str) -> None:
        self._http = http
        self._purse = purse
        self._origin = _origin(url)
        self.paid = 0
        """Calls that were sent with a payment."""

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        """As `EgressClient.send`; a demand that the purse does not meet is the answer."""
        reply = await self._http.send(request, limits)
        if reply.status != _PAYMENT_REQUIRED or _origin(request.url) != self._origin:
            return reply
        payment = self._purse.pay(reply)
        if payment is None:
            return reply
        self.paid += 1
        said = {n: v for n, v in request.headers.items() if n.lower() not in _OURS}
        return await self._http.send(replace(request, headers={**said, **payment}), limits)


def _origin(url: str) -> str:
    scope = scope_of(url)
    return url if scope is None else scope.origin
