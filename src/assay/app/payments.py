"""Builds payments from the settings: networks, gas, settling, payouts, and paid calls.

- Networks, as they are configured and as the RPC layer knows them, and what they show: what wallets
  hold, and what a payment moved.
- Gas, and whether payments can be settled now: what sellers are warned of, and what is watched.
- Keys in the data directory, which `assay sell` creates and a running service starts to use.
- Statements, payouts and refunds, and paid calls of sellers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final

from assay.app.log import Log, naming
from assay.chains.evm.abi import address_word
from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.evm.signing import TransactionSigner, address_of_key
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Rpc
from assay.common.clock import Clock, SystemClock
from assay.common.costs import DAY_S
from assay.common.json import JsonValue, is_array, is_object
from assay.common.numbers import DECIMALS, NotANumber, hex_number
from assay.common.secret_file import make_key
from assay.db.engine import Database
from assay.payments.gas import GasAccounts, GasBudget, GasRules
from assay.payments.model import PaymentNetwork
from assay.payments.mpp.tempo import least_work_s
from assay.payments.networks import network_id, payee_problem, payment_networks
from assay.payments.payout_wallet import PayoutWallet
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
from assay.payments.statement import Statements
from assay.payments.store_gas import SqlGasStore
from assay.payments.store_transfers import SqlStatementStore, SqlTransferRows, SqlTransferStore
from assay.payments.transfers import TransferPages, Transfers
from assay.payments.x402.eip3009 import balance_of, gas_spent
from assay.payments.x402.engine import X402Engine
from assay.payments.x402.transaction_sender import GAS_MAX, GasPrices
from assay.probing.paid_calls import (
    KNOWN_FOR,
    AssetBalances,
    BoughtCalls,
    DerivedWallets,
    PaidCallDependencies,
    Spending,
)
from assay.probing.store_paid_calls import SqlPaidCallStore
from assay.reputation.write_back import WalletWatch
from assay.settings import Settings, SettingsError, read_key, settling_key_file
from assay.wrappers.store_tiers import SqlTierStore

NO_REGISTRY = "0x" + "00" * 20


def payment_rows(settings: Settings) -> Mapping[str, PaymentNetwork]:
    """Return the payment networks with the configured endpoints; raises `ValueError`."""
    with naming("ASSAY_PAYMENT_RPC or ASSAY_CONFIRMATIONS"):
        return payment_networks(settings.payment_rpc, settings.confirmations)


def payment_chains(networks: Mapping[str, PaymentNetwork]) -> Mapping[str, Network]:
    """Return the payment networks as the RPC layer knows chains, by their ids."""
    return {network.id: chain_of(network) for network in networks.values()}


def chain_of(network: PaymentNetwork) -> Network:
    """Return a payment network as the RPC layer knows chains."""
    return Network(
        slug=network.id,
        name=network.id,
        chain_id=network.chain_id,
        testnet=network.testnet,
        identity_registry=NO_REGISTRY,
        reputation_registry=NO_REGISTRY,
        rpc_urls=network.rpc_urls,
        source=network.source,
        multicall3=network.protocol == "x402",
    )


TRANSFERRED = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""keccak256 of `Transfer(address,address,uint256)`. Source: ERC-20."""


@dataclass(frozen=True, slots=True)
class TransactionTransfer:
    """What a transaction moved, in base units of the asset, and what its sender paid, in wei."""

    amount: int
    block: int
    fee_wei: int


