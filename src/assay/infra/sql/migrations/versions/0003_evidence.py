"""Proven humans behind agents."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "personhood",
        sa.Column("subject_key", sa.String(length=200), nullable=False),
        sa.Column("agent_id", sa.String(length=80), nullable=False),
        sa.Column("level", sa.String(length=32), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("nullifier", sa.String(length=66), nullable=False),
        sa.Column("verified_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("subject_key"),
        sa.UniqueConstraint("scope", "nullifier", name="uq_personhood_human"),
    )
