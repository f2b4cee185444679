"""`assay gas`: what accounts may spend on settling."""

import json
import sys
from decimal import Decimal, InvalidOperation

from assay.app import App
from assay.cli.command import FAILED, complain, with_app
from assay.common.errors import InvalidRequest
from assay.payments.gas_rules import NANO


def show(email: str, *, as_json: bool) -> int:
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


def credit(email: str, amount: str, network: str | None) -> int:
    """Add to what an account has prepaid."""
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
