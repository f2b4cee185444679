"""Evaluations that some accounts are still to be told of."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Nobody is left to be told: all deliveries of earlier evaluations were made with them."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "webhook_events",
        sa.Column("seq", number, primary_key=True),
        sa.Column("agent_id", sa.String(80), nullable=False),
        sa.Column("bodies", sa.Text, nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("after_operator", sa.String(36), nullable=False),
    )
