"""Looks at settled payments again until no reorganisation and no lie can take them back.

If a payment's transfer is gone, it is sent again while its authorisation is valid, because it is
the same payment. If it can never come any more, its entry is `reversed` and its revenue taken back.
A payment that ended unpaid is looked at once more after its authorisation's end, because somebody
else may have submitted it. Any number of processes share the looks: each is claimed before it is
taken.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from assay.common.clock import Clock
from assay.common.errors import ServiceError, Unavailable
from assay.common.tasks import all_results
from assay.payments.finality import View, Witness
from assay.payments.model import LOOKS, REOPENED, LedgerEntry, PaymentState, WatchedPayment, since
from assay.payments.outcomes import (
    AT_ONCE,
    PaymentOutcome,
    Rejected,
    Settled,
    SettlementAttempt,
    Undecided,
    after,
    is_unused,
)
from assay.payments.settlement import Settlement
from assay.payments.store import SqlLedgerStore

AGAIN_MIN, AGAIN_MAX = timedelta(seconds=5), timedelta(minutes=10)
"""Time between two looks for a payment that is not shown: half its age, within these."""

LAG: Final = timedelta(seconds=10)
"""How far a node may be behind another one that shows a payment before it is sent to that node
too."""

LOOKED_AT_ONCE: Final = 200
SENT_AT_ONCE: Final = 16


class RecheckPlan(NamedTuple):
    """When an entry is looked at next, if it is still in that state; None: never again."""

    id: str
    state: PaymentState
    at: datetime | None


def plan_of(one: LedgerEntry | WatchedPayment, at: datetime | None) -> RecheckPlan:
    """Return the plan of an entry as it was read."""
    return RecheckPlan(one.id, one.state, at)


class WatchStore(Protocol):
    """When entries are looked at next."""

    async def claim_due(
        self, network: str, now: datetime, until: datetime, limit: int
    ) -> Sequence[WatchedPayment]:
        """Return due entries of the network; for other processes they are due at `until`.

        Those that money came in for go first, except for a share of those that ended unpaid, in
        which payers take turns. Those of `OPEN` are not due until they have settled.
        """
        ...

    async def entries(self, ids: Sequence[str]) -> Sequence[LedgerEntry]:
        """Return entries as they are now."""
        ...

    async def plan(self, plans: Sequence[RecheckPlan]) -> None:
        """Store when they are looked at next; ignore one that has moved meanwhile."""
        ...


class Watcher:
    """Takes the looks that are due."""

    def __init__(
        self, settlement: Settlement, witness: Witness, store: WatchStore, clock: Clock
    ) -> None:
        self._settlement = settlement
        self._ledger: SqlLedgerStore = settlement.ledger
        self._witness = witness
        self._store = store
        self._clock = clock
        self._sending = asyncio.Semaphore(SENT_AT_ONCE)

    async def run(self, network: str) -> list[LedgerEntry]:
        """Look at everything due on a network; return the entries that changed.

        If no node answers, the rest is left to the next pass.
        """
        changed: list[LedgerEntry] = []
        while True:
            now, until = self._clock.now(), self._settlement.lease()
            due = await self._store.claim_due(network, now, until, LOOKED_AT_ONCE)
            found = await self._looks(network, due)
            for fault in found:
                if isinstance(fault, Exception):
                    raise fault  # when the others are done
            changed += [entry for some in found if isinstance(some, list) for entry in some]
            if len(due) < LOOKED_AT_ONCE or None in found:
                return changed

    async def _looks(
        self, network: str, due: Sequence[WatchedPayment]
    ) -> list[list[LedgerEntry] | Exception | None]:
        """Return what has changed; None if no node answers."""
        groups: dict[int, list[WatchedPayment]] = {}
        unpaid = [one for one in due if one.state in REOPENED]
        for one in due:
            if one.state not in REOPENED:
                groups.setdefault(self._turn(network, one), []).append(one)
        looks = [self._look(network, turn, some) for turn, some in groups.items()]
        looks += [self._look_at_unpaid(network, unpaid)] if unpaid else []
        return await all_results(looks)

    def _turn(self, network: str, one: WatchedPayment) -> int:
        """Return the view that looks: they take turns, beginning without the first endpoint."""
        age = self._clock.now() - one.since
        looks = sum(age >= at for at in LOOKS)
        if looks == len(LOOKS):
            looks += int(age / LOOKS[-1])
        return looks % len(self._witness.views(network))

    async def _look(
        self, network: str, turn: int, due: Sequence[WatchedPayment]
    ) -> list[LedgerEntry] | None:
        """Ask one batched question; look at each payment that it does not show by itself."""
        view = self._witness.views(network)[turn]
        try:
            depths = await view.receipts.depths(network, due)
        except Unavailable:
            await self._store.plan([plan_of(one, self._again(one.since)) for one in due])
            return None
        shown, missing, deep = list[RecheckPlan](), list[WatchedPayment](), list[WatchedPayment]()
        for one, depth in zip(due, depths, strict=True):
            if not depth:
                missing.append(one)
            elif self._witness.is_final(network, depth):
                deep.append(one)
            else:
                shown.append(plan_of(one, self._next(one.since)))
        final, hidden = await self._final(network, deep)
        await self._store.plan([*shown, *final])
        entries = await self._entries([*missing, *hidden])
        return await _changed(self._find(entry, view) for entry in entries)

    async def _entries(self, due: Sequence[WatchedPayment]) -> Sequence[LedgerEntry]:
        """Return their entries, of those that have not moved meanwhile."""
        if not due:
            return []
        states = {one.id: one.state for one in due}
        found = await self._store.entries(list(states))
        return [entry for entry in found if entry.state is states[entry.id]]

    async def _look_at_unpaid(
        self, network: str, due: Sequence[WatchedPayment]
    ) -> list[LedgerEntry] | None:
        """Ask every node one question about all of them: what they say together counts."""
        entries = await self._entries(due)
        if not entries:
            return []
        protocol, needs = self._witness.protocol(entries[0]), self._witness.views(network)[0].needs
        try:
            seen_by_nodes = await protocol.outcomes(entries, needs, every_node=True)
        except Unavailable:
            await self._store.plan([plan_of(one, self._again(one.since)) for one in due])
            return None
        pairs = zip(entries, seen_by_nodes, strict=True)
        return await _changed(self._late(entry, found) for entry, found in pairs)

    async def _final(
        self, network: str, deep: Sequence[WatchedPayment]
    ) -> tuple[list[RecheckPlan], list[WatchedPayment]]:
        """Plan the looks of those that one view shows as final; return what others do not show.

        A final payment may be refunded and paid out, and one endpoint's word is not enough for
        that.
        """
        views = self._witness.views(network)
        if not deep or len(views) == 1:
            return [plan_of(one, None) for one in deep], []
        try:
            depths = await views[0].receipts.agreed_depths(network, deep)
        except Unavailable:
            return [plan_of(one, self._next(one.since)) for one in deep], []
        seen_by_nodes = list(zip(deep, depths, strict=True))
        plans = [
            plan_of(one, None if self._witness.is_final(network, depth) else self._next(one.since))
            for one, depth in seen_by_nodes
            if depth
        ]
        return plans, [one for one, depth in seen_by_nodes if not depth]

    async def _find(self, entry: LedgerEntry, view: View) -> LedgerEntry | None:
        """Ask every view about an entry that one does not show; return the entry if it changed."""
        others = [one for one in self._witness.views(entry.network) if one is not view]
        async with self._sending:
            seen_by_nodes = [
                (one, await self._witness.outcome_at(entry, one)) for one in (view, *others)
            ]
            combined = _combined([found for _, found in seen_by_nodes])
            unused = next((one for one, found in seen_by_nodes if is_unused(found)), None)
            if unused is None:
                return await self._written(entry, combined)
            is_shown = isinstance(combined, Settled)
            if is_shown and (self._age(entry) < LAG or entry.attempt.earlier):
                return await self._written(entry, Undecided("one endpoint shows it, one does not"))
            return await self._send_again(entry, unused)

    async def _send_again(self, entry: LedgerEntry, view: View) -> LedgerEntry | None:
        """Send the same authorisation again, by the view that says that it is unused.

        If that is a lie, the contract refuses what was paid already. That costs gas, so what
        another view shows is sent once more at most.
        """
        latest, found = entry, Undecided("its payer sent it, and nobody else can")

        async def note(attempt: SettlementAttempt) -> None:
            nonlocal latest
            if attempt.transaction:  # a transaction of somebody else is not known yet
                latest = await self._settlement.moved(latest, entry.state, attempt=attempt)

        protocol = self._witness.protocol(entry)
        if entry.attempt.raw or entry.protocol == "x402":
            send = protocol.resend if entry.attempt.raw else protocol.settle
            try:
                sent = await send(entry, note, view.needs)
            except Unavailable as error:  # another process may have moved it meanwhile
                sent = Undecided(error.detail or error.message)
            found = sent if isinstance(sent, Settled) else Undecided("sent again")
        return await self._written(latest, found) or (latest if latest is not entry else None)

    async def _written(self, entry: LedgerEntry, found: PaymentOutcome) -> LedgerEntry | None:
        """Return the entry moved by what was found, if that moves it."""
        match found:
            case Settled():
                moved = None
                if found.transaction != entry.attempt.transaction:
                    shown = replace(entry.attempt, transaction=found.transaction)
                    attempt = after(entry.attempt, shown)
                    moved = await self._ledger.move(entry, entry.state, attempt=attempt)
                await self._store.plan([plan_of(moved or entry, self._next(since(entry)))])
                return moved
            case Rejected():
                return await self._ledger.move(entry, PaymentState.REVERSED, reason=found.reason)
            case Undecided():
                await self._store.plan([plan_of(entry, self._again(since(entry)))])
                return None

    async def _late(self, entry: LedgerEntry, found: PaymentOutcome) -> LedgerEntry | None:
        """Return an unpaid payment that was submitted after all, once a node shows its transfer."""
        if entry.state is PaymentState.CLAIMED and entry.lease_until > self._clock.now():
            await self._store.plan([plan_of(entry, entry.lease_until)])  # a process works on it
            return None
        if isinstance(found, Settled):
            shown = replace(entry.attempt, transaction=found.transaction)
            attempt = after(entry.attempt, shown)
            return await self._ledger.move(entry, PaymentState.SETTLED, attempt=attempt)
        is_known = isinstance(found, Rejected)
        if (
            is_known and entry.state is not PaymentState.FAILED
        ):  # it never moves, so nothing is left to ask
            ended = replace(entry, look=AT_ONCE)
            await self._ledger.move(ended, PaymentState.RELEASED, reason=entry.reason)
            return None
        at = None if is_known else self._again(since(entry))
        await self._store.plan([plan_of(entry, at)])
        return None

    def _next(self, paid_at: datetime) -> datetime:
        """Return when a payment that is shown now, and is not final, is looked at next."""
        now = self._clock.now()
        return next((paid_at + at for at in LOOKS if paid_at + at > now), now + LOOKS[-1])

    def _again(self, paid_at: datetime) -> datetime:
        now = self._clock.now()
        return now + min(max((now - paid_at) / 2, AGAIN_MIN), AGAIN_MAX)

    def _age(self, entry: LedgerEntry) -> timedelta:
        return self._clock.now() - since(entry)


async def _changed(looks: Iterable[Awaitable[LedgerEntry | None]]) -> list[LedgerEntry]:
    """Return the entries that looks have changed."""
    found = await all_results(looks)
    for fault in found:
        if isinstance(fault, Exception) and not isinstance(fault, ServiceError):
            raise fault  # a service error is one payment's: its lease ends, and it is due again
    return [entry for entry in found if isinstance(entry, LedgerEntry)]


def _combined(seen_by_nodes: Sequence[PaymentOutcome]) -> PaymentOutcome:
    """Return paid if one shows it, unknown if one cannot say, and ended if all say so."""
    for kind in (Settled, Undecided):
        for found in seen_by_nodes:
            if isinstance(found, kind):
                return found
    return seen_by_nodes[0]
