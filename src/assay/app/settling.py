"""Whether payments can be settled now: what sellers are warned of, and what is watched.

Keys in the data directory are made by `assay sell`, and taken up by a service that runs already.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from assay.app.gas import GasParts
from assay.app.log import Log
from assay.chains.evm.eip191 import address_of_key
from assay.chains.evm.transactions import TransactionSigner
from assay.common.secret_file import make_key
from assay.payments.gas import GasRules
from assay.payments.model import PaymentNetwork
from assay.payments.mpp.tempo import least_work_s
from assay.payments.sale_checks import (
    PlatformWallets,
    SaleWarnings,
    brief_check,
    fee_check,
    gas_price_check,
    payee_check,
    seen_check,
    settling_check,
)
from assay.payments.settling_watch import SettlingWatch
from assay.payments.x402.engine import X402Engine
from assay.reputation.wallet_watch import WalletWatch
from assay.settings import Settings, SettingsError, read_key, settling_key_file

LOOK_S = 1.0
"""Between two looks for the file."""


def key_in(path: Path) -> str:
    """The key of the file, drawn now where there is none. Raises `OSError`, `SettingsError`."""
    make_key(path)
    key = read_key(path)
    if key is None:
        raise SettingsError(f"{path} was removed")
    return key.get_secret_value()


def settling_address(settings: Settings) -> str:
    """The wallet that settles; its key is drawn now where there is none. Raises as `key_in`."""
    key = settings.x402_private_key
    if key is not None:
        return address_of_key(key.get_secret_value())
    return address_of_key(key_in(settling_key_file(settings.data_dir)))


async def take_up_key(
    engines: Sequence[X402Engine], gas: GasParts, settings: Settings, log: Log
) -> None:
    """Wait until the settling key is made, and settle with it from then on."""
    path = settling_key_file(settings.data_dir)
    while not engines[0].has_key:
        await asyncio.sleep(LOOK_S)
        try:
            key = read_key(path)
        except SettingsError as error:
            log.warning("the settling key cannot be used", reason=str(error))
            return
        if key is not None:
            signer = TransactionSigner(key.get_secret_value())
            if gas.prices is not None:
                gas.prices.address = signer.address
            for engine in engines:
                engine.take_up(signer)
            log.info("x402 payments are settled from now on", wallet=signer.address)


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
