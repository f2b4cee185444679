"""Settles payments of the ledger, and finishes what a crash or an outage left unfinished.

An unknown outcome is never reported as a refusal, and nothing is sent before it is stored.

`Reconciler` finishes what no process works on, without asking for ever. Payments of one network are
asked about together, each network by itself, and no payer's second payment before anybody's first.
Source: ADR 0018.

The chain is asked before anything is said of a payment that served nobody (`find_out`). A
facilitator or a node that saw an authorisation while it was claimed can submit it once the claim
has ended. Its buyer has then paid, and is owed what the claim was for (ADR 0019).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from assay.common.clock import Clock
from assay.common.errors import ServiceError, Unavailable
from assay.common.http_heads import HeaderPairs
from assay.common.tasks import all_results
from assay.payments.finality import Witness
from assay.payments.model import (
    CUT_SHORT,
    Due,
    LedgerEntry,
    PaymentRefused,
    PaymentState,
    SettlementPending,
    StoredResponse,
)
from assay.payments.outcomes import (
    AT_ONCE,
    FIRST_S,
    PaymentOutcome,
    Rejected,
    Settled,
    SettlementAttempt,
    Undecided,
    after,
    is_unused,
)
from assay.payments.ports import PaymentProtocol, ProtocolDependencies
from assay.payments.store import SqlLedgerStore

ASKED_AT_ONCE: Final = 1000
"""Most payments of one question; if there are more, the next ones are asked about concurrently."""

OF_PAYER: Final = 100
"""Payments of one payer in one pass."""

MOVED_AT_ONCE: Final = 8
"""Concurrent changes of the ledger: its other connections are for paying callers."""


PUT_OFF_AT_ONCE: Final = 100
"""Changes in one transaction of the ledger, for which others wait."""

_WAITS: Final = Undecided("it waits to be mined", is_unused=True)


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Asks chains about payments that no process works on, and stores the answers."""

    protocols: Mapping[str, PaymentProtocol]
    needs: ProtocolDependencies
    ledger: SqlLedgerStore
    clock: Clock
    lease: Callable[[], datetime]
    witness: Witness

    async def run(self, network: str, *, is_due_only: bool) -> list[LedgerEntry]:
        """Make one pass over what is due of a network, or all of it; return what has ended."""
        started = self.clock.now()
        due = Due(network, started, started, ASKED_AT_ONCE, OF_PAYER)
        if not is_due_only:
            due = Due(network, started, None, ASKED_AT_ONCE, ASKED_AT_ONCE)
        ended: list[LedgerEntry] = []
        while True:
            leased = await self.ledger.lease_unfinished(due, self.lease())
            if leased:
                found = await self.ask(leased, of_all=not is_due_only)
                ended += (await self.follow(leased, found)).values()
            if len(leased) < ASKED_AT_ONCE:
                return ended

    async def ask(
        self, leased: Sequence[LedgerEntry], *, of_all: bool = False
    ) -> Sequence[PaymentOutcome]:
        """Return outcomes of leased payments of one network; nothing if no node answers.

        A settlement of ours that waits to be mined is not asked about once only the answers for its
        end are left: sending it again shows whether its nonce is used. With `of_all` the nodes are
        asked anyway.
        """
        protocol, now = self.protocols[leased[0].protocol], self.clock.now()
        sent = {one.id for one in leased if not of_all and _is_only_sent(one, protocol, now)}
        asked = [one for one in leased if one.id not in sent]
        try:
            found = iter(await protocol.outcomes(asked, self.needs) if asked else ())
        except Unavailable as error:
            await self._missed(leased, error.detail or error.message)
            return ()
        return [_WAITS if one.id in sent else next(found) for one in leased]

    async def follow(
        self, leased: Sequence[LedgerEntry], found: Sequence[PaymentOutcome]
    ) -> dict[str, LedgerEntry]:
        """Store the answers; return the ids of those that have ended.

        The others are pending again, each with its next look. If no node has answered, nobody asks
        about any payment of the network before that look.
        """
        if not found:
            return {}
        turns = asyncio.Semaphore(MOVED_AT_ONCE)
        pairs = zip(leased, found, strict=True)
        done = await all_results(self._follow(entry, one, turns) for entry, one in pairs)
        waiting = [
            e for e in done if isinstance(e, LedgerEntry) and e.state is PaymentState.PENDING
        ]
        for start in range(0, len(waiting), PUT_OFF_AT_ONCE):
            await self.ledger.put_off(waiting[start : start + PUT_OFF_AT_ONCE])
        for fault in done:
            if isinstance(fault, Exception) and not isinstance(fault, ServiceError):
                raise fault  # it concerns one payment: its lease ends, and it is due again
        ended = (
            e for e in done if isinstance(e, LedgerEntry) and e.state is not PaymentState.PENDING
        )
        return {entry.id: entry for entry in ended}

    async def _missed(self, leased: Sequence[LedgerEntry], problem: str) -> None:
        longest = max((entry.look for entry in leased), key=lambda look: look.misses)
        look = longest.missed(self.clock.now())
        await self.ledger.put_off_all(leased[0], look, problem)

    async def _follow(
        self, entry: LedgerEntry, found: PaymentOutcome, turns: asyncio.Semaphore
    ) -> LedgerEntry | None:
        """Return what an answer leads to: an end, or pending with the next look, to be stored.

        None if another process has moved it meanwhile.
        """
        latest = entry

        async def note(attempt: SettlementAttempt) -> None:
            nonlocal latest
            attempt = after(latest.attempt, attempt)
            moved = await self.ledger.move(latest, PaymentState.SETTLING, attempt=attempt)
            if moved is None:
                raise SettlementPending("Somebody else has taken this payment over.")
            latest = moved

        answers = found.answers if isinstance(found, Undecided) else 0
        if isinstance(found, Undecided) and found.is_unused and entry.attempt.raw:
            protocol = self.protocols[entry.protocol]
            found = await protocol.resend(entry, note, self.needs)
            if protocol.spends_gas:  # ours may have to be replaced: keep its pace
                answers = _more(answers, found)
        found = await self.witness.judged(latest, found, waits=False)
        now = self.clock.now()
        match found:
            case Settled(transaction):
                ended = replace(self.needs.ended(latest, found), transaction=transaction)
                paid = after(latest.attempt, ended)
                async with turns:
                    return await self.ledger.move(
                        latest, PaymentState.SETTLED, attempt=paid, lease_until=now
                    )
            case Rejected(reason):
                failed = self.needs.ended(latest, found)
                async with turns:
                    return await self.ledger.move(
                        latest, PaymentState.FAILED, attempt=failed, reason=reason
                    )
            case Undecided(detail):
                look = entry.look.answered(now, entry.expires_at, answers)
                look = look if latest is entry else look.sent(now)
                return replace(
                    latest,
                    state=PaymentState.PENDING,
                    reason=detail[:500],
                    lease_until=now,
                    look=look,
                )


