"""What wrappers ask of callers, compared."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Terms:
    """What a wrapper asks of a caller before it forwards. `price` is in micro-dollars."""

    price: int = 0
    min_score: float | None = None
    """None where no trust is asked for."""
    needs_proof: bool = False

    def ask_more_than(self, other: "Terms") -> bool:
        """Whether a caller who meets the other's terms may not meet these."""
        if self.price > other.price:
            return True
        if self.min_score is None:
            return False
        if other.min_score is None or self.min_score > other.min_score:
            return True
        return self.needs_proof and not other.needs_proof
