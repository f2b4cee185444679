"""Settled payments looked at again, until no reorganisation and no lie can take them back.

A payment whose transfer is gone is sent again while its authorisation is good, for it is the same
payment; when it can never come any more, its entry is `reversed` and its revenue taken back. Any
number of processes share the looks: each is claimed before it is taken.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from typing import Protocol as Port

from assay.kit.clock import Clock
from assay.kit.errors import ServiceError, Unavailable
from assay.kit.tasks import all_results
from assay.payments.attempts import after
from assay.payments.model import Entry, State
from assay.payments.outcomes import Attempt, Outcome, Rejected, Settled, Undecided
from assay.payments.ports import LedgerStore
from assay.payments.settlement import Settlement
from assay.payments.witness import View, Witness

LOOKS: Final = (timedelta(seconds=5), timedelta(minutes=3), timedelta(minutes=25))
"""Ages of a payment at which it is looked at; then every 25 minutes until it is final. Five seconds
are two blocks of Base; after three minutes its batch is on Ethereum, after 25 final (ADR 0019)."""

ENDED: Final = timedelta(seconds=130)
"""How long after its authorisation has ended a failed payment is looked at once more: the slack of
a chain's clock, and a little."""

SPENT: Final = frozenset(
    {"authorization_cancelled", "authorization_used_elsewhere", "transaction-failed"}
)
"""Reasons after which nobody can submit it any more: x402's nonce is used, MPP's too."""

AGAIN_MIN, AGAIN_MAX = timedelta(seconds=5), timedelta(minutes=10)
"""Between two looks for a payment that is not shown: half its age, within these."""

LAG: Final = timedelta(seconds=10)
"""How long a node may lag behind another that shows a payment, before it is sent to it as well."""

LOOKED_AT_ONCE: Final = 200
SENT_AT_ONCE: Final = 16

Plan = tuple[str, datetime | None]
"""An entry's id, and when it is looked at next; None: never again."""


class WatchStore(Port):
    """When entries are looked at next."""

    async def claim_due(self, now: datetime, until: datetime, at_most: int) -> Sequence[Entry]:
        """Entries that are due, longest first; to other processes they are due at `until`."""
        ...

    async def plan(self, plans: Sequence[Plan]) -> None:
        """Write down when they are looked at next."""
        ...


def first_look(entry: Entry) -> datetime | None:
    """When an entry is looked at that has just moved; None for one that has ended."""
    now = entry.updated_at
    if entry.state is State.FAILED:  # whoever holds its authorisation may still submit it
        is_good = now < entry.expires_at and entry.reason not in SPENT
        return entry.expires_at + ENDED if is_good else None
    return now + LOOKS[0] if entry.has_paid else None


