"""Paid calls of sellers, put together from the settings."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from assay.app.log import Log
from assay.app.naming import naming
from assay.app.payment_chains import payment_chains, payment_rows
from assay.chains.evm.transactions import TransactionSigner
from assay.chains.rpc import Rpc
from assay.common.clock import Clock, SystemClock
from assay.common.money import DECIMALS
from assay.db.engine import Database
from assay.payments.model import PaymentNetwork
from assay.payments.networks import network_id
from assay.payments.payout_wallet import PayoutWallet
from assay.probing.paid_calls import (
    KNOWN_FOR,
    AssetBalances,
    BoughtCalls,
    DerivedWallets,
    PaidCallDependencies,
    Spending,
)
from assay.probing.store_paid_calls import SqlPaidCallStore
from assay.settings import Settings

ROWS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class PaidCallsStatus:
    """What `assay doctor` tells of paid calls."""

    wallet: str
    balance_by_network: Mapping[str, int]
    """Base units of the asset, by network."""
    spending: Spending
    day_budget: int


@dataclass(frozen=True, slots=True)
class PaidCallParts:
    """Paid calls, and what shows them."""

    calls: BoughtCalls
    store: SqlPaidCallStore
    balances: AssetBalances
    networks: Mapping[str, PaymentNetwork]
    wallet: str
    day_budget: int
    clock: Clock

    async def status(self) -> PaidCallsStatus:
        """Raises `ServiceError` where database or chain do not answer."""
        balance_by_network = {
            n.id: await self.balances.balance(n, self.wallet) for n in self.networks.values()
        }
        spending = await self.store.spending(self.clock.now())
        return PaidCallsStatus(self.wallet, balance_by_network, spending, self.day_budget)


def paid_calls(
    settings: Settings, rpc: Rpc, database: Database, clock: Clock, log: Log
) -> PaidCallParts | None:
    """None where nothing is bought. Raises `ValueError` for what is set wrong."""
    day_budget = int(settings.paid_calls_usd_per_day.scaleb(DECIMALS))
    if not day_budget:
        return None
    key, networks = _key(settings), _networks(settings)
    signer, store = TransactionSigner(key), SqlPaidCallStore(database, clock)
    chains = payment_chains(networks)
    balances = AssetBalances(rpc, chains)

    def note(what: str, more: Mapping[str, str]) -> None:
        log.info(what, **more)

    needs = PaidCallDependencies(
        store=store,
        chain=PayoutWallet(rpc, chains, signer, clock, int(settings.paid_calls_gas_max.scaleb(18))),
        balances=balances,
        wallets=DerivedWallets(key),
        networks=networks,
        day_budget=day_budget,
        clock=clock,
        now_s=lambda: SystemClock().now().timestamp(),
        note=note,
    )
    parts = store, balances, networks, signer.address, day_budget, clock
    return PaidCallParts(BoughtCalls(needs), *parts)


def _key(settings: Settings) -> str:
    """The key that fills wallets; nothing else may send from its wallet."""
    with naming("ASSAY_PAID_CALLS_KEY"):
        if settings.paid_calls_key is None:
            raise ValueError("is needed where ASSAY_PAID_CALLS_USD_PER_DAY is set")
        key = settings.paid_calls_key.get_secret_value()
        own = TransactionSigner(key).address
        for other in (settings.x402_private_key, settings.payout_key):
            if other is not None and TransactionSigner(other.get_secret_value()).address == own:
                raise ValueError("must be a key of its own, that settles and pays out nothing")
        return key


def _networks(settings: Settings) -> Mapping[str, PaymentNetwork]:
    rows = payment_rows(settings)
    with naming("ASSAY_PAID_CALLS_NETWORKS"):
        named = {name: network_id(name) for name in settings.paid_calls_networks}
        for name, found in named.items():
            if found is None or rows[found].protocol != "x402":
                raise ValueError(f"{name} is no network of x402 payments")
    return {found: rows[found] for found in named.values() if found is not None}


def paid_call_retention(
    database: Database, clock: Clock
) -> tuple[str, Callable[[], Awaitable[bool]]]:
    """Removes claims that neither count nor limit anything any more."""
    store = SqlPaidCallStore(database, clock)

    async def remove() -> bool:
        return await store.remove(clock.now() - 2 * KNOWN_FOR, ROWS_AT_ONCE) == ROWS_AT_ONCE

    return "paid calls", remove