def _is_only_sent(entry: LedgerEntry, protocol: PaymentProtocol, now: datetime) -> bool:
    """Return whether the answers left are for its end, and ours is only sent until then."""
    is_ours = protocol.spends_gas and bool(entry.attempt.raw)
    return is_ours and now < entry.expires_at and not entry.look.has_left(1)


def _more(answers: int, sent: PaymentOutcome) -> int:
    """Return the answers, with those about our own attempts; 0 if they did not contradict."""
    more = sent.answers if isinstance(sent, Undecided) else 0
    return answers + more if more else 0


LATE_S: Final = 5.0
"""Seconds beyond `work_s` that an answer which is paid for may take: its payment and its claim last
a little longer."""

WORK_SLACK: Final = timedelta(seconds=LATE_S + 3)
"""Seconds of a claim beyond `work_s`: that time, and the difference of two processes' clocks."""


SENT_BEFORE_END: Final = timedelta(seconds=LATE_S)
"""How long an authorisation must be valid for its settlement to be begun again."""


class PaymentPending(SettlementPending):
    """The outcome is unknown; it has the protocol's own headers."""

    def __init__(self, headers: HeaderPairs) -> None:
        super().__init__(
            "The payment's outcome is not known yet: send the same request again, and do not pay.",
            retry_after_s=2,
        )
        self.headers = headers


