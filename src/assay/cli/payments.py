"""`assay payments`: the ledger, from the operator's terminal."""

import json
import sys
from decimal import Decimal

from assay.app import App
from assay.cli.command import with_app
from assay.cli.tables import print_table
from assay.common.clock import iso
from assay.common.money import DECIMALS
from assay.payments.model import LedgerEntry, PaymentState

LIMIT_MAX = 10_000


def list_all(state: str | None, limit: int, *, as_json: bool) -> int:
    """Print payments, newest first."""

    async def work(app: App) -> int:
        states = [] if state is None else [PaymentState(state)]
        entries = await app.ledger.list(None, states, max(1, min(limit, LIMIT_MAX)))
        rows = [_row(entry) for entry in entries]
        if as_json:
            sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        else:
            print_table(_SHOWN, rows)
        return 0

    return with_app(work)


def reconcile() -> int:
    """Finish what can be finished, and print what moved."""

    async def work(app: App) -> int:
        moved = await app.payments.reconcile(is_due_only=False)
        for entry in moved:
            sys.stdout.write(f"{entry.id} {entry.state.value} {entry.attempt.transaction}\n")
        sys.stdout.write(f"{len(moved)} payments finished\n")
        return 0

    return with_app(work)


def _row(entry: LedgerEntry) -> dict[str, str]:
    return {
        "id": entry.id,
        "createdAt": iso(entry.created_at),
        "state": entry.state.value,
        "amount": f"{Decimal(entry.amount).scaleb(-DECIMALS):.6f}",
        "network": entry.network,
        "payer": entry.payer,
        "payTo": entry.pay_to,
        "wrapperId": entry.wrapper_id,
        "operatorId": entry.operator_id,
        "transaction": entry.attempt.transaction,
        "reason": entry.reason,
    }


_SHOWN = (
    *("id", "createdAt", "state", "amount", "network", "payer", "wrapperId", "transaction"),
    "reason",
)
