"""Keys in the data directory: made by `assay sell`, taken up by a service that runs already."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from assay.app.gas import GasParts
from assay.app.log import Log
from assay.chains.evm.eip191 import address_of_key
from assay.chains.evm.transactions import TransactionSigner
from assay.common.key_file import make_key
from assay.payments.x402.engine import X402Engine
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
