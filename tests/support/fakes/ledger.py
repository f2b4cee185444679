"""The ledger in memory, deterministic: what the SQL stores promise, and nothing more.

Every call is one transaction: it does not wait anywhere.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from assay.common.clock import Clock
from assay.payments.gas import GasTerms, closed
from assay.payments.model import (
    CUT_SHORT,
    Due,
    IdentifierReused,
    InFlightAmount,
    LedgerEntry,
    PaymentClaim,
    PaymentState,
    StoredResponse,
    WatchedPayment,
    carried_look,
    first_look,
    watched_payment,
)
from assay.payments.outcomes import Look, SettlementAttempt
from assay.payments.ports import carried_secret
from assay.payments.watcher import RecheckPlan
from tests.support.fakes.gas_accounts import MemoryGas

_IN_FLIGHT = frozenset({PaymentState.CLAIMED, PaymentState.SETTLING, PaymentState.PENDING})
_OPEN = frozenset({PaymentState.SETTLING, PaymentState.PENDING})
_WATCHED = frozenset({PaymentState.SETTLED, PaymentState.FAILED, PaymentState.REVERSED})
_EVER = datetime.min.replace(tzinfo=UTC)
_MARK = 1_000_000_007

Key = tuple[str, str, str, str]


def key_of(entry: LedgerEntry) -> Key:
    """What a payment is unique by."""
    return entry.network, entry.asset, entry.payer, entry.nonce


def _moment(row: LedgerEntry) -> datetime:
    """When it is looked at next; the beginning of time where that is at once."""
    return _EVER if row.look.at is None else row.look.at


@dataclass(slots=True)
class MemoryLedgerStore:
    """Stands for `payments.store.SqlLedgerStore`; implements `payments.watcher.WatchStore`.

    Without `gas` nothing is reserved.

    `changed` is told of every row that was written: as it was, None for a new one, and as it is.
    """

    clock: Clock
    changed: Callable[[LedgerEntry | None, LedgerEntry], None] = lambda _before, _after: None
    gas: MemoryGas | None = None
    rows: dict[Key, LedgerEntry] = field(default_factory=dict[Key, LedgerEntry])
    answers: dict[str, tuple[datetime, StoredResponse]] = field(
        default_factory=dict[str, tuple[datetime, StoredResponse]]
    )
    """What was bought and when it was kept, by the entry's id."""
    looks: dict[str, datetime] = field(default_factory=dict[str, datetime])
    """When entries are looked at next that are watched, by their ids."""

    async def claim(
        self, fresh: LedgerEntry, failures_since: datetime, gas: GasTerms | None = None
    ) -> PaymentClaim:
        if fresh.identifier is not None:
            self._refuse_reuse(fresh)
        entry, is_ours = self._claimed(fresh, gas)
        if not is_ours:
            return PaymentClaim(entry, is_ours=False, committed=InFlightAmount(), failures=0)
        failures = sum(
            (
                one.state is PaymentState.FAILED
                or (one.state, one.reason) == (PaymentState.RELEASED, CUT_SHORT)
            )
            and one.updated_at >= failures_since
            for one in self._of_payer(entry)
        )
        return PaymentClaim(
            entry, is_ours=True, committed=self._committed(entry), failures=failures
        )

    async def committed(self, entry: LedgerEntry) -> InFlightAmount:
        return self._committed(entry)

    async def find(self, network: str, digest: str) -> LedgerEntry | None:
        found = (row for row in self.rows.values() if row.digest == digest)
        return next((row for row in found if row.network == network), None)

    async def move(
        self,
        entry: LedgerEntry,
        state: PaymentState,
        *,
        attempt: SettlementAttempt | None = None,
        reason: str = "",
        lease_until: datetime | None = None,
        stored: StoredResponse | None = None,
    ) -> LedgerEntry | None:
        now = self.clock.now()
        moved = replace(
            entry,
            state=state,
            settled_at=entry.settled_at or (now if state is PaymentState.SETTLED else None),
            attempt=attempt or entry.attempt,
            reason=reason[:500],
            lease_until=lease_until or entry.lease_until,
            updated_at=now,
            moves=entry.moves + 1,
        )
        if not self._is_as_read(entry):
            return None
        if self.gas is not None:
            moved = replace(moved, gas=self.gas.settle_up(entry, closed(entry, moved)))
        if stored is not None:
            self.answers[entry.id] = now, stored
        if state is PaymentState.RELEASED or (state in _WATCHED and state is not entry.state):
            self._look_at(entry.id, first_look(moved))
        self._write(moved)
        return moved

    async def claim_due(
        self, network: str, now: datetime, until: datetime, limit: int
    ) -> Sequence[WatchedPayment]:
        rows = {row.id: row for row in self.rows.values() if row.network == network}
        looks = sorted((at, one) for one, at in self.looks.items() if at <= now and one in rows)
        due = [rows[one] for _, one in looks[:limit]]
        for row in due:
            self._look_at(row.id, None if row.state in _OPEN else until)
        return [
            watched_payment(row, row.attempt.transaction) for row in due if row.state not in _OPEN
        ]

    async def entries(self, ids: Sequence[str]) -> Sequence[LedgerEntry]:
        return [row for row in self.rows.values() if row.id in ids]

    async def plan(self, plans: Sequence[RecheckPlan]) -> None:
        states = {row.id: row.state for row in self.rows.values()} if plans else {}
        for plan in plans:
            if plan.id in self.looks and states[plan.id] is plan.state:
                self._look_at(plan.id, plan.at)

    async def stored_bytes(self, entry_id: str) -> int | None:
        kept = self.answers.get(entry_id)
        return None if kept is None else len(kept[1].body)

    async def stored(self, entry_id: str) -> StoredResponse | None:
        kept = self.answers.get(entry_id)
        return None if kept is None else kept[1]

    async def lease_unfinished(self, due: Due, lease_until: datetime) -> Sequence[LedgerEntry]:
        found = [row for row in self.rows.values() if row.state in _OPEN]
        found = [row for row in found if row.network == due.network]
        found = [row for row in found if row.lease_until < due.free_at]
        if due.look_at is not None:
            found = [row for row in found if row.look.is_due(due.look_at)]
        found.sort(key=lambda row: (_moment(row), row.created_at, row.id))
        turns: Counter[str] = Counter()
        placed: list[tuple[int, LedgerEntry]] = []
        for row in found:
            turns[row.payer] += 1
            placed.append((turns[row.payer], row))
        placed = [one for one in placed if one[0] <= due.of_payer]
        placed.sort(key=lambda one: (one[0], _moment(one[1]), one[1].id))
        leased = [
            replace(row, lease_until=lease_until, moves=row.moves + 1)
            for _, row in placed[: due.limit]
        ]
        for row in leased:
            self._write(row)
        return leased

    async def put_off(self, entries: Sequence[LedgerEntry]) -> None:
        now = self.clock.now()
        for entry in entries:
            known = self.rows.get(key_of(entry))
            if known is not None and self._is_as_read(entry):
                moved = replace(
                    known,
                    state=PaymentState.PENDING,
                    reason=entry.reason[:500],
                    lease_until=entry.lease_until,
                    look=entry.look,
                    updated_at=now,
                    moves=entry.moves + 1,
                )
                self._write(moved)

    async def put_off_all(self, leased: LedgerEntry, look: Look, reason: str) -> None:
        for row in [row for row in self.rows.values() if row.state in _OPEN]:
            is_sooner = _moment(row) < _moment(replace(row, look=look))
            is_leased = row.lease_until == leased.lease_until
            if row.network != leased.network or not (is_sooner or is_leased):
                continue
            at = look.at if is_sooner else row.look.at
            moved = replace(row, look=replace(row.look, at=at, misses=look.misses))
            if is_leased:
                now = self.clock.now()
                moved = replace(
                    moved, lease_until=now, state=PaymentState.PENDING, reason=reason[:500]
                )
            self._write(moved)

    async def purge_stored(self, before: datetime) -> int:
        old = [entry_id for entry_id, (kept_at, _) in self.answers.items() if kept_at < before]
        for entry_id in old:
            del self.answers[entry_id]
        return len(old)

    async def list(
        self, operator_id: str | None, states: Sequence[PaymentState], limit: int
    ) -> Sequence[LedgerEntry]:
        found = [
            row
            for row in self.rows.values()
            if operator_id in {None, row.operator_id} and (not states or row.state in states)
        ]
        return sorted(found, key=lambda row: row.created_at, reverse=True)[:limit]

    def _claimed(self, fresh: LedgerEntry, gas: GasTerms | None) -> tuple[LedgerEntry, bool]:
        """The entry, new, taken over, or as somebody else has it; and whether it is ours."""
        known = self.rows.get(key_of(fresh))
        if known is None:
            fresh = self._reserved(fresh, gas)
            self._look_at(fresh.id, first_look(fresh))
            self._write(fresh)
            return fresh, True
        abandoned = known.state is PaymentState.CLAIMED and known.lease_until <= fresh.created_at
        if known.state is not PaymentState.RELEASED and not abandoned:
            return known, False
        if self.gas is not None:
            self.rows[key_of(known)] = known = self.gas.give_back(known)
        fresh = self._reserved(fresh, gas)
        taken = replace(fresh, id=known.id, moves=known.moves + 1, look=carried_look(known))
        taken = replace(taken, idempotency_key=carried_secret(known, fresh))
        self._look_at(taken.id, first_look(taken))
        self._write(taken)
        return taken, True

    def _reserved(self, fresh: LedgerEntry, gas: GasTerms | None) -> LedgerEntry:
        if gas is None or self.gas is None:
            return fresh
        return replace(fresh, gas=self.gas.reserve(fresh, gas))

    def _look_at(self, entry_id: str, at: datetime | None) -> None:
        if at is None:
            self.looks.pop(entry_id, None)
        else:
            self.looks[entry_id] = at

    def _write(self, row: LedgerEntry) -> None:
        before = self.rows.get(key_of(row))
        self.rows[key_of(row)] = row
        self.changed(before, row)

    def _is_as_read(self, entry: LedgerEntry) -> bool:
        known = self.rows.get(key_of(entry))
        return known is not None and (known.id, known.moves) == (entry.id, entry.moves)

    def _of_payer(self, entry: LedgerEntry) -> Sequence[LedgerEntry]:
        key = key_of(entry)[:3]
        return [row for whose, row in self.rows.items() if whose[:3] == key]

    def _committed(self, entry: LedgerEntry) -> InFlightAmount:
        now = self.clock.now()
        others = [
            row
            for row in self._of_payer(entry)
            if row.nonce != entry.nonce
            and row.state in _IN_FLIGHT
            and (row.state is not PaymentState.CLAIMED or row.lease_until > now)
        ]
        in_asset = sum(row.fees.most for row in others if row.fees.token == row.asset)
        return InFlightAmount(
            amount=sum(row.amount for row in others) + in_asset,
            fees=sum(row.fees.most for row in others if row.fees.token == entry.fees.token),
            sent=sum(row.state is not PaymentState.CLAIMED for row in others),
            mark=sum(int(row.updated_at.timestamp() * 1e6) % _MARK for row in others),
        )

    def _refuse_reuse(self, fresh: LedgerEntry) -> None:
        for row in self._of_payer(fresh):
            same = (row.operator_id, row.identifier) == (fresh.operator_id, fresh.identifier)
            if same and row.nonce != fresh.nonce:
                raise IdentifierReused("This payment-identifier belongs to another payment.")
