"""`assay payments`: statements, payouts and refunds, from the terminal."""

import json
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

from assay.app import App
from assay.cli.command import FAILED, complain, with_app
from assay.cli.tables import print_table
from assay.common.clock import iso
from assay.common.money import DECIMALS
from assay.payments.statement import COLUMNS, csv_of, decimal, values_of
from assay.payments.transfer_model import Transfer, TransferState

LIMIT_MAX = 10_000


def statement(email: str | None, *, as_json: bool, as_csv: bool) -> int:
    """Print what is owed to one account, or to every one."""

    async def work(app: App) -> int:
        if email is None:
            lines = await app.statements.all_for_admin()
        else:
            operator = await app.operators.find_for_admin(email)
            lines = await app.statements.of(operator.id)
        rows = [dict(zip(COLUMNS, map(str, values_of(line)), strict=True)) for line in lines]
        if as_csv:
            sys.stdout.write(csv_of(lines))
        else:
            _write(COLUMNS, rows, as_json=as_json)
        return 0

    return with_app(work)


def list_all(email: str | None, limit: int, *, as_json: bool) -> int:
    """Print payouts and refunds, newest first."""

    async def work(app: App) -> int:
        operator = None if email is None else (await app.operators.find_for_admin(email)).id
        shown = max(1, min(limit, LIMIT_MAX))
        found = await app.transfers.list_for_admin(operator, shown)
        _write(_COLUMNS, [_row(one) for one in found], as_json=as_json)
        return 0

    return with_app(work)


def refund(payment_id: str, amount: str | None) -> int:
    """Give a payment back to its payer."""

    async def work(app: App) -> int:
        units = None if amount is None else _base_units(amount)
        return await _print(app, await app.transfers.refund(payment_id, units))

    return with_app(work)


def payout(email: str, network: str, to: str, amount: str | None) -> int:
    """Pay an account what it is owed."""

    async def work(app: App) -> int:
        operator = await app.operators.find_for_admin(email)
        units = None if amount is None else _base_units(amount)
        return await _print(app, await app.transfers.payout(operator.id, network, to, units))

    return with_app(work)


def record(transfer_id: str, transaction: str) -> int:
    """Note the transaction that a person made a transfer with."""

    async def work(app: App) -> int:
        made = await app.transfers.record(transfer_id, transaction)
        sys.stdout.write(f"{made.kind} {made.id} is paid by {made.transaction}\n")
        return 0

    return with_app(work)


def cancel(transfer_id: str) -> int:
    """Give up a transfer that nobody has sent."""

    async def work(app: App) -> int:
        made = await app.transfers.cancel(transfer_id)
        sys.stdout.write(f"{made.kind} {made.id} is cancelled\n")
        return 0

    return with_app(work)


async def _print(app: App, made: Transfer) -> int:
    """Wait a while for one that is on its way; say what to sign for one that is not."""
    made = await app.transfers.see_through(made, app.settings.settlement_s)
    said = f"{made.kind} {made.id} of {decimal(made.amount)} is {made.state}"
    if made.state is TransferState.PAID:
        sys.stdout.write(f"{said}: {made.transaction}\n")
        return 0
    if made.state is TransferState.SIGNED:
        sys.stdout.write(f"{said}, as {made.transaction}: `serve` sees it through\n")
        return 0
    if made.state is TransferState.FAILED:
        complain(f"{said}: {made.reason}")
        return FAILED
    sys.stdout.write(f"{said}. Sign this transfer, and record its hash:\n")
    for name, value in app.transfers.instructions(made).items():
        sys.stdout.write(f"  {name:9} {value}\n")
    sys.stdout.write(f"  assay payments record-{made.kind} {made.id} 0x...\n")
    return 0


def _base_units(amount: str) -> int:
    """Raises `ValueError` for what is not a multiple of a base unit."""
    try:
        units = Decimal(amount).scaleb(DECIMALS)
        if units == units.to_integral_value():
            return int(units)
    except (InvalidOperation, OverflowError, ValueError):
        pass
    raise ValueError(f"the amount {amount!r} is not a multiple of 0.000001")


_COLUMNS = (
    *("id", "createdAt", "kind", "state", "amount", "network", "sender", "recipient"),
    *("transaction", "paymentId", "operatorId", "reason"),
)


def _row(one: Transfer) -> dict[str, str]:
    return {
        "id": one.id,
        "createdAt": iso(one.created_at),
        "kind": one.kind,
        "state": one.state.value,
        "amount": decimal(one.amount),
        "network": one.network,
        "sender": one.sender,
        "recipient": one.recipient,
        "transaction": one.transaction,
        "paymentId": one.payment_id or "",
        "operatorId": one.operator_id,
        "reason": one.reason,
    }


def _write(columns: Sequence[str], rows: Sequence[Mapping[str, str]], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    else:
        print_table(columns, rows)
