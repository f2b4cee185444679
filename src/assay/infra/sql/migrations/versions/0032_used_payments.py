"""Whether a payment that was looked at is known to be used."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Of what is there nothing is known: the chain is asked once more."""
    op.add_column(
        "payments", sa.Column("is_used", sa.Boolean(), nullable=False, server_default=sa.false())
    )
