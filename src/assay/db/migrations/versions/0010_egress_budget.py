"""What was sent to others lately; webhook deliveries that wait for their receiver's budget."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """One table, and three columns of deliveries."""
    op.create_table(
        "egress_usage",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("exchange", sa.String(36), nullable=False),
        sa.Column("budget", sa.String(32), nullable=False),
        sa.Column("is_shared", sa.Integer(), nullable=False),
        sa.Column("account", sa.String(36), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_egress_usage_budget", "egress_usage", ["budget", "expires_us"])
    op.create_index("ix_egress_usage_exchange", "egress_usage", ["exchange"])
    op.create_index("ix_egress_usage_expires", "egress_usage", ["expires_us"])
    op.add_column("webhook_deliveries", sa.Column("domain", sa.String(255)))
    op.add_column(
        "webhook_deliveries",
        sa.Column("wait_until_us", sa.BigInteger(), nullable=False, server_default="0"),
    )
    op.create_index("ix_webhook_deliveries_domain", "webhook_deliveries", ["state", "domain"])
