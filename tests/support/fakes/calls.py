"""Calls and payments for the log, as a wrapper would leave them."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from assay.analytics.model import CallKind, CallLogEntry
from assay.analytics.store_rollups import RollupWriter
from assay.common.clock import Clock
from assay.common.ids import new_id
from assay.db.engine import Database
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.outcomes import SettlementAttempt
from assay.payments.store import SqlLedgerStore

PAYER = "0x" + "bb" * 20


def call(operator_id: str, wrapper_id: str, at: datetime, **fields: Any) -> CallLogEntry:
    kind = CallKind(operator_id, wrapper_id, "GET", "/quote")
    return changed(CallLogEntry(kind, at, "r", "127.0.0.1", 200, "forwarded", 1000, 0), **fields)


def changed(made: CallLogEntry, **fields: Any) -> CallLogEntry:
    """A copy of it, of a kind of its own, with other values; they are named as columns are."""
    of_kind = {name: fields.pop(name) for name in KIND_FIELDS & fields.keys()}
    return replace(made, kind=replace(made.kind, is_bounded=False, **of_kind), **fields)


KIND_FIELDS = frozenset(CallKind.__dataclass_fields__) - {"is_bounded"}
CALL_FIELDS = frozenset(CallLogEntry.__dataclass_fields__) - {"kind"}


def payment(
    operator_id: str, wrapper_id: str, at: datetime, amount: int, **fields: Any
) -> LedgerEntry:
    nonce = new_id()
    made = LedgerEntry(
        id=new_id(),
        protocol="x402",
        network="eip155:8453",
        asset="0x" + "aa" * 20,
        payer=PAYER,
        nonce=nonce,
        digest=f"digest {nonce}",
        amount=amount,
        pay_to="0x" + "cc" * 20,
        operator_id=operator_id,
        wrapper_id=wrapper_id,
        request_digest="r",
        state=PaymentState.CLAIMED,
        attempt=SettlementAttempt("0x" + "ee" * 32),
        reason="",
        credential={},
        version=2,
        identifier=None,
        expires_at=at + timedelta(hours=1),
        lease_until=at + timedelta(hours=1),
        created_at=at,
        updated_at=at,
    )
    return replace(made, **fields)


def counted_ledger(database: Database, clock: Clock) -> SqlLedgerStore:
    """A ledger whose moves are counted in the roll-ups, as the service puts it together."""
    return SqlLedgerStore(database, clock, on_move=RollupWriter(database.kind).add_move)


async def claimed(ledger: SqlLedgerStore, entry: LedgerEntry) -> LedgerEntry:
    return (await ledger.claim(entry, entry.created_at)).entry
