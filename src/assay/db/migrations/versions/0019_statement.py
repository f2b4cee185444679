"""Payouts and refunds; the fee of a payment; the funnel of money, counted from the ledger."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

_SETTLED = sa.text("settled_us IS NOT NULL")
_STANDS = sa.text("payment_id IS NOT NULL AND state <> 'cancelled'")
_HAS_NONCE = sa.text("nonce IS NOT NULL")


def upgrade() -> None:
    """Two tables, a column, an index, and `paid` as what the ledger says."""
    op.add_column("payments", sa.Column("fee_rate", sa.String(32)))
    op.create_index(
        *("ix_payments_settled", "payments", ["settled_us"]),
        sqlite_where=_SETTLED,
        postgresql_where=_SETTLED,
    )
    for table in ("call_totals", "call_days"):
        op.execute(f"UPDATE {table} SET paid = settled + failed")  # noqa: S608 - our own names
    _transfers()
    op.create_table(
        "transfer_transactions",
        sa.Column("network", sa.String(32), primary_key=True),
        sa.Column("tx", sa.String(80), primary_key=True),
        sa.Column("transfer_id", sa.String(36), sa.ForeignKey("transfers.id"), nullable=False),
        sa.Column("raw_tx", sa.Text(), nullable=False),
        sa.Column("fee", sa.BigInteger(), nullable=False),
        sa.Column("tip", sa.BigInteger(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
    )
    by_transfer = "ix_transfer_transactions_transfer"
    op.create_index(by_transfer, "transfer_transactions", ["transfer_id"])


def _transfers() -> None:
    op.create_table(
        "transfers",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("operator_id", sa.String(36), nullable=False),
        sa.Column("payment_id", sa.String(36)),
        sa.Column("network", sa.String(32), nullable=False),
        sa.Column("asset", sa.String(42), nullable=False),
        sa.Column("sender", sa.String(42), nullable=False),
        sa.Column("recipient", sa.String(64), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("of_balance", sa.Boolean(), nullable=False),
        sa.Column("fee_rate", sa.String(32)),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("nonce", sa.BigInteger()),
        sa.Column("tx", sa.String(80), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("updated_us", sa.BigInteger(), nullable=False),
        sa.Column("check_us", sa.BigInteger(), nullable=False),
        sa.Column("moves", sa.BigInteger(), nullable=False),
    )
    for name, columns, where in (
        ("ix_transfers_payment", ["payment_id"], _STANDS),
        ("ix_transfers_nonce", ["network", "sender", "nonce"], _HAS_NONCE),
    ):
        op.create_index(
            *(name, "transfers", columns), unique=True, sqlite_where=where, postgresql_where=where
        )
    op.create_index("ix_transfers_operator", "transfers", ["operator_id", "created_us"])
    op.create_index("ix_transfers_state", "transfers", ["state", "check_us"])
