"""The attempts of one settlement: whichever of them is mined, it is the payment that is paid."""

from dataclasses import replace
from typing import Final

from assay.payments.outcomes import SettlementAttempt

ATTEMPTS_MAX: Final = 40
"""Hashes after which nothing new is signed for a payment: what is signed is still sent again."""

NONCES_MAX: Final = 12
"""Hashes after which no other nonce is used for a payment: so many of its transactions are mined at
most, whatever nodes say. Enough for a settlement that other processes overtake ten times."""

RENEWED_AFTER_S: Final = (15.0, 60.0, 240.0)
"""Ages of a payment from which another nonce is used where its last is spent and no node shows what
became of it: for the second hash, the third and the fourth. There is no fifth."""


def after(previous: SettlementAttempt, attempt: SettlementAttempt) -> SettlementAttempt:
    """The attempt, remembering every hash of the one it follows."""
    if previous.transaction in {"", attempt.transaction} and not previous.earlier:
        return replace(attempt, earlier=()) if attempt.earlier else attempt
    known = (*previous.earlier, previous.transaction)
    hashes = dict.fromkeys(one for one in known if one and one != attempt.transaction)
    return replace(attempt, earlier=tuple(hashes))


def hashes(attempt: SettlementAttempt) -> tuple[str, ...]:
    """Every hash that may be mined, the newest first."""
    return tuple(one for one in (attempt.transaction, *reversed(attempt.earlier)) if one)


def may_take_another_nonce(attempt: SettlementAttempt, signed: int = 0) -> bool:
    """Whether a transaction with another nonce may be signed; so many are not written down yet."""
    return len(hashes(attempt)) + signed < NONCES_MAX


def may_renew(attempt: SettlementAttempt, age_s: float) -> bool:
    """Whether another nonce may be used where the last is spent and nothing is known of it."""
    done = len(hashes(attempt)) - 1
    return 0 <= done < len(RENEWED_AFTER_S) and age_s >= RENEWED_AFTER_S[done]
