"""What is counted of failed payments whose rows were removed."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """One table, and failed payments in the index that finds what may go."""
    op.create_table(
        "removed_payments",
        sa.Column("operator_id", sa.String(36), primary_key=True),
        sa.Column("day", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("gas_currency", sa.String(32), primary_key=True),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("gas_spent", sa.BigInteger(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.drop_index("ix_payments_ended", "payments")
    ended = sa.text("state IN ('released', 'failed') AND watch_us IS NULL AND settled_us IS NULL")
    op.create_index(
        "ix_payments_ended",
        "payments",
        ["expires_us"],
        sqlite_where=ended,
        postgresql_where=ended,
    )
