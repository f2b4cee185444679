"""What claiming a payment finds: the entry, and what its payer has in flight."""

from dataclasses import dataclass

from assay.payments.model import Entry


@dataclass(frozen=True, slots=True)
class Committed:
    """What a payer's other payments in flight may take, in base units."""

    amount: int = 0
    """Of the entry's asset, fees in it included."""
    fees: int = 0
    """Of the token of the entry's fees, where that is another one."""
    sent: int = 0
    """How many of them may have left the balance already."""
    mark: int = 0
    """Another one when they are other payments, or have moved: equal sums may be of others."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a claim found: the entry, whether it is ours to work on now, and what is in flight."""

    entry: Entry
    is_ours: bool
    committed: Committed
    failures: int
    """Settlements of this payer that failed in the last hour."""
