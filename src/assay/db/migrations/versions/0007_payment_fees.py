"""Fees of payments in flight; a payer's open payments by an index, however many he has made."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Two columns of payments, and an index."""
    token = sa.Column("fee_token", sa.String(42), nullable=False, server_default="")
    most = sa.Column("fee_most", sa.BigInteger(), nullable=False, server_default="0")
    op.add_column("payments", token)
    op.add_column("payments", most)
    columns = ["network", "asset", "payer", "state"]
    op.create_index("ix_payments_payer", "payments", columns)
