"""What became of a payment, what its attempts cost, and when the chain is asked again. Pure.

Whichever attempt of a settlement is mined, it is the payment that is paid. Waits between looks at
the chain grow, so that a payment nobody can decide costs a handful of questions an hour; they are
kept with the payment, so that every process and every start goes on from them. Source: ADR 0018.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias


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
    """The chain or the facilitator says that it is used, and not yet that it has paid."""


PaymentOutcome: TypeAlias = Settled | Rejected | Undecided


def is_unused(found: PaymentOutcome) -> bool:
    """Whether the chain itself says that nothing has moved: else nobody may call it a refusal."""
    return isinstance(found, Undecided) and found.is_unused


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


FIRST_S: Final = 2.0
FACTOR: Final = 7.0
MOST_S: Final = 600.0
"""Waits between looks that were answered: 2, 14 and 98 seconds, then ten minutes."""

MISSED_FIRST_S: Final = 5.0
MISSED_FACTOR: Final = 2.0
MISSED_MOST_S: Final = 60.0
"""Waits while no node answers: 5, 10, 20 and 40 seconds, then a minute."""

ANSWERS_MAX: Final = 5
AT_END: Final = 2
"""Answers about a payment that nodes give at most while they can decide it: of these the last are
kept for its end, when two have to agree. Each endpoint beyond two adds one."""

LATE_S: Final = 15.0
"""After the end of an authorisation: by then a block is younger than it, on chains that stand."""

_GROWS_MAX = 16


@dataclass(frozen=True, slots=True)
class Look:
    """The next look at the chain for a payment."""

    at: datetime | None = None
    """Not before this moment; None: at once."""
    questions: int = 0
    """Answers of nodes that decided nothing; one question is for many at once."""
    misses: int = 0
    """Looks in a row that no node answered."""
    is_used: bool = False
    """The payment is used, by what was shown or claimed, though not yet whether it has paid: from
    now on its looks alone ask the chain."""

    def is_due(self, now: datetime) -> bool:
        """Whether the chain may be asked now."""
        return self.at is None or self.at <= now

    def due(self, at: datetime | None, answers: int = 0) -> "Look":
        """The one at another moment, after so many answers more that decided nothing."""
        return replace(self, at=at, questions=self.questions + answers, misses=0)

    def sent(self, now: datetime) -> "Look":
        """The one after something new went out: its answer may be another one soon."""
        return replace(self, at=now + timedelta(seconds=FIRST_S))

    def has_left(self, answers: int) -> bool:
        """Whether so many answers more leave what is kept for the payment's end."""
        return self.questions + answers + AT_END <= ANSWERS_MAX

    def answered(self, now: datetime, expires_at: datetime, answers: int = 1) -> "Look":
        """The one after answers that decided nothing, in time for the payment's own end.

        `answers`: of how many nodes; 0 where one cannot say, and has to be asked again before.
        """
        wait_s = _grown(FIRST_S, FACTOR, self.questions, MOST_S)
        at, end = now + timedelta(seconds=wait_s), expires_at + timedelta(seconds=LATE_S)
        after = self.due(at, max(answers, 1))
        is_spent = answers > 0 and not after.has_left(answers)
        return replace(after, at=end) if now < end and (is_spent or end < at) else after

    def missed(self, now: datetime) -> "Look":
        """The one after a question that no node answered."""
        wait_s = _grown(MISSED_FIRST_S, MISSED_FACTOR, self.misses, MISSED_MOST_S)
        return replace(self, at=now + timedelta(seconds=wait_s), misses=self.misses + 1)


AT_ONCE: Final = Look()
"""The look of a payment that the chain was not asked about yet."""


def _grown(first_s: float, factor: float, steps: int, most_s: float) -> float:
    return min(first_s * factor ** min(steps, _GROWS_MAX), most_s)
