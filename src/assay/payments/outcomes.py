"""The outcome of a payment, the cost of its attempts, and when the chain is asked next. Pure.

Whichever attempt of a settlement is mined, the payment is paid. Waits between looks at the chain
grow, so a payment that nobody can decide costs a few questions an hour. They are stored with the
payment, so every process and every start continues from them. Source: ADR 0018.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class SettlementAttempt:
    """A settlement that is about to be sent: it is stored first, so that a crash loses nothing."""

    transaction: str
    """Its hash, `0x` and 64 digits; empty if somebody else makes the transaction."""
    raw: str = ""
    """The signed transaction, to be sent again unchanged; empty if it is not ours."""
    spent: int | None = None
    """Its cost in the currency of the entry's gas; None while that is unknown."""
    earlier: tuple[str, ...] = ()
    """Hashes that were sent before it, oldest first: any of them may still be mined."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The money has arrived."""

    transaction: str
    gas_wei: int | None = field(default=None, compare=False)
    """The cost of our own transaction; None if that is unknown."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The money will not arrive; `reason` is one of the protocol's words."""

    reason: str
    gas_wei: int | None = field(default=None, compare=False)
    is_agreed: bool = field(default=False, compare=False)
    """Whether two endpoints have said so already."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """Nobody can say yet; the money may still arrive."""

    detail: str
    is_unused: bool = False
    """The chain says that nothing has moved yet: what was signed may be sent again."""
    answers: int = field(default=0, compare=False)
    """Nodes that have said so; a node that could not say does not count."""
    is_used: bool = field(default=False, compare=False)
    """The chain or the facilitator says that it is used, but not yet that it has paid."""


PaymentOutcome: TypeAlias = Settled | Rejected | Undecided


def is_unused(found: PaymentOutcome) -> bool:
    """Return whether the chain itself says that nothing has moved: only then is it a refusal."""
    return isinstance(found, Undecided) and found.is_unused


ATTEMPTS_MAX: Final = 40
"""Hashes after which nothing new is signed for a payment; the last one is still sent again."""

NONCES_MAX: Final = 12
"""Hashes after which no other nonce is used for a payment. At most so many of its transactions are
mined, whatever nodes say. It suffices for a settlement that other processes overtake ten times."""

RENEWED_AFTER_S: Final = (15.0, 60.0, 240.0)
"""Ages of a payment from which another nonce is used if its last one is spent and no node shows its
receipt: for the second, the third and the fourth hash. There is no fifth."""


def after(previous: SettlementAttempt, attempt: SettlementAttempt) -> SettlementAttempt:
    """Return the attempt with every hash of the one it follows."""
    if previous.transaction in {"", attempt.transaction} and not previous.earlier:
        return replace(attempt, earlier=()) if attempt.earlier else attempt
    known = (*previous.earlier, previous.transaction)
    hashes = dict.fromkeys(one for one in known if one and one != attempt.transaction)
    return replace(attempt, earlier=tuple(hashes))


def hashes(attempt: SettlementAttempt) -> tuple[str, ...]:
    """Return every hash that may be mined, the newest first."""
    return tuple(one for one in (attempt.transaction, *reversed(attempt.earlier)) if one)


def may_take_another_nonce(attempt: SettlementAttempt, signed: int = 0) -> bool:
    """Return whether a transaction with another nonce may be signed."""
    return len(hashes(attempt)) + signed < NONCES_MAX


def may_renew(attempt: SettlementAttempt, age_s: float) -> bool:
    """Return whether another nonce may be used if the last is spent and nothing is known of it."""
    done = len(hashes(attempt)) - 1
    return 0 <= done < len(RENEWED_AFTER_S) and age_s >= RENEWED_AFTER_S[done]


GasPayer: TypeAlias = Literal["", "free", "shared", "prepaid"]
"""The budget that bears the gas: nobody's (we send nothing), the account's free one, that and the
one of all self-registered accounts, or the account's prepaid gas."""


@dataclass(frozen=True, slots=True)
class Gas:
    """Gas in billionths of a currency."""

    payer: GasPayer = ""
    currency: str = ""
    """`usd`, or the id of the network whose coin it is."""
    reserved: int = 0
    """The most that settling was expected to cost when the payment was claimed."""
    spent: int | None = None
    """Its cost; None while that is unknown."""


NO_GAS: Final = Gas()


FIRST_S: Final = 2.0
FACTOR: Final = 7.0
MOST_S: Final = 600.0
"""Waits between answered looks: 2, 14 and 98 seconds, then ten minutes."""

MISSED_FIRST_S: Final = 5.0
MISSED_FACTOR: Final = 2.0
MISSED_MOST_S: Final = 60.0
"""Waits while no node answers: 5, 10, 20 and 40 seconds, then a minute."""

ANSWERS_MAX: Final = 5
AT_END: Final = 2
"""Most answers of nodes about a payment while they can decide it. The last ones are reserved for
its end, when two nodes must agree. Each endpoint beyond two adds one."""

LATE_S: Final = 15.0
"""Seconds after the end of an authorisation: by then a block is younger than it, also on slow
chains."""

_GROWS_MAX = 16


@dataclass(frozen=True, slots=True)
class Look:
    """The next look at the chain for a payment."""

    at: datetime | None = None
    """Not before this moment; None: at once."""
    questions: int = 0
    """Answers of nodes that decided nothing; one question covers many payments."""
    misses: int = 0
    """Consecutive looks that no node answered."""
    is_used: bool = False
    """The payment is used, as was shown or claimed, but nobody knows yet whether it has paid. From
    now on only its looks ask the chain."""

    def is_due(self, now: datetime) -> bool:
        """Return whether the chain may be asked now."""
        return self.at is None or self.at <= now

    def due(self, at: datetime | None, answers: int = 0) -> "Look":
        """Return the look at another moment, after so many more undecided answers."""
        return replace(self, at=at, questions=self.questions + answers, misses=0)

    def sent(self, now: datetime) -> "Look":
        """Return the look after something new was sent: its answer may differ soon."""
        return replace(self, at=now + timedelta(seconds=FIRST_S))

    def has_left(self, answers: int) -> bool:
        """Return whether so many more answers leave those that are reserved for its end."""
        return self.questions + answers + AT_END <= ANSWERS_MAX

    def answered(self, now: datetime, expires_at: datetime, answers: int = 1) -> "Look":
        """Return the look after undecided answers, in time for the payment's own end.

        `answers`: the number of nodes; 0 if one could not say, and must be asked again.
        """
        wait_s = _grown(FIRST_S, FACTOR, self.questions, MOST_S)
        at, end = now + timedelta(seconds=wait_s), expires_at + timedelta(seconds=LATE_S)
        after = self.due(at, max(answers, 1))
        is_spent = answers > 0 and not after.has_left(answers)
        return replace(after, at=end) if now < end and (is_spent or end < at) else after

    def missed(self, now: datetime) -> "Look":
        """Return the look after a question that no node answered."""
        wait_s = _grown(MISSED_FIRST_S, MISSED_FACTOR, self.misses, MISSED_MOST_S)
        return replace(self, at=now + timedelta(seconds=wait_s), misses=self.misses + 1)


AT_ONCE: Final = Look()
"""The look of a payment that the chain was not asked about yet."""


def _grown(first_s: float, factor: float, steps: int, most_s: float) -> float:
    return min(first_s * factor ** min(steps, _GROWS_MAX), most_s)
