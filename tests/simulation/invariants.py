"""What must hold after every step: checked whenever the ledger, the chain or a caller is told.

Nothing else changes what they speak of, so that is after every step.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from assay.payments.model import SPENT, TRANSITIONS, LedgerEntry, PaymentState
from assay.payments.outcomes import NONCES_MAX
from assay.payments.ports import Authorization
from tests.simulation.chain import Chain, Nonce, Use
from tests.simulation.payers import Purchase
from tests.simulation.process import Reply
from tests.support.fakes.ledger import MemoryLedgerStore

PAID = frozenset({PaymentState.SETTLED, PaymentState.DELIVERED})
OPEN = frozenset({PaymentState.SETTLING, PaymentState.PENDING})
REFUSED = frozenset({PaymentState.FAILED, PaymentState.RELEASED, PaymentState.REVERSED})
SKEW = timedelta(seconds=3)
"""By how much the clocks of two processes differ at most."""


SEEN_BLOCKS = 16
"""How deep a block is that every node shows."""


class Violation(AssertionError):
    """An invariant does not hold; the message says which and where."""


@dataclass(slots=True)
class Invariants:
    """Watches one world. The first violation is kept; whoever caused it goes on."""

    chain: Chain
    disk: MemoryLedgerStore
    ours: frozenset[str]
    """Who settles for us: our key and our facilitator."""
    payee: str
    say: Callable[[str], None]
    violation: Violation | None = None
    owed: set[Nonce] = field(default_factory=set[Nonce])
    """Submitted by strangers who were shown them here: paid for all the same."""
    _noted: dict[Nonce, set[str]] = field(default_factory=dict[Nonce, set[str]])
    _nonces: dict[Nonce, set[int]] = field(default_factory=dict[Nonce, set[int]])
    _begun: set[Nonce] = field(default_factory=set[Nonce])
    _working: dict[str, datetime] = field(default_factory=dict[str, datetime])

    def broken(self, what: str) -> None:
        if self.violation is None:
            self.say(f"VIOLATION {what}")
            self.violation = Violation(what)

    def moved(self, before: LedgerEntry | None, row: LedgerEntry) -> None:
        """A row of the ledger was written."""
        whose = row.payer, row.nonce
        was = None if before is None else before.state
        self.say(f"ledger {row.nonce[-4:]} {was} -> {row.state} {row.reason}")
        if row.attempt.raw:
            self._noted.setdefault(whose, set()).add(row.attempt.raw)
        if row.state in OPEN | PAID:  # what a stranger's sending has paid may have to be sent again
            self._begun.add(whose)
        if was in PAID and row.state not in PAID and row.state is not PaymentState.REVERSED:
            self.broken(f"a payment that was {was} became {row.state}")
        if row.state in PAID and was not in PAID and not self._was_paid(row):
            self.broken(f"{row.state} without the money")
        use = self._use(row)
        is_unwound = whose in self.chain.unwound  # since somebody looked, it may be
        if row.state in REFUSED and was is not row.state and use is not None and not is_unwound:
            is_ours = use.sender in self.ours
            # A stranger's sending may be in a block that the nodes asked have not seen.
            is_seen = whose not in self.owed or self._is_deep(use)
            if is_ours or (row.state is PaymentState.FAILED and is_seen):
                self.broken(f"{row.state} ({row.reason}) though it was paid")
        if was is not None and row.state not in TRANSITIONS[was]:
            self.broken(f"{was} became {row.state}, which the table of states does not have")

    def sent(self, signed: Authorization, raw: str, nonce: int) -> None:
        """A settlement of ours has reached a node."""
        nonces = self._nonces.setdefault((signed.payer, signed.nonce), set())
        nonces.add(nonce)
        if len(nonces) > NONCES_MAX:
            self.broken(f"{len(nonces)} transactions for one payment")
        if raw not in self._noted.get((signed.payer, signed.nonce), set()):
            self.broken("sent before it was written down")

    def asked(self, signed: Authorization) -> None:
        """A facilitator was asked to settle."""
        if (signed.payer, signed.nonce) not in self._begun:
            self.broken("a facilitator was asked before it was written down")

    def mined(self) -> None:
        """A block, or a reorganisation: money on chain = settled + pending that is there."""
        rows = {(row.payer, row.nonce): row for row in self.disk.rows.values()}
        used = self.chain.state.used
        on_chain = 0
        for whose, use in used.items():
            if use.to != self.payee:
                continue
            on_chain += use.value
            row = rows.get(whose)
            if use.sender not in self.ours:
                continue
            if row is None or row.state not in PAID | OPEN:
                said = "no row" if row is None else f"{row.state} ({row.reason})"
                if whose not in self.chain.unwound:
                    self.broken(f"money was taken for a payment that is {said}")
        if on_chain != self.chain.state.balances.get(self.payee, 0):
            self.broken("the chain's own sums are wrong")

    def asked_upstream(self, row: LedgerEntry | None, now: datetime) -> None:
        """Somebody begins to work on a payment."""
        if row is None:
            self.broken("the upstream is asked for what nobody has claimed")
        elif self._working.get(row.id, now) > now + SKEW:
            self.broken("two work on one payment")
        else:
            self._working[row.id] = row.lease_until

    def upstream_ended(self, row: LedgerEntry | None) -> None:
        """And ends."""
        if row is not None:
            self._working.pop(row.id, None)

    def answered(self, purchase: Purchase, reply: Reply, url: str, *, is_thief: bool) -> None:
        """Somebody was told something of what he asked for at an address."""
        self.say(f"reply {purchase.name} {reply.status} {reply.code} {reply.reason}")
        is_buyer = not is_thief and url == purchase.url
        is_owed = is_buyer and self._is_long_paid(purchase.signed)
        if reply.status == 402 and is_owed:
            self.broken(f"paid long ago, and told {reply.reason}")
        if reply.status != 200:
            return
        if is_thief:
            self.broken("somebody else was handed what a payment bought")
        if reply.body != url.encode():
            self.broken("the answer is that of another request")
        signed = purchase.signed
        uses = self.chain.ever_paid.get((signed.payer, signed.nonce), [])
        if not any((use.to, use.value) == (signed.to, signed.value) for use in uses):
            self.broken("an answer was free")

    def ended(self, purchases: list[Purchase]) -> None:
        """Faults have stopped, and there was time."""
        for problem in self.unsettled():
            self.broken(problem)
        for purchase in purchases:
            self._ended(purchase)

    def unsettled(self) -> Iterator[str]:
        """What is still wrong with books that may yet be put right."""
        for row in self.disk.rows.values():
            use = self._use(row)
            if row.state in OPEN:
                yield f"a payment is {row.state} for ever: {row.reason}"
            if row.state in PAID and use is None:
                yield f"{row.state}, and the money is not there"
            is_charged = use is not None and self._is_bought(use, (row.payer, row.nonce))
            unpaid = REFUSED | {PaymentState.CLAIMED}
            is_owed = is_charged and not self._is_undone(row)
            if row.state in unpaid and is_owed:
                yield f"charged, and {row.state} ({row.reason})"

    def _ended(self, purchase: Purchase) -> None:
        signed = purchase.signed
        use = self.chain.state.used.get((signed.payer, signed.nonce))
        whose = signed.payer, signed.nonce
        was_charged = use is not None and self._is_bought(use, whose) and use.to == self.payee
        if not purchase.is_patient or (signed.payer, signed.nonce) in self.chain.unwound:
            return
        if purchase.last is None or purchase.last.status not in {200, 402}:
            self.broken(f"no answer ever: {purchase.last}")
        elif was_charged and purchase.last.status != 200:
            self.broken(f"charged, and told {purchase.last.reason}")

    def _is_bought(self, use: Use, whose: Nonce) -> bool:
        """Whether it was used for what was claimed here, by us or by who was shown it here."""
        return use.sender in self.ours or whose in self.owed

    def _is_long_paid(self, signed: Authorization) -> bool:
        """Whether a stranger's sending has paid, so deep that no node is behind it."""
        whose = signed.payer, signed.nonce
        use = self.chain.state.used.get(whose)
        if use is None or whose not in self.owed or whose in self.chain.unwound:
            return False
        # One that a facilitator refused to settle is looked at after its authorisation has ended.
        if any(
            r.state is PaymentState.FAILED
            for r in self.disk.rows.values()
            if r.nonce == signed.nonce
        ):
            return False
        return self._is_deep(use) and use.to == self.payee

    def _is_deep(self, use: Use) -> bool:
        receipt = self.chain.receipt(use.transaction)
        block = None if receipt is None else int(str(receipt["blockNumber"]), 16)
        return block is not None and self.chain.head.number - block > SEEN_BLOCKS

    def _is_undone(self, row: LedgerEntry) -> bool:
        """Whether a reorganisation has taken back what refused it: that is looked at no more."""
        return row.reason in SPENT and (row.payer, row.nonce) in self.chain.unwound

    def _use(self, row: LedgerEntry) -> Use | None:
        """The transfer that paid this row, on the chain as it is now."""
        use = self.chain.state.used.get((row.payer, row.nonce))
        pays = use is not None and (use.to, use.value) == (row.pay_to, row.amount)
        return use if pays else None

    def _was_paid(self, row: LedgerEntry) -> bool:
        uses = self.chain.ever_paid.get((row.payer, row.nonce), [])
        return any((use.to, use.value) == (row.pay_to, row.amount) for use in uses)
