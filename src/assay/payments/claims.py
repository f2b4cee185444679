"""What claiming a payment finds: the entry, and what its payer has in flight."""

from dataclasses import dataclass
from typing import Final

from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.recheck_schedule import Look

CUT_SHORT: Final = "cut_short"
"""Why a payment was released whose end left the upstream less than its time."""


@dataclass(frozen=True, slots=True)
class InFlightAmount:
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
class PaymentClaim:
    """What a claim found: the entry, whether it is ours to work on now, and what is in flight."""

    entry: LedgerEntry
    is_ours: bool
    committed: InFlightAmount
    failures: int
    """Settlements of this payer that failed, and calls that were `CUT_SHORT`, in the last hour."""


@dataclass(slots=True)
class PaymentSighting:
    """What the chain has shown of a claimed payment; written by what verifies it."""

    was_unused: bool = False
    """It was unused after it had come here: a transfer made since pays for what was claimed.

    One that was used before proves nothing: anybody can read it on the chain and present it."""
    may_have_moved: bool = False
    """The chain says that it is used, or somebody who can submit it has been shown it."""
    is_used: bool = False
    """What the chain said last."""
    answers: int = 0
    """Nodes that were asked what became of it, and decided nothing."""

    def read(self, *, is_used: bool) -> None:
        """Note what the chain says now."""
        self.is_used = is_used
        self.was_unused = self.was_unused or not is_used
        self.may_have_moved = self.may_have_moved or is_used


def carried_look(known: LedgerEntry) -> Look:
    """The look of a new claim on an entry nobody works on: that it was seen unused stays known."""
    at = known.lease_until if known.state is PaymentState.CLAIMED else known.look.at
    return known.look.due(at)
