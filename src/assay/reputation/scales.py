"""Converts feedback values to a scale of 0 to 100. Pure.

Source: EIP-8004, "Reputation Registry": tags are free, only value and decimals are mandatory, and a
few tags have scales of their own.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType

from assay.registries.model import Feedback

_LOW, _HALF, _HIGH = Decimal(0), Decimal(50), Decimal(100)

Scale = Callable[[Decimal], Decimal | None]


def rating_of(feedback: Feedback) -> float | None:
    """Return the rating, 0 to 100; None if it is not an opinion (revenues) or off its scale.

    Negative values are bad on every scale; a tag without its own scale is read as 0 to 100.
    """
    if feedback.is_scored:
        return None if feedback.score is None else float(feedback.score)
    found = _SCALES.get(feedback.tag1.strip().lower(), _out_of_100)(feedback.value)
    return None if found is None else float(min(_HIGH, max(_LOW, found)))


def _out_of_100(value: Decimal) -> Decimal | None:
    return None if value > _HIGH else value


def _yes_or_no(value: Decimal) -> Decimal | None:
    return None if value > 1 else value * _HIGH


def _milliseconds(value: Decimal) -> Decimal:
    """Rate 0 ms as 100 and ten seconds as 0; a negative time is invalid, and bad."""
    return _LOW if value < 0 else _HIGH - value / 100


def _blocks(value: Decimal) -> Decimal:
    """Subtract ten points for every block behind."""
    return _LOW if value < 0 else _HIGH - value * 10


def _yield(value: Decimal) -> Decimal:
    """Rate percent, whatever the period: a loss of 20 is 0, a gain of 20 is 100."""
    return _HALF + value * Decimal("2.5")


def _no_opinion(value: Decimal) -> None:
    del value


_SCALES: Mapping[str, Scale] = MappingProxyType(
    {
        "starred": _out_of_100,
        "uptime": _out_of_100,
        "successrate": _out_of_100,
        "reachable": _yes_or_no,
        "ownerverified": _yes_or_no,
        "responsetime": _milliseconds,
        "blocktimefreshness": _blocks,
        "tradingyield": _yield,
        "revenues": _no_opinion,
    }
)
