"""Prices and limits by tier, free calls, and wrappers that only observe."""

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"


def upgrade() -> None:
    """No wrapper has any: one price for everybody, and trust is enforced."""
    for table in ("wrappers", "wrapper_revisions"):
        op.add_column(table, sa.Column("pricing", sa.Text, nullable=False, server_default="[]"))
        op.add_column(table, sa.Column("free_calls", sa.BigInteger))
        op.add_column(table, sa.Column("free_per", sa.String(5)))
        enforce = sa.Column("enforce", sa.String(8), nullable=False, server_default="enforce")
        op.add_column(table, enforce)
    op.add_column("calls", sa.Column("would_deny", sa.String(32)))
    op.create_table(
        "tier_quotes",
        sa.Column("wrapper_id", sa.String(36), primary_key=True),
        sa.Column("agent", sa.String(160), primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True),
        sa.Column("price", sa.BigInteger, primary_key=True),
        sa.Column("until_us", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_tier_quotes_until", "tier_quotes", ["until_us"])
    op.create_table(
        "free_calls",
        sa.Column("wrapper_id", sa.String(36), primary_key=True),
        sa.Column("per", sa.String(5), primary_key=True),
        sa.Column("agent", sa.String(160), primary_key=True),
        sa.Column("period", sa.String(10), nullable=False),
        sa.Column("used", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_free_calls_period", "free_calls", ["per", "period"])
    op.create_table(
        "observed_totals",
        sa.Column("operator_id", sa.String(36), primary_key=True),
        sa.Column("wrapper_id", sa.String(36), primary_key=True),
        sa.Column("would_deny", sa.BigInteger, nullable=False),
    )
