"""Credentials that owners deposit for evaluations."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """One for each address of an agent."""
    op.create_table(
        "service_credentials",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("subject_key", sa.String(160), nullable=False),
        sa.Column("chain", sa.String(64), nullable=False),
        sa.Column("agent_id", sa.String(80), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("url", sa.String(1024), nullable=False),
        sa.Column("place", sa.String(8), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("used_us", sa.BigInteger()),
        sa.Column("outcome", sa.String(12)),
        sa.UniqueConstraint("subject_key", "url", name="uq_service_credentials_url"),
    )
    op.create_index("ix_service_credentials_owner", "service_credentials", ["owner"])
    op.create_index("ix_service_credentials_used", "service_credentials", ["used_us", "created_us"])
