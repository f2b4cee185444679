"""Seeds of visits, kept as hashes when they start; when visits may go unannounced."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """One table, one column."""
    op.create_table(
        "visit_seeds",
        sa.Column("commitment", sa.String(64), primary_key=True),
        sa.Column("subject_key", sa.String(160), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_visit_seeds_at", "visit_seeds", ["at_us"])
    op.add_column(
        "visit_schedule",
        sa.Column("quiet_us", sa.BigInteger(), nullable=False, server_default="0"),
    )
