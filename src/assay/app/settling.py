"""Whether payments can be settled now: what sellers are warned of, and what is watched."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from assay.app.log import Log
from assay.payments.fees import PlatformWallets
from assay.payments.gas_rules import GasRules
from assay.payments.model import PaymentNetwork
from assay.payments.mpp.validity import least_work_s
from assay.payments.sale_checks import (
    brief_check,
    fee_check,
    gas_price_check,
    payee_check,
    seen_check,
    settling_check,
)
from assay.payments.settling_watch import SettlingWatch
from assay.payments.warnings import SaleWarnings
from assay.payments.x402.engine import X402Engine
from assay.reputation.wallet_watch import WalletWatch
from assay.settings import Settings

WATCH_EVERY_S: Final = 10.0
"""How often the key, the nodes and the facilitator are looked at while nobody asks."""


def sale_warnings(
    networks: Mapping[str, PaymentNetwork],
    engine: X402Engine,
    rules: GasRules,
    settling: SettlingWatch,
    platform: PlatformWallets,
    settings: Settings,
) -> SaleWarnings:
    """What sellers are warned of."""
    x402 = frozenset(one.id for one in networks.values() if one.protocol == "x402")

    def unsettled() -> frozenset[str]:
        settles = engine.has_key or settings.x402_facilitator_url
        return frozenset() if settles else x402

    about_settling = settling_check(unsettled), seen_check(settling, rules, unsettled)
    about_money = payee_check(platform.payees), fee_check(platform)
    brief = brief_check(least_work_s(timedelta(seconds=settings.mpp_challenge_s)))
    return SaleWarnings([*about_settling, *about_money, brief, gas_price_check(settling, rules)])


async def watch_settling_forever(
    watch: SettlingWatch, wallet: WalletWatch | None, log: Log
) -> None:
    """Keep what metrics tell of settling, and of the wallet that writes scores back.

    A store that is down now is asked again.
    """
    while True:
        if wallet is not None:
            await wallet.refresh()
        try:
            await watch.refresh()
        except Exception as error:  # noqa: BLE001 - a store that is down now is asked again
            log.warning("settling could not be looked at, again soon", error=repr(error))
        await asyncio.sleep(WATCH_EVERY_S)
