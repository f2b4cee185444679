"""The fee that a payer sends to the platform beside the seller."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Two columns."""
    amount = sa.Column("direct_fee", sa.BigInteger(), nullable=False, server_default="0")
    payee = sa.Column("direct_fee_payee", sa.String(42), nullable=False, server_default="")
    for column in (amount, payee):
        op.add_column("payments", column)
