"""Who pays for settling, put together."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Final

from assay.app.naming import naming
from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.evm.transactions import TransactionSigner
from assay.chains.model import Network
from assay.common.clock import Clock
from assay.common.costs import DAY_S
from assay.db.engine import Database
from assay.payments.gas import GasAccounts, GasBudget, GasRules
from assay.payments.model import PaymentNetwork
from assay.payments.store_gas import SqlGasStore
from assay.payments.x402.transaction_sender import GasPrices
from assay.settings import Settings

CAP: Final = Decimal("0.00002")
"""Coins: 0.1 gwei for each gas that may be burnt, twenty times what Base asks on most days."""
CAP_OF_TEST_NETWORKS: Final = Decimal("0.01")
"""Their coin is worth nothing, and their gas is dearer at times."""

BUDGET_DAYS: Final = 31
ABANDONED: Final = timedelta(hours=1)
RELEASED_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class GasParts:
    """What of gas other parts of the service use."""

    rules: GasRules
    store: SqlGasStore
    accounts: GasAccounts
    prices: GasPrices | None
    """None where a facilitator settles."""
    budget: GasBudget | None


def gas_rules(settings: Settings, networks: Mapping[str, PaymentNetwork]) -> GasRules:
    """The configured bounds. Raises `ValueError` naming a network where nothing of ours settles."""
    own = {network.id: network for network in networks.values() if network.protocol == "x402"}
    for setting, given in (
        ("ASSAY_GAS_USD", settings.gas_usd),
        ("ASSAY_GAS_CAP", settings.gas_cap),
    ):
        with naming(setting):
            if unknown := given.keys() - own.keys():
                raise ValueError(f"{min(unknown)} is none of {', '.join(own)}")
    caps = {id_: CAP_OF_TEST_NETWORKS if own[id_].testnet else CAP for id_ in own}
    return GasRules(
        free_per_account=settings.gas_free_settlements,
        free_shared=settings.gas_free_settlements_shared,
        usd=settings.gas_usd,
        cap_of_price=settings.gas_cap_of_price,
        cap_coins={**caps, **settings.gas_cap},
    )


@dataclass(frozen=True, slots=True)
class GasDependencies:
    """What gas stands on."""

    settings: Settings
    networks: Mapping[str, PaymentNetwork]
    chains: Mapping[str, Network]
    database: Database
    rpc: JsonRpc
    clock: Clock


def gas_parts(dependencies: GasDependencies, signer: TransactionSigner | None) -> GasParts:
    """Everything of gas; a facilitator pays its own. Raises as `gas_rules`."""
    rules = gas_rules(dependencies.settings, dependencies.networks)
    store = SqlGasStore(dependencies.database)
    accounts = GasAccounts(rules, store, dependencies.clock)
    if dependencies.settings.x402_facilitator_url:
        return GasParts(rules, store, accounts, None, None)
    address = "" if signer is None else signer.address
    prices = GasPrices(dependencies.rpc, dependencies.chains, address, rules, dependencies.clock)
    return GasParts(
        rules, store, accounts, prices, GasBudget(rules, prices, store, dependencies.clock)
    )


class GasRetention:
    """Ends reservations of processes that are gone, and forgets old budgets."""

    def __init__(self, store: SqlGasStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def run(self) -> bool:
        """A batch of each; whether more may be due."""
        now = self._clock.now()
        await self._store.forget(int(now.timestamp() // DAY_S) - BUDGET_DAYS)
        released = await self._store.release_abandoned(now - ABANDONED, RELEASED_AT_ONCE)
        return released == RELEASED_AT_ONCE