class Settlement:
    """Moves entries, and the money, towards their end."""

    def __init__(
        self,
        protocols: Mapping[str, PaymentProtocol],
        needs: ProtocolDependencies,
        ledger: SqlLedgerStore,
        clock: Clock,
        lease: timedelta,
        witness: Witness,
    ) -> None:
        self.protocols = protocols
        self._witness = witness
        self.needs = needs
        self.ledger = ledger
        self.clock = clock
        self._lease = lease
        self._reconciler = Reconciler(protocols, needs, ledger, clock, self.lease, witness)

    def may_know_more(self, network: str) -> bool:
        """Return whether another node may show what the asked one does not."""
        return len(self._witness.views(network)) > 1

    def pending(self, entry: LedgerEntry) -> PaymentPending:
        """Return the error of an unknown outcome, to be raised."""
        return PaymentPending(self.protocols[entry.protocol].pending(entry))

    def lease(self, work_s: float = 0.0) -> datetime:
        """Return until when an entry belongs to the process that works on it from now on.

        `work_s`: how long its upstream may work meanwhile; 0 if no upstream is asked.
        """
        work = timedelta(seconds=work_s) + WORK_SLACK if work_s else timedelta(0)
        return self.clock.now() + work + self._lease

    async def settle(self, entry: LedgerEntry) -> LedgerEntry:
        """Take the money of a claimed entry.

        Raises `PaymentRefused` if it was refused, and `PaymentPending` if nobody can say yet.
        """
        latest = entry

        async def note(attempt: SettlementAttempt) -> None:
            nonlocal latest
            latest = await self.moved(latest, PaymentState.SETTLING, attempt=attempt)

        outcome = await self.protocols[entry.protocol].settle(entry, note, self.needs)
        outcome = await self._witness.judged(latest, outcome, waits=True)
        return await self._ended(latest, outcome)

    async def arrived(self, entry: LedgerEntry, transaction: str) -> LedgerEntry:
        """Return a claimed entry whose payer has sent the money before, once it is deep enough.

        Raises `PaymentPending` while it is not.
        """
        found = await self._witness.judged(entry, Settled(transaction), waits=True)
        if isinstance(found, Settled):
            return await self.paid(entry, found)
        sent = await self.moved(
            entry, PaymentState.SETTLING, attempt=SettlementAttempt(transaction)
        )
        return await self._ended(sent, found)

    async def look(self, entry: LedgerEntry, *, every_node: bool = False) -> PaymentOutcome:
        """Return an entry's outcome by the chain alone.

        Use `every_node` before its buyer is refused. Raises `Unavailable` if no node answers.
        """
        protocol = self.protocols[entry.protocol]
        (found,) = await protocol.outcomes([entry], self.needs, every_node=every_node)
        return await self._witness.judged(entry, found, waits=False)

    async def paid(self, entry: LedgerEntry, found: Settled) -> LedgerEntry:
        """Return the entry settled by that transaction, with a lease that is not shortened."""
        attempt = replace(self.needs.ended(entry, found), transaction=found.transaction)
        until = max(entry.lease_until, self.lease())
        return await self.moved(entry, PaymentState.SETTLED, attempt=attempt, lease_until=until)

    async def _ended(self, latest: LedgerEntry, outcome: PaymentOutcome) -> LedgerEntry:
        """Store the result of settling. Raises like `settle`."""
        match outcome:
            case Settled():
                ended = self.needs.ended(latest, outcome)
                paid = replace(ended, transaction=outcome.transaction)
                return await self.moved(
                    latest, PaymentState.SETTLED, attempt=paid, lease_until=self.lease()
                )
            case Rejected():
                attempt = self.needs.ended(latest, outcome)
                await self.moved(
                    latest, PaymentState.FAILED, attempt=attempt, reason=outcome.reason
                )
                message = "The payment could not be settled: the chain shows no transfer of it."
                raise PaymentRefused(outcome.reason, message, latest.attempt.transaction)
            case Undecided():
                now, look, reason = self.clock.now(), latest.look, outcome.detail[:500]
                is_claimed = outcome.is_used and not look.is_used
                if latest.attempt.transaction or look.at is None or is_claimed:
                    look = look.sent(now)
                look = replace(look, is_used=look.is_used or is_claimed)
                put_off = replace(latest, reason=reason, lease_until=now, look=look)
                await self.ledger.put_off([put_off])
                raise self.pending(put_off)

    async def finish(self, entry: LedgerEntry) -> LedgerEntry:
        """Finish an entry that another call began, once it has been paid; its caller is back.

        It asks the chain if the next look is due, and delays nobody otherwise. A settlement that
        was begun and never sent is settled again while it is valid. Raises like `settle`.
        """
        now = self.clock.now()
        is_unsent = _may_be_sent(entry, now)
        if entry.lease_until > now or not (is_unsent or entry.look.is_due(now)):
            raise self.pending(entry)
        leased = await self.moved(entry, entry.state, lease_until=self.lease())
        if is_unsent and not leased.look.has_left(1):
            return await self.settle(leased)
        found = await self._reconciler.ask([leased])
        if is_unsent and found and isinstance(found[0], Undecided) and found[0].is_unused:
            look = leased.look.answered(self.clock.now(), leased.expires_at, found[0].answers)
            return await self.settle(replace(leased, look=look))
        ended = (await self._reconciler.follow([leased], found)).get(entry.id)
        if ended is None:
            raise self.pending(entry)
        if ended.state in {PaymentState.FAILED, PaymentState.REVERSED}:
            raise PaymentRefused(ended.reason, "This payment could not be settled.")
        return ended

    async def reconcile(
        self, *, is_due_only: bool = True, network: str | None = None
    ) -> list[LedgerEntry]:
        """Find outcomes of settlements that no process works on; return those that have ended.

        Without a network, all networks run concurrently. Nothing new is sent except what was signed
        before, or must replace it.
        """
        names = self._witness.networks if network is None else (network,)
        run = self._reconciler.run
        found = await all_results(run(name, is_due_only=is_due_only) for name in names)
        for fault in found:
            if isinstance(fault, Exception):
                raise fault  # when the other networks are done
        return [entry for some in found if isinstance(some, list) for entry in some]

    async def moved(
        self,
        entry: LedgerEntry,
        state: PaymentState,
        *,
        attempt: SettlementAttempt | None = None,
        reason: str = "",
        lease_until: datetime | None = None,
        stored: StoredResponse | None = None,
    ) -> LedgerEntry:
        """Return the moved entry; raises `PaymentPending` if another process has taken it over."""
        if attempt is not None:
            attempt = after(entry.attempt, attempt)
        moved = await self.ledger.move(
            entry, state, attempt=attempt, reason=reason, lease_until=lease_until, stored=stored
        )
        if moved is None:
            raise self.pending(entry)
        return moved


