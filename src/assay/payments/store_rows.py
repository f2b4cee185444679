"""Payments as rows of the ledger."""

import json
import sqlite3
from decimal import Decimal

from assay.db.engine import from_us, to_us
from assay.db.sql_transaction import SqlRow
from assay.payments.model import DirectFee, Fees, LedgerEntry, PaymentState
from assay.payments.outcomes import Look, SettlementAttempt
from assay.payments.store_gas import gas_of, gas_values


def values_of(entry: LedgerEntry) -> dict[str, object]:
    """The columns of an entry."""
    return {
        "id": entry.id,
        "protocol": entry.protocol,
        "network": entry.network,
        "asset": entry.asset,
        "payer": entry.payer,
        "nonce": entry.nonce,
        "digest": entry.digest,
        "amount": entry.amount,
        "pay_to": entry.pay_to,
        "operator_id": entry.operator_id,
        "wrapper_id": entry.wrapper_id,
        "request_digest": entry.request_digest,
        "state": entry.state.value,
        **_attempt_values(entry.attempt),
        "reason": entry.reason,
        "credential": json.dumps(entry.credential, separators=(",", ":")),
        "version": entry.version,
        "identifier": entry.identifier,
        "fee_token": entry.fees.token,
        "fee_most": entry.fees.most,
        "fee_rate": None if entry.fee_rate is None else str(entry.fee_rate),
        "direct_fee": entry.direct_fee.amount if entry.direct_fee else 0,
        "direct_fee_payee": entry.direct_fee.payee if entry.direct_fee else "",
        "expires_us": to_us(entry.expires_at),
        "lease_us": to_us(entry.lease_until),
        "created_us": to_us(entry.created_at),
        "updated_us": to_us(entry.updated_at),
        "moves": entry.moves,
        "agent_id": entry.agent_id,
        "settled_us": None if entry.settled_at is None else to_us(entry.settled_at),
        **gas_values(entry.gas),
        **look_values(entry.look),
        "watch_us": None,
        "wrapper_revision": entry.wrapper_revision,
        "idempotency_key": entry.idempotency_key,
    }


def moved_values(known: LedgerEntry, moved: LedgerEntry) -> dict[str, object]:
    """The columns that a move writes: what differs, and of a released entry all that may.

    What is released may differ from its row already, in what its mover found out meanwhile. State,
    reason and lease may differ in the row: `PUT_OFF_ALL` does not count as a move.
    """
    is_released = moved.state is PaymentState.RELEASED
    values: dict[str, object] = {
        "updated_us": to_us(moved.updated_at),
        "moves": moved.moves,
        "state": moved.state.value,
        "reason": moved.reason,
        "lease_us": to_us(moved.lease_until),
    }
    # What is the same object has not changed: comparing it would take longer than writing it.
    if is_released or moved.attempt is not known.attempt:
        values |= _attempt_values(moved.attempt)
    if is_released or moved.settled_at != known.settled_at:
        values["settled_us"] = None if moved.settled_at is None else to_us(moved.settled_at)
    if is_released or moved.gas is not known.gas:
        values |= gas_values(moved.gas)
    return values | look_values(moved.look) if is_released else values


def _attempt_values(attempt: SettlementAttempt) -> dict[str, object]:
    return {
        "tx": attempt.transaction,
        "raw_tx": attempt.raw,
        "earlier_tx": " ".join(attempt.earlier),
    }


def look_values(look: Look) -> dict[str, object]:
    """The columns of a look."""
    return {
        "look_us": look_us(look),
        "questions": look.questions,
        "misses": look.misses,
        "is_used": look.is_used,
    }


def look_us(look: Look) -> int:
    """When it is; 0 for at once."""
    return 0 if look.at is None else to_us(look.at)


def direct_fee_of(row: SqlRow) -> DirectFee | None:
    """What the platform was to be paid beside the seller."""
    amount = row["direct_fee"]
    return DirectFee(row["direct_fee_payee"], amount) if amount else None


def entry_of(row: SqlRow) -> LedgerEntry:
    """A row of the ledger."""
    if isinstance(row, sqlite3.Row):  # it looks for each name among all of them
        row = dict(zip(row.keys(), row, strict=True))
    return LedgerEntry(
        id=row["id"],
        protocol=row["protocol"],
        network=row["network"],
        asset=row["asset"],
        payer=row["payer"],
        nonce=row["nonce"],
        digest=row["digest"],
        amount=row["amount"],
        pay_to=row["pay_to"],
        operator_id=row["operator_id"],
        wrapper_id=row["wrapper_id"],
        request_digest=row["request_digest"],
        state=PaymentState(row["state"]),
        attempt=SettlementAttempt(
            row["tx"], row["raw_tx"], earlier=tuple(row["earlier_tx"].split())
        ),
        reason=row["reason"],
        credential=json.loads(row["credential"]),
        version=row["version"],
        identifier=row["identifier"],
        fees=Fees(row["fee_token"], row["fee_most"]),
        fee_rate=None if row["fee_rate"] is None else Decimal(row["fee_rate"]),
        direct_fee=direct_fee_of(row),
        expires_at=from_us(row["expires_us"]),
        lease_until=from_us(row["lease_us"]),
        created_at=from_us(row["created_us"]),
        updated_at=from_us(row["updated_us"]),
        moves=row["moves"],
        agent_id=row["agent_id"],
        settled_at=None if row["settled_us"] is None else from_us(row["settled_us"]),
        gas=gas_of(row),
        look=Look(
            from_us(row["look_us"]) if row["look_us"] else None,
            row["questions"],
            row["misses"],
            row["is_used"],
        ),
        wrapper_revision=row["wrapper_revision"],
        idempotency_key=row["idempotency_key"],
    )
