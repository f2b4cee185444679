"""Calls of sellers that the operator paid for."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    """One table."""
    required = ("subject_key", 160), ("service", 2048), ("payee", 42), ("owner", 64)
    more = ("site", 255), ("domain", 255), ("network", 32), ("sender", 42), ("wallet", 42)
    op.create_table(
        "paid_calls",
        sa.Column("id", sa.String(36), primary_key=True),
        *(sa.Column(name, sa.String(size), nullable=False) for name, size in (*required, *more)),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("cost", sa.BigInteger(), nullable=False),
        sa.Column("opened_us", sa.BigInteger(), nullable=False),
        sa.Column("nonce", sa.BigInteger()),
        sa.Column("raw", sa.Text(), nullable=False),
        sa.Column("transaction_hash", sa.String(66), nullable=False),
        sa.Column("is_filled", sa.Boolean(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("is_proven", sa.Boolean(), nullable=False),
        sa.Column("taken", sa.BigInteger(), nullable=False),
        sa.Column("bought", sa.Text()),
        sa.Column("kept_us", sa.BigInteger()),
    )
    op.create_index("ix_paid_calls_opened", "paid_calls", ["opened_us"])
    op.create_index("ix_paid_calls_payee", "paid_calls", ["payee", "opened_us"])
    op.create_index("ix_paid_calls_subject", "paid_calls", ["subject_key", "opened_us"])
    op.create_index(
        "ix_paid_calls_nonce", "paid_calls", ["sender", "network", "nonce"], unique=True
    )
