"""Prices of gas whose bounds nothing in a test reaches."""

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from assay.chains.model import Network
from assay.common.clock import Clock
from assay.payments.gas import GasRules
from assay.payments.x402.transaction_sender import GasPrices


def ample_gas(
    rpc: Any, networks: Mapping[str, Network], address: str, clock: Clock, coins: int = 1
) -> GasPrices:
    """A settlement may cost that many coins, on every network."""
    caps: defaultdict[str, Decimal] = defaultdict(lambda: Decimal(coins))
    return GasPrices(rpc, networks, address, GasRules(0, 0, {}, Decimal(0), caps), clock)
