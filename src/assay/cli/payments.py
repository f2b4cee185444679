"""`assay payments` and `assay gas`: the ledger, transfers to and from it, and settling budgets."""

import json
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Annotated, Literal

from cyclopts import Parameter

from assay.app import App
from assay.cli.command import FAILED, AsJson, Email, complain, print_table, with_app
from assay.common.clock import iso
from assay.common.errors import InvalidRequest
from assay.common.numbers import DECIMALS
from assay.payments.gas import NANO
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.statement import COLUMNS, Transfer, TransferState, csv_of, decimal, values_of

LIMIT_MAX = 10_000


def list_all(
    *,
    state: Annotated[
        Literal[
            "claimed",
            "settling",
            "pending",
            "settled",
            "delivered",
            "released",
            "failed",
            "reversed",
        ]
        | None,
        Parameter(help="Only payments in this state."),
    ] = None,
    limit: Annotated[int, Parameter(help="How many, newest first.")] = 50,
    as_json: AsJson = False,
) -> int:
    """Print payments, newest first."""

    async def work(app: App) -> int:
        states = [] if state is None else [PaymentState(state)]
        entries = await app.ledger.list(None, states, max(1, min(limit, LIMIT_MAX)))
        rows = [_payment_row(entry) for entry in entries]
        if as_json:
            sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        else:
            print_table(_PAYMENT_COLUMNS, rows)
        return 0

    return with_app(work)


def reconcile() -> int:
    """Finish what can be finished, and print what moved."""

    async def work(app: App) -> int:
        moved = await app.settlement.reconcile(is_due_only=False)
        for entry in moved:
            sys.stdout.write(f"{entry.id} {entry.state.value} {entry.attempt.transaction}\n")
        sys.stdout.write(f"{len(moved)} payments finished\n")
        return 0

    return with_app(work)


def statement(
    *,
    email: Annotated[str | None, Parameter(help="Only this account.")] = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, Parameter(name="--csv", negative=(), help="Print CSV.")] = False,
) -> int:
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


def list_transfers(
    *,
    email: Annotated[str | None, Parameter(help="Only this account.")] = None,
    limit: Annotated[int, Parameter(help="How many, newest first.")] = 50,
    as_json: AsJson = False,
) -> int:
    """Print payouts and refunds, newest first."""

    async def work(app: App) -> int:
        operator = None if email is None else (await app.operators.find_for_admin(email)).id
        shown = max(1, min(limit, LIMIT_MAX))
        found = await app.transfers.list_for_admin(operator, shown)
        _write(_TRANSFER_COLUMNS, [_transfer_row(one) for one in found], as_json=as_json)
        return 0

    return with_app(work)


def refund(
    payment_id: Annotated[str, Parameter(help="From `payments list`.")],
    *,
    amount: Annotated[str | None, Parameter(help="Less than all of it, such as 0.005.")] = None,
) -> int:
    """Refund a payment to its payer."""

    async def work(app: App) -> int:
        units = None if amount is None else _base_units(amount)
        return await _print(app, await app.transfers.refund(payment_id, units))

    return with_app(work)


def payout(
    email: Email,
    network: Annotated[str, Parameter(help="Such as `eip155:8453`.")],
    to: Annotated[str, Parameter(help="The account's own wallet.")],
    *,
    amount: Annotated[str | None, Parameter(help="Less than all that is owed.")] = None,
) -> int:
    """Pay an account what it is owed."""

    async def work(app: App) -> int:
        operator = await app.operators.find_for_admin(email)
        units = None if amount is None else _base_units(amount)
        return await _print(app, await app.transfers.payout(operator.id, network, to, units))

    return with_app(work)


def record(
    transfer_id: Annotated[str, Parameter(help="From `payments transfers`, or the payment's.")],
    transaction: Annotated[str, Parameter(help="Hash of the transaction you signed.")],
) -> int:
    """Record the transaction with which a person made a transfer."""

    async def work(app: App) -> int:
        made = await app.transfers.record(transfer_id, transaction)
        sys.stdout.write(f"{made.kind} {made.id} is paid by {made.transaction}\n")
        return 0

    return with_app(work)


def cancel(
    transfer_id: Annotated[str, Parameter(help="From `payments transfers`.")],
) -> int:
    """Cancel a transfer that nobody has sent."""

    async def work(app: App) -> int:
        made = await app.transfers.cancel(transfer_id)
        sys.stdout.write(f"{made.kind} {made.id} is cancelled\n")
        return 0

    return with_app(work)


def show_gas(email: Email, *, as_json: AsJson = False) -> int:
    """Print an account's budget."""

    async def work(app: App) -> int:
        operator = await app.operators.find_for_admin(email)
        usage = await app.gas.accounts.usage(operator.id)
        amounts = usage.account.prepaid.items()
        row = {
            "freeLeftToday": usage.free_left,
            "sharedLeftToday": usage.shared_left,
            "prepaid": {name: f"{Decimal(nano) / NANO:f}" for name, nano in amounts},
        }
        if as_json:
            sys.stdout.write(json.dumps(row, indent=2) + "\n")
            return 0
        sys.stdout.write(f"free settlements left today: {usage.free_left}\n")
        if usage.shared_left is not None:
            sys.stdout.write(f"of all self-registered accounts: {usage.shared_left}\n")
        for currency, nano in amounts:
            sys.stdout.write(f"prepaid: {Decimal(nano) / NANO:f} {currency}\n")
        return 0

    return with_app(work)


def credit_gas(
    email: Email,
    amount: Annotated[str, Parameter(help="USD, or coins of the network; below zero: take back.")],
    *,
    network: Annotated[
        str | None,
        Parameter(help="A network whose coin `ASSAY_GAS_USD` does not name; default: USD."),
    ] = None,
) -> int:
    """Add prepaid gas to an account."""
    try:
        added = Decimal(amount)
    except InvalidOperation:
        complain(f"the amount {amount!r} is not a number")
        return FAILED

    async def work(app: App) -> int:
        operator = await app.operators.find_for_admin(email)
        try:
            currency, left = await app.gas.accounts.credit_for_admin(operator.id, added, network)
        except InvalidRequest as error:
            complain(error.message)
            return FAILED
        sys.stdout.write(f"{operator.email} has prepaid {left:f} {currency}\n")
        return 0

    return with_app(work)


def _payment_row(entry: LedgerEntry) -> dict[str, str]:
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


_PAYMENT_COLUMNS = (
    *("id", "createdAt", "state", "amount", "network", "payer", "wrapperId", "transaction"),
    "reason",
)


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


_TRANSFER_COLUMNS = (
    *("id", "createdAt", "kind", "state", "amount", "network", "sender", "recipient"),
    *("transaction", "paymentId", "operatorId", "reason"),
)


def _transfer_row(one: Transfer) -> dict[str, str]:
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
