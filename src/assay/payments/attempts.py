"""The attempts of one settlement: whichever of them is mined, it is the payment that is paid."""

from dataclasses import replace
from typing import Final

from assay.payments.outcomes import Attempt

ATTEMPTS_MAX: Final = 40
"""Hashes after which nothing new is signed for a payment: what is signed is still sent again."""


def after(previous: Attempt, attempt: Attempt) -> Attempt:
    """The attempt, remembering every hash of the one it follows."""
    known = (*previous.earlier, previous.transaction)
    hashes = dict.fromkeys(one for one in known if one and one != attempt.transaction)
    return replace(attempt, earlier=tuple(hashes))


def hashes(attempt: Attempt) -> tuple[str, ...]:
    """Every hash that may be mined, the newest first."""
    return tuple(one for one in (attempt.transaction, *reversed(attempt.earlier)) if one)
