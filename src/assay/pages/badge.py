"""The badge: a small picture of a grade that other sites may show. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from assay.pages.views import TONES

NOT_RATED: Final = "not rated"
EXPIRED: Final = "expired"

_COLOURS: Final = {"good": "#0f6b3d", "fair": "#8a5a00", "bad": "#a3211c", "none": "#565e64"}
_CHAR, _PAD = 7, 8
"""Width of a character of the badge's font at 11 px, generously, and of the space beside it."""


@dataclass(frozen=True, slots=True)
class Badge:
    """What a badge shows, and its measures in pixels."""

    label: str
    value: str
    colour: str
    label_width: int
    value_width: int

    @property
    def width(self) -> int:
        """Return the width of the whole badge."""
        return self.label_width + self.value_width


def badge(tier: str | None, valid_until: datetime | None, now: datetime) -> Badge:
    """Return the badge of a grade; without one it says so, and after its end it is expired."""
    value, tone = NOT_RATED, "none"
    if tier is not None and valid_until is not None:
        is_over = now > valid_until
        value, tone = (EXPIRED, "none") if is_over else (tier, TONES[tier])
    label = "Assay"
    return Badge(
        label,
        value,
        _COLOURS[tone],
        len(label) * _CHAR + 2 * _PAD,
        len(value) * _CHAR + 2 * _PAD,
    )