def _may_be_sent(entry: LedgerEntry, now: datetime) -> bool:
    """Return whether nothing of an entry was sent, and its buyer's return may try again.

    Its look is for the chain's word, which a settlement does not need. While no node answers, none
    can be sent either.
    """
    if entry.attempt.transaction or now + SENT_BEFORE_END > entry.expires_at:
        return False
    is_again = not entry.look.misses and now >= entry.updated_at + timedelta(seconds=FIRST_S)
    return is_again or entry.look.is_due(now)


EVERY_NODE: Final = 2
"""What a question to every node counts, of the answers that a payment may cost."""


async def find_out(
    settlement: Settlement, known: LedgerEntry, *, is_refused: bool = False
) -> LedgerEntry | None:
    """Return a free entry as the chain has it; None if its payment may buy now.

    It is settled if the transfer was made. It is released while nobody can say, and is asked about
    less and less often: while few answers are left, only the watcher asks, once its authorisation
    has ended. With `is_refused` every node is asked, because its buyer would be refused if it may
    buy. Raises `PaymentPending` if another process has taken it over meanwhile.
    """
    now = settlement.clock.now()
    if known.state is PaymentState.RELEASED and known.look.at is None:
        return None
    if not known.look.is_due(now) or not known.look.has_left(EVERY_NODE if is_refused else 1):
        return known
    try:
        found = await settlement.look(known, every_node=is_refused)
    except Unavailable as error:
        missed = replace(known, look=known.look.missed(now), lease_until=now)
        reason = error.detail or error.message
        return await _again(settlement, missed, reason)
    if not is_unused(found):
        return await _written(settlement, known, found)
    if is_refused:
        counted = replace(known, look=known.look.due(now, EVERY_NODE), lease_until=now)
        await settlement.moved(counted, PaymentState.RELEASED, reason=known.reason)
    return None


async def _again(settlement: Settlement, known: LedgerEntry, reason: str) -> LedgerEntry:
    """Return the entry, still released. One that cut its call short still counts as a failure."""
    reason = CUT_SHORT if known.reason == CUT_SHORT else reason
    return await settlement.moved(known, PaymentState.RELEASED, reason=reason)


async def _written(
    settlement: Settlement, known: LedgerEntry, found: PaymentOutcome
) -> LedgerEntry | None:
    now = settlement.clock.now()
    match found:
        case Settled(transaction):
            shown = replace(known.attempt, transaction=transaction)
            return await settlement.moved(
                known, PaymentState.SETTLED, attempt=shown, lease_until=now
            )
        case Rejected(reason):  # it will never move, so nothing is left to ask
            ended = replace(known, look=AT_ONCE, lease_until=now)
            await _again(settlement, ended, reason)
            return None
        case Undecided(detail, answers=answers):
            look = known.look.answered(now, known.expires_at, answers)
            open_ = replace(known, look=look, lease_until=now)
            return await _again(settlement, open_, detail)
