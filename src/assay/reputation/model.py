"""Payers and votes of one agent, as its evidence holds them. Money is in millionths of a dollar."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.common.json import JsonObject, JsonValue, is_array, is_object

RULES = 2
"""Version of the evidence; 1 was weighed by accounts' age, and has no payers."""


@dataclass(frozen=True, slots=True)
class Payer:
    """What one address paid to the agent's addresses. Days are counted from 1970."""

    address: str
    spent: Mapping[int, int]
    """By day."""
    returned: int = 0
    """What the agent's side sent back."""
    elsewhere: int = 0
    """What it paid to unrelated sellers."""
    is_charge: bool = False
    """At least one payment was an x402 authorisation or an MPP charge, not a plain transfer."""
    sources: tuple[str, ...] = ()
    """Who funded it, and who funded those, nearest first; exchanges are left out."""
    is_own: bool = False
    """It belongs to the agent's side, or was funded by it."""
    resold: Mapping[int, int] = field(default_factory=dict[int, int])
    """What it paid by day for the agent's services to others who resell them. It does not weigh its
    vote: whoever resells a rival's service could pay themselves."""
    counts_as_customer: bool = True
    """False for payments that only our own ledger shows, of an operator tied to the agent."""

    is_pending: bool = False
    """Where its money came from was not read yet: until then it cannot speak for the agent."""

    @property
    def net(self) -> int:
        """What was paid and did not come back."""
        return max(0, sum(self.spent.values()) - self.returned)


@dataclass(frozen=True, slots=True)
class Vote:
    """The latest rating of one address, 0 to 100; the day is None where it could not be read."""

    address: str
    rating: float
    day: int | None


@dataclass(frozen=True, slots=True)
class Reputation:
    """Everything the rules look at."""

    payers: tuple[Payer, ...]
    votes: tuple[Vote, ...]
    day: int
    """As of which it was read."""
    price: int
    """What it usually asks, see `usual_price`; 0 without payments."""


def payer_json(payer: Payer) -> JsonObject:
    """A payer as evidence; what is empty or false is left out."""
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
    """The evidence of the signal, read back."""
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
