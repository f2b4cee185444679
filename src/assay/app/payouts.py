"""Statements, payouts and refunds, put together."""

from collections.abc import Mapping
from dataclasses import dataclass

from assay.app.naming import naming
from assay.app.payment_chains import payment_chains
from assay.chains.evm.transactions import TransactionSigner
from assay.chains.rpc import Rpc
from assay.common.clock import Clock
from assay.db.engine import Database
from assay.payments.model import PaymentNetwork
from assay.payments.networks import payee_problem
from assay.payments.payout_wallet import PayoutWallet
from assay.payments.sale_checks import PlatformWallets
from assay.payments.statement import Statements
from assay.payments.store_transfers import SqlStatementStore, SqlTransferRows, SqlTransferStore
from assay.payments.transfers import TransferPages, Transfers
from assay.settings import Settings


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
    """Raises `ValueError` for a key that does not hold, or that settles payments as well."""
    statements = Statements(SqlStatementStore(database, settings.payees))
    wallet = PayoutWallet(rpc, payment_chains(networks), _signer(settings), clock)
    store = SqlTransferStore(database, settings.payees, clock)
    now = (settings.payout_address.lower(),) if settings.payout_address else ()
    others = sorted(settings.payees - set(now))
    transfers = Transfers(store, wallet, statements, networks, (*now, *others), clock)
    return Payouts(statements, transfers, TransferPages(SqlTransferRows(database)))


def platform_wallets(settings: Settings, networks: Mapping[str, PaymentNetwork]) -> PlatformWallets:
    """The wallets of the service; no fee is sent to one that nobody has the key of."""
    payout, assets = settings.payout_address, {one.asset.address for one in networks.values()}
    if payout is None or payee_problem(payout, assets) is not None:
        return PlatformWallets(payout, settings.payees)
    return PlatformWallets(payout, settings.payees, payout.lower())


def _signer(settings: Settings) -> TransactionSigner | None:
    """Its nonces are counted here: nothing else may send from the same wallet."""
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
