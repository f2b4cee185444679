"""Attempts to settle a payment, and what became of them."""

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class SettlementAttempt:
    """A settlement about to be sent: written down before it is, so that a crash forgets nothing."""

    transaction: str
    """Its hash, `0x` and 64 digits, or empty when somebody else will make the transaction."""
    raw: str = ""
    """The signed transaction, to be sent again unchanged; empty when there is none of ours."""
    spent: int | None = None
    """What it has cost, in the currency of the entry's gas; None while that is not known."""
    earlier: tuple[str, ...] = ()
    """Hashes of what was sent before it, oldest first: any of them may be mined yet."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The money has arrived."""

    transaction: str
    gas_wei: int | None = field(default=None, compare=False)
    """What our own transaction has cost; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """It will not arrive: a reason of the protocol's own words."""

    reason: str
    gas_wei: int | None = field(default=None, compare=False)
    is_agreed: bool = field(default=False, compare=False)
    """Two endpoints have said so already."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """Nobody can say yet; it may still arrive."""

    detail: str
    is_unused: bool = False
    """The chain says that nothing has moved yet: what was signed may be sent again."""
    answers: int = field(default=0, compare=False)
    """Nodes that have said so; none counts that could not say."""
    is_used: bool = field(default=False, compare=False)
    """The chain says that it is used, or whoever settles for us, and not yet that it has paid."""


PaymentOutcome: TypeAlias = Settled | Rejected | Undecided


def is_unused(found: PaymentOutcome) -> bool:
    """Whether the chain itself says that nothing has moved: else nobody may call it a refusal."""
    return isinstance(found, Undecided) and found.is_unused