class Wallets:
    """Asks the chain of one payment network. Every method raises `ChainUnavailable`."""

    def __init__(self, rpc: Rpc, network: PaymentNetwork) -> None:
        self._rpc = rpc
        self._asset = network.asset.address
        self._chain: Network = payment_chains({network.id: network})[network.id]

    async def gas_wei(self, owner: str) -> int:
        """Return what a wallet has of the network's own coin, in wei."""
        return _number(await self._ask("eth_getBalance", owner, "latest"))

    async def dollars(self, owner: str) -> int:
        """Return what a wallet has of the network's dollar, in base units."""
        call: JsonValue = {"to": self._asset, "data": "0x" + balance_of(owner).hex()}
        return _number(await self._ask("eth_call", call, "latest"))

    async def settlement_wei(self) -> int:
        """Return the wei that nodes require in the settling wallet for one settlement now."""
        price = _number(await self._ask("eth_gasPrice"))
        return GAS_MAX * (2 * price + price // 10 + 1)

    async def moved(self, transaction: str, payer: str, pay_to: str) -> TransactionTransfer | None:
        """Return what a transaction moved from payer to payee; None if it failed or is missing."""
        receipt = await self._ask("eth_getTransactionReceipt", transaction)
        if not is_object(receipt) or receipt.get("status") != "0x1":
            return None
        topics = [TRANSFERRED, *("0x" + address_word(one).hex() for one in (payer, pay_to))]
        fee_wei = gas_spent(receipt)
        if fee_wei is None:
            raise ChainUnavailable("The chain does not say what the transaction has cost.")
        return TransactionTransfer(
            amount=sum(self._amounts(receipt.get("logs"), topics)),
            block=_number(receipt.get("blockNumber")),
            fee_wei=fee_wei,
        )

    def _amounts(self, logs: JsonValue, topics: list[str]) -> Iterator[int]:
        for log in logs if is_array(logs) else ():
            if not is_object(log) or str(log.get("address")).lower() != self._asset:
                continue
            found = log.get("topics")
            if is_array(found) and [str(topic).lower() for topic in found] == topics:
                yield _number(log.get("data"))

    async def _ask(self, method: str, *params: JsonValue) -> JsonValue:
        return await self._rpc.request(self._chain, method, params)


def _number(value: JsonValue) -> int:
    try:
        return hex_number(value, 256)
    except NotANumber:
        raise ChainUnavailable("The chain gave no number.", detail=ascii(value)[:100]) from None


CAP: Final = Decimal("0.00002")
"""Default cap in coins: 0.1 gwei for each unit of gas, twenty times Base's usual price."""
CAP_OF_TEST_NETWORKS: Final = Decimal("0.01")
"""The cap on test networks: their coin is worth nothing, and their gas is sometimes dearer."""

BUDGET_DAYS: Final = 31
ABANDONED: Final = timedelta(hours=1)
RELEASED_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class GasParts:
    """The parts of gas that the rest of the service uses."""

    rules: GasRules
    store: SqlGasStore
    accounts: GasAccounts
    prices: GasPrices | None
    """Gas prices; None if a facilitator settles."""
    budget: GasBudget | None


def gas_rules(settings: Settings, networks: Mapping[str, PaymentNetwork]) -> GasRules:
    """Return the configured bounds. Raises `ValueError` naming a network where we do not settle."""
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
    """What gas is built from."""

    settings: Settings
    networks: Mapping[str, PaymentNetwork]
    chains: Mapping[str, Network]
    database: Database
    rpc: JsonRpc
    clock: Clock


def gas_parts(dependencies: GasDependencies, signer: TransactionSigner | None) -> GasParts:
    """Build everything of gas; a facilitator pays its own. Raises like `gas_rules`."""
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
    """Ends reservations of processes that are gone, and removes old budgets."""

    def __init__(self, store: SqlGasStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def run(self) -> bool:
        """Process a batch of each; return whether more may be due."""
        now = self._clock.now()
        await self._store.forget(int(now.timestamp() // DAY_S) - BUDGET_DAYS)
        released = await self._store.release_abandoned(now - ABANDONED, RELEASED_AT_ONCE)
        return released == RELEASED_AT_ONCE


LOOK_S = 1.0
"""Seconds between two looks for the key's file."""


def key_in(path: Path) -> str:
    """Return the key of the file, created now if there is none.

    Raises `OSError`, `SettingsError`.
    """
    make_key(path)
    key = read_key(path)
    if key is None:
        raise SettingsError(f"{path} was removed")
    return key.get_secret_value()


def settling_address(settings: Settings) -> str:
    """Return the settling wallet's address; create its key if needed. Raises like `key_in`."""
    key = settings.x402_private_key
    if key is not None:
        return address_of_key(key.get_secret_value())
    return address_of_key(key_in(settling_key_file(settings.data_dir)))


async def take_up_key(
    engines: Sequence[X402Engine], gas: GasParts, settings: Settings, log: Log
) -> None:
    """Wait until the settling key exists, and settle with it from then on."""
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
"""Seconds between two looks at the key, the nodes and the facilitator while nobody asks."""


def sale_warnings(
    networks: Mapping[str, PaymentNetwork],
    engine: X402Engine,
    rules: GasRules,
    settling: SettlingWatch,
    platform: PlatformWallets,
    settings: Settings,
) -> SaleWarnings:
    """Return what sellers are warned of."""
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
    """Keep the metrics of settling, and of the wallet that writes scores back, up to date.

    If a store is down, it asks again.
    """
    while True:
        if wallet is not None:
            await wallet.refresh()
        try:
            await watch.refresh()
        except Exception as error:  # noqa: BLE001 - a store that is down now is asked again
            log.warning("settling could not be looked at, again soon", error=repr(error))
        await asyncio.sleep(WATCH_EVERY_S)


@dataclass(frozen=True, slots=True)
class Payouts:
    """What the platform owes, and how it is paid."""

    statements: Statements
    transfers: Transfers
    transfer_pages: TransferPages


def payouts(
    settings: Settings,
    networks: Mapping[str, PaymentNetwork],
    database: Database,
    rpc: Rpc,
    clock: Clock,
) -> Payouts:
    """Build payouts; raises `ValueError` for an invalid key, or one that also settles payments."""
    statements = Statements(SqlStatementStore(database, settings.payees))
    wallet = PayoutWallet(rpc, payment_chains(networks), _signer(settings), clock)
    store = SqlTransferStore(database, settings.payees, clock)
    now = (settings.payout_address.lower(),) if settings.payout_address else ()
    others = sorted(settings.payees - set(now))
    transfers = Transfers(store, wallet, statements, networks, (*now, *others), clock)
    return Payouts(statements, transfers, TransferPages(SqlTransferRows(database)))


def platform_wallets(settings: Settings, networks: Mapping[str, PaymentNetwork]) -> PlatformWallets:
    """Return the service's wallets; no fee is sent to one whose key nobody has."""
    payout, assets = settings.payout_address, {one.asset.address for one in networks.values()}
    if payout is None or payee_problem(payout, assets) is not None:
        return PlatformWallets(payout, settings.payees)
    return PlatformWallets(payout, settings.payees, payout.lower())


def _signer(settings: Settings) -> TransactionSigner | None:
    """Return the signer of payouts. It counts nonces itself: nothing else may use its wallet."""
    if settings.payout_key is None:
        return None
    with naming("ASSAY_PAYOUT_KEY"):
        signer = TransactionSigner(settings.payout_key.get_secret_value())
        settling = settings.x402_private_key
        if settling is not None:
            other = TransactionSigner(settling.get_secret_value())
            if other.address == signer.address:
                raise ValueError("must be a key of its own, not that of ASSAY_X402_PRIVATE_KEY")
    return signer


ROWS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class PaidCallsStatus:
    """What `assay doctor` reports about paid calls."""

    wallet: str
    balance_by_network: Mapping[str, int]
    """The balance in base units of the asset, by network."""
    spending: Spending
    day_budget: int


@dataclass(frozen=True, slots=True)
class PaidCallParts:
    """Paid calls, and their status."""

    calls: BoughtCalls
    store: SqlPaidCallStore
    balances: AssetBalances
    networks: Mapping[str, PaymentNetwork]
    wallet: str
    day_budget: int
    clock: Clock

    async def status(self) -> PaidCallsStatus:
        """Return the status. Raises `ServiceError` if the database or a chain does not answer."""
        balance_by_network = {
            n.id: await self.balances.balance(n, self.wallet) for n in self.networks.values()
        }
        spending = await self.store.spending(self.clock.now())
        return PaidCallsStatus(self.wallet, balance_by_network, spending, self.day_budget)


def paid_calls(
    settings: Settings, rpc: Rpc, database: Database, clock: Clock, log: Log
) -> PaidCallParts | None:
    """Build paid calls; None if nothing is bought. Raises `ValueError` for invalid settings."""
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
    """Return the key that fills wallets; nothing else may use its wallet."""
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


def tier_retention(database: Database, clock: Clock) -> tuple[str, Callable[[], Awaitable[bool]]]:
    """Return the removal of ended quotes of tiers, and of free calls of past periods."""
    store = SqlTierStore(database)

    async def remove() -> bool:
        return await store.remove(clock.now(), ROWS_AT_ONCE) >= ROWS_AT_ONCE

    return "quotes of tiers", remove


def paid_call_retention(
    database: Database, clock: Clock
) -> tuple[str, Callable[[], Awaitable[bool]]]:
    """Return the removal of claims that neither count nor limit anything any more."""
    store = SqlPaidCallStore(database, clock)

    async def remove() -> bool:
        return await store.remove(clock.now() - 2 * KNOWN_FOR, ROWS_AT_ONCE) == ROWS_AT_ONCE

    return "paid calls", remove
