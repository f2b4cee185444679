"""Payers and votes of one agent in its evidence. Money is in millionths of a dollar."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.common.json import JsonObject, JsonValue, is_array, is_object

RULES = 2
"""Version of the evidence; version 1 was weighted by account age and has no payers."""


@dataclass(frozen=True, slots=True)
class Payer:
    """The payments of one address to the agent's addresses. Days are counted from 1970."""

    address: str
    spent: Mapping[int, int]
    """Amounts by day."""
    returned: int = 0
    """Amount that the agent's side returned."""
    elsewhere: int = 0
    """Amount paid to unrelated sellers."""
    is_charge: bool = False
    """Whether at least one payment was an x402 authorisation or an MPP charge, not a plain
    transfer."""
    sources: tuple[str, ...] = ()
    """Its funders and their funders, nearest first; exchanges are left out."""
    is_own: bool = False
    """Whether it belongs to the agent's side, or was funded by it."""
    resold: Mapping[int, int] = field(default_factory=dict[int, int])
    """Amounts by day paid to resellers of the agent's services. They do not weight its vote: a
    reseller of a rival's service could pay itself."""
    counts_as_customer: bool = True
    """False for payments that appear only in our own ledger, of an operator tied to the agent."""

    is_pending: bool = False
    """Whether its funding is not read yet: until then it cannot support the agent."""

    @property
    def net(self) -> int:
        """Return the amount paid and not returned."""
        return max(0, sum(self.spent.values()) - self.returned)


@dataclass(frozen=True, slots=True)
class Vote:
    """The latest rating of one address, 0 to 100; the day is None if it could not be read."""

    address: str
    rating: float
    day: int | None


@dataclass(frozen=True, slots=True)
class Reputation:
    """All input of the rules."""

    payers: tuple[Payer, ...]
    votes: tuple[Vote, ...]
    day: int
    """The day it was read."""
    price: int
    """The usual price, see `usual_price`; 0 without payments."""


def payer_json(payer: Payer) -> JsonObject:
    """Return a payer as evidence; empty and false members are left out."""
    row: dict[str, JsonValue] = {
        "spent": {str(day): amount for day, amount in sorted(payer.spent.items())},
        "returned": payer.returned,
        "elsewhere": payer.elsewhere,
        "charge": payer.is_charge,
        "sources": list(payer.sources),
        "resold": {str(day): amount for day, amount in sorted(payer.resold.items())},
        "own": payer.is_own,
        "related": not payer.counts_as_customer,
        "pending": payer.is_pending,
    }
    return {name: value for name, value in row.items() if value}


def reputation_of(data: JsonObject) -> Reputation:
    """Parse the evidence of the signal."""
    payers, votes = data.get("payers"), data.get("votes")
    return Reputation(
        payers=tuple(_payer(a, r) for a, r in _rows(payers)),
        votes=tuple(
            Vote(address, float(str(row["rating"])), _whole(row.get("day")))
            for address, row in _rows(votes)
        ),
        day=_whole(data.get("day")) or 0,
        price=_whole(data.get("price")) or 0,
    )


def _payer(address: str, row: JsonObject) -> Payer:
    sources = row.get("sources")
    return Payer(
        address=address,
        spent=_days(row.get("spent")),
        returned=_whole(row.get("returned")) or 0,
        elsewhere=_whole(row.get("elsewhere")) or 0,
        is_charge=row.get("charge") is True,
        sources=tuple(str(one) for one in sources) if is_array(sources) else (),
        resold=_days(row.get("resold")),
        is_own=row.get("own") is True,
        counts_as_customer=row.get("related") is not True,
        is_pending=row.get("pending") is True,
    )


def _days(value: JsonValue) -> Mapping[int, int]:
    return {int(d): _whole(a) or 0 for d, a in value.items()} if is_object(value) else {}


def _rows(value: JsonValue) -> Sequence[tuple[str, JsonObject]]:
    if not is_object(value):
        return ()
    return [(name, row) for name, row in value.items() if is_object(row)]


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
