"""What settling a payment costs us, as its row of the ledger says."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

GasPayer: TypeAlias = Literal["", "free", "shared", "prepaid"]
"""Whose budget bears the gas: nobody's (we send nothing), the account's free one, that and the one
of all self-registered accounts, or what the account has prepaid."""


@dataclass(frozen=True, slots=True)
class Gas:
    """In billionths of a currency."""

    payer: GasPayer = ""
    currency: str = ""
    """`usd`, or the id of the network whose coin it is."""
    reserved: int = 0
    """The most that settling was expected to cost when the payment was claimed."""
    spent: int | None = None
    """What it has cost; None while that is not known."""


NO_GAS: Final = Gas()