class Watcher:
    """Takes the looks that are due."""

    def __init__(
        self, settlement: Settlement, witness: Witness, store: WatchStore, clock: Clock
    ) -> None:
        self._settlement = settlement
        self._ledger: LedgerStore = settlement.ledger
        self._witness = witness
        self._store = store
        self._clock = clock
        self._sending = asyncio.Semaphore(SENT_AT_ONCE)

    async def run(self) -> list[Entry]:
        """Look at what is due; the entries that changed."""
        now = self._clock.now()
        due = await self._store.claim_due(now, self._settlement.lease(), LOOKED_AT_ONCE)
        groups: dict[tuple[str, int], list[Entry]] = {}
        for entry in due:
            groups.setdefault((entry.network, self._turn(entry)), []).append(entry)
        found = await all_results(
            self._look(network, turn, entries) for (network, turn), entries in groups.items()
        )
        for fault in found:
            if isinstance(fault, Exception):
                raise fault  # once the other networks are done
        return [entry for some in found if not isinstance(some, Exception) for entry in some]

    def _turn(self, entry: Entry) -> int:
        """Which view looks: they take turns, the one without the first endpoint begins."""
        views = self._witness.views(entry.network)
        looks = sum(self._age(entry) >= at for at in LOOKS)
        if looks == len(LOOKS):
            looks += int(self._age(entry) / LOOKS[-1])
        return looks % len(views)

    async def _look(self, network: str, turn: int, entries: Sequence[Entry]) -> list[Entry]:
        """One batched question; whatever it does not show is looked at by itself."""
        view = self._witness.views(network)[turn]
        try:
            depths = await view.receipts.depths(network, entries)
        except Unavailable:
            await self._store.plan([(entry.id, self._again(entry)) for entry in entries])
            return []
        shown, missing = list[Plan](), list[Entry]()
        for entry, depth in zip(entries, depths, strict=True):
            if depth and entry.has_paid:
                is_final = self._witness.is_final(network, depth)
                shown.append((entry.id, None if is_final else self._next(entry)))
            else:
                missing.append(entry)
        await self._store.plan(shown)
        found = await all_results(self._find(entry, view) for entry in missing)
        for fault in found:
            if isinstance(fault, Exception) and not isinstance(fault, ServiceError):
                raise fault  # a service error is one payment's: its lease ends, and it is due again
        return [entry for entry in found if isinstance(entry, Entry)]

    async def _find(self, entry: Entry, view: View) -> Entry | None:
        """What every view says of an entry that one does not show; the entry if it changed."""
        others = [one for one in self._witness.views(entry.network) if one is not view]
        async with self._sending:
            told = [(one, await self._witness.told(entry, one)) for one in (view, *others)]
            if entry.state is State.FAILED:
                return await self._late(entry, [found for _, found in told])
            together = _together([found for _, found in told])
            unused = next((one for one, found in told if _is_unused(found)), None)
            if unused is None:
                return await self._written(entry, together)
            if isinstance(together, Settled) and self._age(entry) < LAG:
                return await self._written(entry, Undecided("one endpoint shows it, one does not"))
            return await self._send_again(entry, unused)

    async def _send_again(self, entry: Entry, view: View) -> Entry | None:
        """The same authorisation once more, by the view that says that it is unused.

        Where that is a lie, the contract refuses what was paid already.
        """
        latest, found = entry, Undecided("its payer sent it, and nobody else can")

        async def note(attempt: Attempt) -> None:
            nonlocal latest
            if attempt.transaction:  # what somebody else makes is not known yet
                latest = await self._settlement.moved(latest, entry.state, attempt=attempt)

        protocol = self._witness.protocol(entry)
        if entry.attempt.raw or entry.protocol == "x402":
            send = protocol.resend if entry.attempt.raw else protocol.settle
            try:
                sent = await send(entry, note, view.needs)
            except Unavailable as error:  # somebody else has moved it meanwhile, say
                sent = Undecided(error.detail or error.message)
            found = sent if isinstance(sent, Settled) else Undecided("sent again")
        return await self._written(latest, found) or (latest if latest is not entry else None)

    async def _written(self, entry: Entry, found: Outcome) -> Entry | None:
        """The entry moved on by what was found, where that moves it."""
        match found:
            case Settled():
                moved = None
                if found.transaction != entry.attempt.transaction:
                    shown = replace(entry.attempt, transaction=found.transaction)
                    attempt = after(entry.attempt, shown)
                    moved = await self._ledger.move(entry, entry.state, attempt=attempt)
                await self._store.plan([(entry.id, self._next(entry))])
                return moved
            case Rejected():
                return await self._ledger.move(entry, State.REVERSED, reason=found.reason)
            case Undecided():
                await self._store.plan([(entry.id, self._again(entry))])
                return None

    async def _late(self, entry: Entry, told: Sequence[Outcome]) -> Entry | None:
        """A failed payment that was submitted all the same, once every view shows its transfer."""
        if all(isinstance(found, Settled) for found in told):
            found = _together(told)
            transaction = found.transaction if isinstance(found, Settled) else ""
            shown = replace(entry.attempt, transaction=transaction)
            attempt = after(entry.attempt, shown)
            return await self._ledger.move(entry, State.SETTLED, attempt=attempt)
        is_known = not any(isinstance(found, Undecided) for found in told)
        await self._store.plan([(entry.id, None if is_known else self._again(entry))])
        return None

    def _next(self, entry: Entry) -> datetime:
        now, settled = self._clock.now(), entry.settled_at or entry.updated_at
        return next((settled + at for at in LOOKS if settled + at > now), now + LOOKS[-1])

    def _again(self, entry: Entry) -> datetime:
        return self._clock.now() + min(max(self._age(entry) / 2, AGAIN_MIN), AGAIN_MAX)

    def _age(self, entry: Entry) -> timedelta:
        return self._clock.now() - (entry.settled_at or entry.updated_at)


def _is_unused(found: Outcome) -> bool:
    return isinstance(found, Undecided) and found.is_unused


def _together(told: Sequence[Outcome]) -> Outcome:
    """Paid when one shows it, unknown when one cannot say; ended when all say so."""
    for kind in (Settled, Undecided):
        for found in told:
            if isinstance(found, kind):
                return found
    return told[0]
