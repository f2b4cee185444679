"""What wrappers ask of callers, compared."""

from dataclasses import dataclass

_STRICTEST_FIRST = ("deny", None, "throttle", "allow")


@dataclass(frozen=True, slots=True)
class Terms:
    """What a wrapper asks of a caller before it forwards. `price` is in micro-dollars."""

    price: int = 0
    min_score: float | None = None
    """None where no trust is asked for."""
    needs_proof: bool = False
    cold_start: str | None = None
    """What is done with an unproven agent, where trust is asked for."""

    def ask_more_than(self, other: "Terms") -> bool:
        """Whether a caller who meets the other's terms may not meet these."""
        if self.price > other.price:
            return True
        if self.min_score is None:
            return False
        if other.min_score is None or self.min_score > other.min_score:
            return True
        if _STRICTEST_FIRST.index(self.cold_start) < _STRICTEST_FIRST.index(other.cold_start):
            return True
        return self.needs_proof and not other.needs_proof
