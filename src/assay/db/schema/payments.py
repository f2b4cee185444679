"""Tables of payouts, refunds, prepaid gas, and exact daily budgets.

Payouts and refunds: transfers by the platform or a seller, and their signed transactions.

Tables of prepaid settlement costs of accounts, and of exact daily budgets.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    text,
)

from assay.db.schema.metadata import METADATA

_STANDS = text("payment_id IS NOT NULL AND state <> 'cancelled'")
_HAS_NONCE = text("nonce IS NOT NULL")

transfers = Table(
    "transfers",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("kind", String(8), nullable=False),
    Column("operator_id", String(36), nullable=False),
    # The payment that is refunded; None for a payout.
    Column("payment_id", String(36)),
    Column("network", String(32), nullable=False),
    Column("asset", String(42), nullable=False),
    Column("sender", String(42), nullable=False),
    Column("recipient", String(64), nullable=False),
    Column("amount", BigInteger, nullable=False),
    # Whether it is paid from the operator's balance at the platform, and the fee rate of that.
    Column("of_balance", Boolean, nullable=False),
    Column("fee_rate", String(32)),
    Column("state", String(10), nullable=False),
    Column("nonce", BigInteger),
    Column("tx", String(80), nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("updated_us", BigInteger, nullable=False),
    Column("check_us", BigInteger, nullable=False),
    Column("moves", BigInteger, nullable=False),
    # A payment is refunded once, and a nonce of a wallet is used once.
    Index(
        "ix_transfers_payment",
        "payment_id",
        unique=True,
        sqlite_where=_STANDS,
        postgresql_where=_STANDS,
    ),
    Index(
        "ix_transfers_nonce",
        *("network", "sender", "nonce"),
        unique=True,
        sqlite_where=_HAS_NONCE,
        postgresql_where=_HAS_NONCE,
    ),
    # Includes failed ones: without it, removing a payment scans all transfers.
    Index("ix_transfers_of", "payment_id"),
    Index("ix_transfers_operator", "operator_id", "created_us"),
    Index("ix_transfers_state", "state", "check_us"),
)

transfer_transactions = Table(
    "transfer_transactions",
    METADATA,
    # A transaction belongs to one transfer, whatever its signer.
    Column("network", String(32), primary_key=True),
    Column("tx", String(80), primary_key=True),
    Column("transfer_id", String(36), ForeignKey("transfers.id"), nullable=False),
    # Empty if a person signed it.
    Column("raw_tx", Text, nullable=False),
    Column("fee", BigInteger, nullable=False),
    Column("tip", BigInteger, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Index("ix_transfer_transactions_transfer", "transfer_id"),
)


gas_accounts = Table(
    "gas_accounts",
    METADATA,
    Column("operator_id", String(36), ForeignKey("operators.id"), primary_key=True),
    # `usd`, or the network whose native coin it is.
    Column("currency", String(32), primary_key=True),
    # Billionths of the currency, less reservations; negative after an unexpected cost.
    Column("balance", BigInteger, nullable=False),
)

daily_budgets = Table(
    "daily_budgets",
    METADATA,
    Column("name", String(120), primary_key=True),
    # A UTC calendar day, in days since 1970. Rows are removed after a month.
    Column("day", Integer, primary_key=True),
    Column("used", BigInteger, nullable=False),
)
