"""Where chains of snapshots begin whose oldest ones left, and payers by the money they brought."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    """Nothing has left so far."""
    op.create_table(
        "removed_snapshots",
        sa.Column("subject_key", sa.String(160), primary_key=True),
        sa.Column("snapshot_hash", sa.String(66), nullable=False),
    )
    settled = sa.text("settled_us IS NOT NULL")
    op.create_index(
        "ix_payments_paid_by",
        "payments",
        ["payer"],
        sqlite_where=settled,
        postgresql_where=settled,
    )
