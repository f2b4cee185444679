"""Looks at payments by network, and whether a payment that was looked at is known to be used."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Of what is there nothing is known: the chain is asked once more."""
    op.add_column(
        "payments", sa.Column("is_used", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    for name, ended in (("settled", "NOT NULL"), ("unpaid", "NULL")):
        index, watched = (
            f"ix_payments_watch_{name}",
            sa.text(f"watch_us IS NOT NULL AND settled_us IS {ended}"),
        )
        op.drop_index(index, "payments")
        op.create_index(
            index,
            "payments",
            ["network", "watch_us"],
            sqlite_where=watched,
            postgresql_where=watched,
        )
