"""Chooses among representations by a request's `Accept` header.

Source: RFC 9110, section 12.5.1.
"""

from collections.abc import Sequence
from typing import Final

RANGES_MAX: Final = 32
"""Media ranges that are read; a browser sends ten."""


def preferred(accept: str, offers: Sequence[str]) -> str:
    """Return the offer that `Accept` wants most; of equals the first, and without any the first.

    The most specific range that fits decides an offer's weight. Nothing is refused: a caller that
    wants none of the offers gets the first one.
    """
    ranges = [_weighed(one) for one in accept.split(",")[:RANGES_MAX]]
    weights = [_weight(offer, ranges) for offer in offers]
    best = max(weights)
    return offers[weights.index(best)] if best > 0 else offers[0]


def _weighed(text: str) -> tuple[str, float]:
    media_range, *parameters = (part.strip() for part in text.lower().split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return media_range, _number(value.strip())
    return media_range, 1.0


def _number(text: str) -> float:
    digits = text.replace(".", "", 1)
    if not (digits.isascii() and digits.isdecimal() and len(text) <= len("0.000")):
        return 0.0
    return min(1.0, float(text))


def _weight(offer: str, ranges: Sequence[tuple[str, float]]) -> float:
    kind = offer.partition("/")[0]
    for wanted in (offer, f"{kind}/*", "*/*"):
        weights = [weight for media_range, weight in ranges if media_range == wanted]
        if weights:
            return max(weights)
    return 0.0
