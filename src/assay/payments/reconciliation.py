"""Finishing what a crash, an outage or a full chain left unfinished, without asking for ever.

Payments of one network are asked about together, each network by itself, and no payer's second
payment before anybody's first. Source: ADR 0018.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from assay.common.clock import Clock
from assay.common.errors import ServiceError, Unavailable
from assay.common.tasks import all_results
from assay.payments.finality import Witness
from assay.payments.model import LedgerEntry, PaymentState, SettlementPending
from assay.payments.outcomes import (
    PaymentOutcome,
    Rejected,
    Settled,
    SettlementAttempt,
    Undecided,
    after,
)
from assay.payments.ports import LedgerStore, PaymentProtocol, ProtocolDependencies
from assay.payments.unfinished_payments import Due

AT_ONCE: Final = 1000
"""Payments of one question at most; when there are more, the next are asked about at once."""

OF_PAYER: Final = 100
"""Of one payer in one pass."""

MOVED_AT_ONCE: Final = 8
"""Changes of the ledger side by side: the rest of its connections are for paying callers."""


PUT_OFF_AT_ONCE: Final = 100
"""In one transaction of the ledger, which others wait for."""

_WAITS: Final = Undecided("it waits to be mined", is_unused=True)


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Asks chains about payments that nobody works on, and writes down what they say."""

    protocols: Mapping[str, PaymentProtocol]
    needs: ProtocolDependencies
    ledger: LedgerStore
    clock: Clock
    lease: Callable[[], datetime]
    witness: Witness

    async def run(self, network: str, *, is_due_only: bool) -> list[LedgerEntry]:
        """One pass over what is due of a network, or all of it; those that have ended."""
        started = self.clock.now()
        due = Due(network, started, started, AT_ONCE, OF_PAYER)
        if not is_due_only:
            due = Due(network, started, None, AT_ONCE, AT_ONCE)
        ended: list[LedgerEntry] = []
        while True:
            leased = await self.ledger.lease_unfinished(due, self.lease())
            if leased:
                found = await self.ask(leased, of_all=not is_due_only)
                ended += (await self.follow(leased, found)).values()
            if len(leased) < AT_ONCE:
                return ended

    async def ask(
        self, leased: Sequence[LedgerEntry], *, of_all: bool = False
    ) -> Sequence[PaymentOutcome]:
        """What became of leased payments of one network; nothing where no node answers.

        Of a settlement of ours that waits to be mined no node is asked any more once only those
        answers are left that are kept for its end: what is sent again says whether its nonce is
        used. `of_all`: they are asked of that, too.
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
        """Write down what was answered; those that have ended, by their ids.

        The others are pending again, each with its next look. When no node has answered, nobody
        asks about any payment of the network before that.
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
                raise fault  # a service error is one payment's: its lease ends, and it is due again
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
        """Where an answer leads: an end, or pending with the next look, yet to be written.

        None when somebody else has moved it meanwhile.
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
            if protocol.spends_gas:  # ours may have to be replaced: it keeps its pace
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
    """Whether what is left of a payment's answers is for its end, and ours is sent until then."""
    is_ours = protocol.spends_gas and bool(entry.attempt.raw)
    return is_ours and now < entry.expires_at and not entry.look.has_left(1)


def _more(answers: int, sent: PaymentOutcome) -> int:
    """With those that nodes gave of our own attempts; 0 where they have not contradicted."""
    more = sent.answers if isinstance(sent, Undecided) else 0
    return answers + more if more else 0
