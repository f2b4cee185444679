"""Buys from a service that sells and whose function nothing free shows.

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
"""Headers that control a visit's own cache; a customer's client sends none of them."""


@dataclass(frozen=True, slots=True)
class Sale:
    """A service that sells, as found by a visit: its 402 was judged and pays the agent's wallet."""

    subject_key: str
    service: str
    payee: str
    """The agent's registered wallet, in lower case."""
    owner: str
    demand: EgressResponse


class Purse(Protocol):
    """The wallet of one visit, which contains no more than the visit may spend."""

    @property
    def calls_left(self) -> int:
        """Return how many calls can still be paid for, at the price of the first demand."""
        ...

    def pay(self, demand: EgressResponse) -> Mapping[str, str] | None:
        """Return the headers that pay a 402; None if it demands more, or names another payee.

        The amount counts as spent, whether the seller takes it or not.
        """
        ...


class PaidCalls(Protocol):
    """Pays sellers within the operator's limits. Methods never raise."""

    async def open(self, sale: Sale) -> Purse | None:
        """Return a funded wallet; None if a limit is reached, or it is unavailable now."""
        ...

    async def keep(self, purse: Purse, bought: JsonObject, *, is_proven: bool) -> None:
        """Store the transcript of what was bought; with `is_proven` nothing more is bought."""
        ...

    async def known(self, sale: Sale) -> JsonObject | None:
        """Return the last stored transcript for this payee and address, under any id."""
        ...


class PayingHttp:
    """A customer's `EgressClient`: pays what one origin demands, once a call."""

    def __init__(self, http: EgressClient, purse: Purse, url: str) -> None:
        self._http = http
        self._purse = purse
        self._origin = _origin(url)
        self.paid = 0
        """Calls that were sent with a payment."""

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        """Send like `EgressClient.send`; a demand that the purse cannot meet is returned."""
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
