"""What `assay doctor` says of calls of sellers that the operator pays for."""

from collections.abc import Sequence
from decimal import Decimal

from assay.app import App
from assay.common.errors import ServiceError
from assay.common.money import DECIMALS
from assay.probing.paid_call_model import CALLS_MIN, GAS, SHARE


async def paid_calls_said(app: App) -> Sequence[tuple[bool, str, str]]:
    """Whether they can be made, what was spent and is held, and what to do; none where none are."""
    if app.paid_calls is None:
        return []
    try:
        found = await app.paid_calls.status()
    except ServiceError as error:
        return [(False, error.message, "set a node that answers in ASSAY_PAYMENT_RPC")]
    seen, most = found.spending, found.day_budget // SHARE - GAS
    balance_by_network = ", ".join(
        f"{_usd(units)} USD on {n}" for n, units in found.balance_by_network.items()
    )
    says = f"{_usd(seen.day)} of {_usd(found.day_budget)} USD claimed within a day, gas included;"
    says += f" in 30 days {seen.calls} claims, {seen.filled} wallets filled, {seen.proven} sellers"
    says += f" proven, {_usd(seen.taken)} USD taken; {found.wallet} holds {balance_by_network}"
    if most < CALLS_MIN:
        return [(False, says, "set ASSAY_PAID_CALLS_USD_PER_DAY to 0.20 or more")]
    fix = f"send {found.wallet} stablecoin, and coins for gas: a few days' worth"
    return [(any(units >= most for units in found.balance_by_network.values()), says, fix)]


def _usd(units: int) -> str:
    return f"{Decimal(units).scaleb(-DECIMALS).normalize():f}"
